// Random numbers that samples are made of. Rejection samplers run rounds, each with draws of its
// own, until all elements have an accepted candidate. The number of rounds has a limit: no
// candidate is accepted with a probability below 2^-53, the spacing of float64 numbers. Skipped
// rounds advance the generator too, so numbers do not depend on whether they are skipped.
#include <functional>
#include <utility>

#include <tenon/creation.h>
#include <tenon/function.h>
#include <tenon/loops.h>

#include "distributions/family.h"
#include "ops/formula.h"
#include "ops/random.h"

namespace tenon::distributions {
namespace {

// Uniform numbers in (0, 1) of 32 bits, in float64.
Tensor word_uniform(const Shape& shape, const OptionalGenerator& generator) {
  return (cast(random_words(shape, generator), DType::Float64) + 0.5) * 0x1p-32;
}
// Of 52 bits.
Tensor double_uniform(const Shape& shape, const OptionalGenerator& generator) {
  const Tensor high = cast(random_words(shape, generator), DType::Float64);
  const Tensor low = floor(cast(random_words(shape, generator), DType::Float64) * 0x1p-12);
  return (high * 0x1p20 + low + 0.5) * 0x1p-52;
}

using Tensors = std::vector<Tensor>;
using Numbers = std::initializer_list<std::int64_t>;
using Step = std::function<Tensors(const Tensors& carry)>;
using OfCarry = std::function<Tensor(const Tensors& carry)>;
using OfNumber = std::function<Tensor(const Tensor& k)>;
/// A candidate, and whether it is accepted.
using Round = std::function<std::pair<Tensor, Tensor>()>;

// Repeats a step as long as pending(carry) has a true element. This is asked before each block of
// so many steps, and the blocks are all steps that there are. On a GPU all of them run.
Tensors repeated(Tensors carry, Numbers blocks, const Step& step, const OfCarry& pending) {
  for (const std::int64_t steps : blocks) {
    const auto run = [&](const Tensors& before) {
      const ScanStep body = [&](const Tensors& in, const Tensors&) {
        return ScanResult{step(in), {}};
      };
      return scan(body, before, {}, {.length = steps}).carry;
    };
    carry = cond(
        any(pending(carry)), run, [](const Tensors& same) { return same; }, carry);
  }
  return carry;
}

// `wanted` where that is a number. Where it is NaN, the last accepted candidate of the rounds.
Tensor accepted(const Tensor& wanted, Numbers blocks, const Round& round) {
  const auto step = [&](const Tensors& carry) {
    const auto [candidate, is_accepted] = round();
    return Tensors{where(is_accepted, candidate, carry[0])};
  };
  const auto pending = [](const Tensors& carry) { return isnan(carry[0]); };
  return where(isnan(wanted), repeated({wanted}, blocks, step, pending)[0], wanted);
}

// G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", 2000: a candidate is
// accepted with a probability of 0.95 or more. For a concentration below 1, a sample for
// concentration + 1 is multiplied by u^(1 / concentration).
Tensor log_gamma_draw(const Tensor& concentration, const OptionalGenerator& generator) {
  const Shape shape = concentration.shape();
  const Tensor given = cast(concentration, DType::Float64), small = lt(given, 1);
  const Tensor a = where(lt(given, 0), kNotANumber, given);
  const Tensor d = where(small, a + 1, a) - 1.0 / 3, c = rsqrt(d * 9);
  const auto round = [&] {
    const Tensor x = randn(shape, DType::Float64, generator);
    const Tensor u = word_uniform(shape, generator);
    const Tensor root = c * x + 1, log_v = log(clamp_min(root, 1e-300)) * 3;
    const Tensor most = square(x) * 0.5 + d * (1 - root * root * root + log_v);
    return std::pair{log_v, gt(root, 0) & lt(log(u), most)};
  };
  const Tensor log_v = accepted(full_like(d, kNotANumber), {4, 9}, round);
  const Tensor boost = log(double_uniform(shape, generator)) / where(small, a, 1);
  return log(d) + log_v + where(small, boost, 0);
}

// Where the integrand of log_gamma_slope() has fallen below e^-37: r, negative below the mean.
Tensor end_of_slope(const Tensor& a, const Tensor& x, const Tensor& is_lower) {
  constexpr double kTail = 37;
  const Tensor inverse = 1 / clamp_min(x, 1e-300);
  const Tensor straight = kTail / clamp_min(abs(x - a), 1e-300);
  const Tensor curved = where(gt(x, 3 * kTail), sqrt(inverse * (3 * kTail)), kInfinite);
  const Tensor lower = minimum(minimum((x + kTail) / a, curved), straight);
  const Tensor normal = sqrt(inverse * (2 * kTail));
  const Tensor small = where(lt(x, 20), minimum(normal, log1p(inverse * (2 * kTail))), normal);
  const Tensor upper = minimum(small, straight);
  return where(is_lower, -lower, upper);
}

// The parts of W. Hörmann, "The transformed rejection method for generating Poisson random
// variables" and "The generation of binomial random variates", 1993: a candidate is
// floor((2 a / (1/2 - |u|) + b) u + center).
struct Hat {
  Tensor center, a, b, log_height;
};
// `wanted` where that is a number, and samples where it is NaN.
Tensor transformed_rejection(const Tensor& wanted, const Hat& hat, const OfNumber& log_probability,
                             const OptionalGenerator& generator) {
  const Shape shape = wanted.shape();
  const auto round = [&] {
    const Tensor u = double_uniform(shape, generator) - 0.5, v = word_uniform(shape, generator);
    const Tensor to_end = 0.5 - abs(u);
    const Tensor k = floor((hat.a * 2 / to_end + hat.b) * u + hat.center);
    const Tensor least = log(v) + hat.log_height - log(hat.a / square(to_end) + hat.b);
    return std::pair{k, le(least, log_probability(k))};
  };
  return accepted(wanted, {10, 24}, round);
}

// The number of the first sums of probabilities that are below u: the probabilities begin with
// `first`, and number k has the probability of k - 1 times ratio(k). 64 sums are exact for means
// below 10. Where `first` is NaN, the result is NaN.
Tensor sequential_search(const Tensor& first, const OfNumber& ratio,
                         const OptionalGenerator& generator) {
  const auto step = [&](const Tensors& carry) {
    const Tensor above = gt(carry[0], 0), p = carry[1] * ratio(carry[3] + 1);
    return Tensors{carry[0] - p, p, carry[2] + cast(above, DType::Float64), carry[3] + 1};
  };
  const Tensor u = double_uniform(first.shape(), generator);
  const Tensor none = where(isnan(first), first, 0);
  const Tensors begin{u - first, first, none, zeros({}, DType::Float64)};
  return repeated(begin, {12, 52}, step, [](const Tensors& carry) { return gt(carry[0], 0); })[2];
}

// log(k!) - (k log(z) - z) for whole numbers k >= 0 and z = k + 9, by Stirling's series of z.
Tensor rest_of_factorial(const Tensor& k, const Tensor& z) {
  constexpr double kSeries[] = {-691.0 / 360360, 1.0 / 1188, -1.0 / 1680,
                                1.0 / 1260,      -1.0 / 360, 1.0 / 12};
  const Tensor inverse = 1 / z;
  Tensor shift = (k + 1) * inverse;
  for (int i = 2; i <= 8; ++i) shift = shift * ((k + static_cast<double>(i)) * inverse);
  return log(sqrt(z) / shift) + kHalfLogTwoPi + inverse * polynomial(square(inverse), kSeries);
}
Tensor log_factorial(const Tensor& k) {
  const Tensor z = k + 9;
  return k * log(z) - z + rest_of_factorial(k, z);
}
// The logarithm of the probability of k, without differences of numbers as large as the rate.
Tensor log_poisson(const Tensor& k, const Tensor& rate) {
  const Tensor z = k + 9, away = z - rate;
  return away - k * log1p(away / rate) - rest_of_factorial(k, z);
}

constexpr double kSmallMean = 10;

}  // namespace

Tensor open_uniform(const Shape& shape, DType dtype, const OptionalGenerator& generator) {
  return dtype == DType::Float64 ? double_uniform(shape, generator)
                                 : maximum(rand(shape, dtype, generator), 0x1p-25);
}

Tensor gumbel_noise(const Shape& shape, DType dtype, const OptionalGenerator& generator) {
  const DType working = item_size(dtype) == 2 ? DType::Float32 : dtype;
  return cast(-log(-log(open_uniform(shape, working, generator))), dtype);
}

// -dP/da / (x p(x)) for y = log x (M. Figurnov et al., "Implicit reparameterization gradients",
// 2018). With t = x e^r, dP/da is an integral of e^(a r - x (e^r - 1)) (r + y - digamma(a)) over r
// from 0 towards the nearer tail, computed by the double exponential rule of Takahasi and Mori
// (1974). The error is below 1e-10 of the value. It is composed of operations, so it has
// derivatives too.
Tensor log_gamma_slope(const Tensor& concentration, const Tensor& log_sample) {
  constexpr double kStep = 0.08;
  constexpr std::int64_t kPoints = 40;  // on each side
  const Tensor a = cast(concentration, DType::Float64), y = cast(log_sample, DType::Float64);
  const Tensor x = exp(y), is_lower = lt(y, log(a));
  const Tensor end = unsqueeze(detach(end_of_slope(a, x, is_lower)), -1);
  const Tensor t = arange(-kPoints, kPoints + 1, 1, DType::Float64) * kStep;
  const Tensor part = sigmoid(sinh(t) * kPi);
  const Tensor weight = cosh(t) * part * (1 - part) * (kPi * kStep);
  const Tensor r = end * part, wide = unsqueeze(a, -1);
  const Tensor decay = exp(wide * r - unsqueeze(x, -1) * expm1(r));
  const Tensor slope = sum(decay * (r + unsqueeze(y - digamma(a), -1)) * weight * end, -1);
  return cast(slope, concentration.dtype());
}

Tensor log_gamma_sample(const Tensor& concentration, const OptionalGenerator& generator) {
  const Function sample(
      "gamma_sample",
      [&generator](FunctionContext&, const Tensor& a) {
        return cast(log_gamma_draw(detach(a), generator), a.dtype());
      },
      [](const FunctionContext& context, const Tensor& gradient) {
        return gradient * log_gamma_slope(context.arguments()[0], context.results()[0]);
      });
  return sample(concentration);
}

Tensor poisson_sample(const Tensor& rate, const OptionalGenerator& generator) {
  const Tensor all = cast(detach(rate), DType::Float64), small = lt(all, kSmallMean);
  const Tensor few = sequential_search(
      where(small, exp(-all), kNotANumber), [&](const Tensor& k) { return all / k; }, generator);
  const Tensor high = where(small, kSmallMean, all);
  const Tensor b = sqrt(high) * 2.53 + 0.931;
  const Hat hat{high + 0.43, b * 0.02483 - 0.059, b, log(1.1239 + 1.1328 / (b - 3.4))};
  const auto log_probability = [&](const Tensor& k) {
    return where(lt(k, 0), -kInfinite, log_poisson(clamp_min(k, 0), high));
  };
  return cast(transformed_rejection(few, hat, log_probability, generator), rate.dtype());
}

Tensor binomial_sample(const Tensor& count, const Tensor& probs,
                       const OptionalGenerator& generator) {
  const Tensor n = cast(detach(count), DType::Float64), all = cast(detach(probs), DType::Float64);
  const Tensor mirrored = gt(all, 0.5), p = where(mirrored, 1 - all, all), odds = p / (1 - p);
  const Tensor small = lt(n * p, kSmallMean);
  const Tensor few = sequential_search(
      where(small, exp(n * log1p(-p)), kNotANumber),
      [&](const Tensor& k) { return clamp_min(n - k + 1, 0) / k * odds; }, generator);
  // Where the mean is small, numbers that the method is valid for.
  const Tensor many_n = where(small, 40, n), many_p = where(small, 0.5, p);
  const Tensor log_odds = log(many_p) - log1p(-many_p);
  const Tensor spread = sqrt(many_n * many_p * (1 - many_p)), b = spread * 2.53 + 1.15;
  const Hat hat{many_n * many_p + 0.5, b * 0.0248 + many_p * 0.01 - 0.0873, b,
                log((5.1 / b + 2.83) * spread)};
  const auto log_weight = [&](const Tensor& k) {
    return k * log_odds - log_factorial(k) - log_factorial(many_n - k);
  };
  const Tensor most = log_weight(floor((many_n + 1) * many_p));
  const auto log_probability = [&](const Tensor& k) {
    const Tensor inside = minimum(clamp_min(k, 0), many_n);
    return where(ne(k, inside), -kInfinite, log_weight(inside) - most);
  };
  const Tensor successes = transformed_rejection(few, hat, log_probability, generator);
  return cast(where(mirrored, n - successes, successes), probs.dtype());
}

// D. Best and N. Fisher, "Efficient simulation of the von Mises distribution", 1979: a candidate is
// accepted with a probability of 0.65 or more.
Tensor von_mises_sample(const Tensor& concentration, const OptionalGenerator& generator) {
  const Shape shape = concentration.shape();
  const Tensor kappa = clamp_min(cast(detach(concentration), DType::Float64), 1e-6);
  const Tensor tau = sqrt(square(kappa) * 4 + 1) + 1;
  const Tensor rho = (tau - sqrt(tau * 2)) / (kappa * 2), r = (square(rho) + 1) / (rho * 2);
  const auto round = [&] {
    const Tensor z = cos(word_uniform(shape, generator) * kPi);
    const Tensor f = (r * z + 1) / (r + z), c = kappa * (r - f);
    const Tensor u = word_uniform(shape, generator);
    return std::pair{f, ge(log(c / u) + 1 - c, 0)};
  };
  const Tensor f = accepted(full_like(kappa, kNotANumber), {10, 25}, round);
  const Tensor angle = acos(clamp(f, -1.0, 1.0));
  const Tensor side = lt(word_uniform(shape, generator), 0.5);
  return cast(where(side, angle, -angle), concentration.dtype());
}

}  // namespace tenon::distributions
