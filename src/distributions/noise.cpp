// Random numbers that samples are made of. Rejection samplers run a fixed number of rounds, each
// with draws of its own, and keep the last accepted candidate. The number of rounds is such that no
// candidate is accepted with a probability below 2^-53, the spacing of float64 numbers.
#include <tenon/creation.h>
#include <tenon/function.h>
#include <tenon/loops.h>

#include "distributions/family.h"
#include "ops/formula.h"

namespace tenon::distributions {
namespace {

Tensor double_uniform(const Shape& shape, const OptionalGenerator& generator) {
  return open_uniform(shape, DType::Float64, generator);
}
Tensor double_normal(const Shape& shape, const OptionalGenerator& generator) {
  return randn(shape, DType::Float64, generator);
}

// `first`, replaced in each round by the candidate where it is accepted.
template <class Round>
Tensor last_accepted(const Tensor& first, std::int64_t rounds, const Round& round) {
  const ScanStep step = [&](const std::vector<Tensor>& carry, const std::vector<Tensor>&) {
    const auto [candidate, accepted] = round();
    return ScanResult{{where(accepted, candidate, carry[0])}, {}};
  };
  return scan(step, {first}, {}, {.length = rounds}).carry[0];
}

// G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", 2000: a candidate is
// accepted with a probability of 0.95 or more. For a concentration below 1, a sample for
// concentration + 1 is multiplied by u^(1 / concentration).
Tensor log_gamma_draw(const Tensor& concentration, const OptionalGenerator& generator) {
  constexpr std::int64_t kRounds = 13;
  const Shape shape = concentration.shape();
  const Tensor a = cast(concentration, DType::Float64), small = lt(a, 1);
  const Tensor d = where(small, a + 1, a) - 1.0 / 3, c = rsqrt(d * 9);
  const auto round = [&] {
    const Tensor x = double_normal(shape, generator), u = double_uniform(shape, generator);
    const Tensor root = c * x + 1, log_v = log(clamp_min(root, 1e-300)) * 3;
    const Tensor most = square(x) * 0.5 + d * (1 - root * root * root + log_v);
    return std::pair{log_v, gt(root, 0) & lt(log(u), most)};
  };
  const Tensor log_v = last_accepted(zeros_like(d), kRounds, round);
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
template <class LogProbability>
Tensor transformed_rejection(const Hat& hat, const LogProbability& log_probability,
                             const OptionalGenerator& generator) {
  constexpr std::int64_t kRounds = 34;
  const Shape shape = hat.center.shape();
  const auto round = [&] {
    const Tensor u = double_uniform(shape, generator) - 0.5, v = double_uniform(shape, generator);
    const Tensor to_end = 0.5 - abs(u);
    const Tensor k = floor((hat.a * 2 / to_end + hat.b) * u + hat.center);
    const Tensor least = log(v) + hat.log_height - log(hat.a / square(to_end) + hat.b);
    return std::pair{k, le(least, log_probability(k))};
  };
  return last_accepted(floor(hat.center), kRounds, round);
}

// The number of the first sums of probabilities that are below u: the probabilities begin with
// `first`, and number k has the probability of k - 1 times ratio(k). 64 sums are exact for means
// below 10.
template <class Ratio>
Tensor sequential_search(const Tensor& first, const Ratio& ratio,
                         const OptionalGenerator& generator) {
  constexpr std::int64_t kSums = 64;
  const Tensor u = double_uniform(first.shape(), generator);
  const ScanStep step = [&](const std::vector<Tensor>& carry, const std::vector<Tensor>& xs) {
    const Tensor above = gt(carry[0], 0);
    const Tensor p = carry[1] * ratio(xs[0]);
    return ScanResult{{carry[0] - p, p, carry[2] + cast(above, DType::Float64)}, {}};
  };
  const Tensor numbers = arange(1, kSums + 1, 1, DType::Float64);
  return scan(step, {u - first, first, zeros_like(first)}, {numbers}, {}).carry[2];
}

constexpr double kSmallMean = 10;

}  // namespace

Tensor open_uniform(const Shape& shape, DType dtype, const OptionalGenerator& generator) {
  if (dtype != DType::Float64) return maximum(rand(shape, dtype, generator), 0x1p-25);
  constexpr std::int64_t kHalf = 1 << 26;
  const Tensor high = randint(0, kHalf, shape, DType::Float64, generator);
  const Tensor low = randint(0, kHalf, shape, DType::Float64, generator);
  return (high * static_cast<double>(kHalf) + low + 0.5) * 0x1p-52;
}

Tensor gumbel_noise(const Shape& shape, DType dtype, const OptionalGenerator& generator) {
  const DType working = item_size(dtype) == 2 ? DType::Float32 : dtype;
  return cast(-log(-log(open_uniform(shape, working, generator))), dtype);
}

// -dP/da / (x p(x)) for y = log x (M. Figurnov et al., "Implicit reparameterization gradients", 2018). With
// t = x e^r, dP/da is an integral of e^(a r - x (e^r - 1)) (r + y - digamma(a)) over r from 0 towards
// the nearer tail, computed by the double exponential rule of Takahasi and Mori (1974). The error is
// below 1e-10 of the value. It is composed of operations, so it has derivatives too.
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
  const Tensor low = where(small, all, 1), high = where(small, kSmallMean, all);
  const Tensor b = sqrt(high) * 2.53 + 0.931;
  const Hat hat{high + 0.43, b * 0.02483 - 0.059, b, log(1.1239 + 1.1328 / (b - 3.4))};
  const Tensor log_high = log(high);
  const Tensor many = transformed_rejection(
      hat,
      [&](const Tensor& k) {
        return where(lt(k, 0), -kInfinite, k * log_high - high - lgamma(clamp_min(k, 0) + 1));
      },
      generator);
  const Tensor few = sequential_search(
      exp(-low), [&](const Tensor& k) { return low / k; }, generator);
  return cast(where(small, few, many), rate.dtype());
}

Tensor binomial_sample(const Tensor& count, const Tensor& probs,
                       const OptionalGenerator& generator) {
  const Tensor n = cast(detach(count), DType::Float64), all = cast(detach(probs), DType::Float64);
  const Tensor turned = gt(all, 0.5), p = where(turned, 1 - all, all);
  const Tensor small = lt(n * p, kSmallMean);
  const Tensor few_p = where(small, p, 0), odds = few_p / (1 - few_p);
  const Tensor few = sequential_search(
      exp(n * log1p(-few_p)),
      [&](const Tensor& k) { return clamp_min(n - k + 1, 0) / k * odds; }, generator);
  // Where the mean is small, numbers that the method is valid for.
  const Tensor many_n = where(small, 40, n), many_p = where(small, 0.5, p);
  const Tensor log_odds = log(many_p) - log1p(-many_p);
  const Tensor spread = sqrt(many_n * many_p * (1 - many_p)), b = spread * 2.53 + 1.15;
  const Hat hat{many_n * many_p + 0.5, b * 0.0248 + many_p * 0.01 - 0.0873, b,
                log((5.1 / b + 2.83) * spread)};
  const auto log_weight = [&](const Tensor& k) {
    return k * log_odds - lgamma(k + 1) - lgamma(many_n - k + 1);
  };
  const Tensor most = log_weight(floor((many_n + 1) * many_p));
  const Tensor many = transformed_rejection(
      hat,
      [&](const Tensor& k) {
        const Tensor inside = minimum(clamp_min(k, 0), many_n);
        return where(ne(k, inside), -kInfinite, log_weight(inside) - most);
      },
      generator);
  const Tensor successes = where(small, few, many);
  return cast(where(turned, n - successes, successes), probs.dtype());
}

// D. Best and N. Fisher, "Efficient simulation of the von Mises distribution", 1979: a candidate is
// accepted with a probability of 0.65 or more.
Tensor von_mises_sample(const Tensor& concentration, const OptionalGenerator& generator) {
  constexpr std::int64_t kRounds = 35;
  const Shape shape = concentration.shape();
  const Tensor kappa = clamp_min(cast(detach(concentration), DType::Float64), 1e-6);
  const Tensor tau = sqrt(square(kappa) * 4 + 1) + 1;
  const Tensor rho = (tau - sqrt(tau * 2)) / (kappa * 2), r = (square(rho) + 1) / (rho * 2);
  const auto round = [&] {
    const Tensor z = cos(double_uniform(shape, generator) * kPi);
    const Tensor f = (r * z + 1) / (r + z), c = kappa * (r - f);
    const Tensor u = double_uniform(shape, generator);
    return std::pair{f, ge(log(c / u) + 1 - c, 0)};
  };
  const Tensor f = last_accepted(ones_like(kappa), kRounds, round);
  const Tensor angle = acos(clamp(f, -1.0, 1.0));
  const Tensor side = lt(double_uniform(shape, generator), 0.5);
  return cast(where(side, angle, -angle), concentration.dtype());
}

}  // namespace tenon::distributions
