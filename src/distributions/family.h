// What a family of distributions is: a row of functions of its parameters. The class Distribution
// checks shapes, expands, masks values outside of the support, and calls the row.
//
// A function that is null does not exist for the family, and its call is refused.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numbers>
#include <vector>

#include <tenon/distributions.h>
#include <tenon/elementwise.h>
#include <tenon/functional.h>
#include <tenon/special.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon::distributions {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();
inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kHalfLogTwoPi = 0.91893853320467274178;

/// The range that plain numbers must be in.
enum class Range { Any, Positive, NotNegative, Probability };

/// A parameter of a family; the last `axes` axes are no batch axes.
struct ParameterOf {
  const char* name;
  Range range = Range::Any;
  int axes = 0;
};

/// The support, as far as kl_divergence() needs it. Above: above a parameter. Interval: between two
/// parameters.
enum class Support { Other, Real, Positive, Unit, Above, Interval };

using OfState = Tensor (*)(const State& d);
using OfValue = Tensor (*)(const State& d, const Tensor& x);
using OfShape = Tensor (*)(const State& d, const Shape& shape, const OptionalGenerator& generator);

struct Family {
  const char* name;
  ParameterOf parameters[3];  ///< A null name ends the list.
  Support support = Support::Other;
  int value_axes = 0;  ///< Event axes; their sizes are the last ones of the first parameter.
  /// Log-probabilities and entropies are differences of large numbers: they are computed in
  /// float64.
  bool in_double = false;
  bool reparameterized = false;  ///< draw() has gradients.
  OfShape draw = nullptr;        ///< Values of a whole shape.
  OfValue log_prob = nullptr;
  OfValue outside = nullptr;  ///< Whether a value is not in the support; NaN is not outside.
  double inside = 0;          ///< A number that log_prob() is given in place of values outside.
  OfState mean = nullptr, variance = nullptr, mode = nullptr, entropy = nullptr;
  OfValue cdf = nullptr, icdf = nullptr;
  OfState values = nullptr;  ///< For enumerate_support(): [n] + event.
  /// For families made of other distributions.
  std::shared_ptr<const State> (*expand)(const State& d, const Shape& batch) = nullptr;
};

/// A distribution.
struct State {
  const Family* family;
  std::vector<Tensor> parameters{};
  Shape batch{}, event{};
  std::vector<Distribution> parts{};
  std::vector<Transform> transforms{};
  std::int64_t number = 0;  ///< A count of axes or of draws.

  const Tensor& operator[](std::size_t k) const { return parameters[k]; }
};

/// The state of a family with these parameters, checked and broadcast.
State state_of(const Family& family, std::initializer_list<Argument> parameters);
/// The same as the argument of a constructor.
std::shared_ptr<const State> made(const Family& family, std::initializer_list<Argument> parameters);
std::shared_ptr<const State> shared(State state);

/// The sizes of `a` and then those of `b`.
Shape joined(const Shape& a, const Shape& b);
/// The shape without its last `axes` sizes, and these sizes.
Shape without_last(const Shape& shape, int axes);
Shape last_of(const Shape& shape, int axes);
/// The sum over the last `axes` axes.
Tensor sum_last(const Tensor& x, int axes);
/// A copy whose parameters have this dtype.
State converted(const State& d, DType dtype);
/// The dtype of the parameters.
DType dtype_of_parameters(const State& d);

/// Throws NotSupported: the distribution has no such function. `advice` may be empty.
[[noreturn]] void refuse(const State& d, const char* function, const char* advice = "");

/// Uniform numbers in the open interval (0, 1): of 24 bits, or for float64 of 52.
Tensor open_uniform(const Shape& shape, DType dtype, const OptionalGenerator& generator);
/// -log(-log(u)) of uniform numbers.
Tensor gumbel_noise(const Shape& shape, DType dtype, const OptionalGenerator& generator);
/// Logarithms of samples of Gamma(concentration, 1), with gradients of all orders.
Tensor log_gamma_sample(const Tensor& concentration, const OptionalGenerator& generator);
/// d log(x) / da of a sample x of Gamma(a, 1) at the fixed probability P(a, x) of smaller numbers.
Tensor log_gamma_slope(const Tensor& concentration, const Tensor& log_sample);
/// Samples of Poisson and binomial distributions.
Tensor poisson_sample(const Tensor& rate, const OptionalGenerator& generator);
Tensor binomial_sample(const Tensor& count, const Tensor& probs,
                       const OptionalGenerator& generator);
/// Samples of the von Mises distribution with mean 0.
Tensor von_mises_sample(const Tensor& concentration, const OptionalGenerator& generator);

/// log B(a, b).
inline Tensor log_beta(const Tensor& a, const Tensor& b) {
  return lgamma(a) + lgamma(b) - lgamma(a + b);
}
/// The mean of log(k!) of binomial numbers k with one count for all.
Tensor mean_log_factorial(const Tensor& count, const Tensor& probs, const Tensor& logits);
/// Whether x is a number, but no whole number from 0 on.
inline Tensor is_not_count(const Tensor& x) { return lt(x, 0) | (ne(x, floor(x)) & ~isnan(x)); }

/// Both forms of a probability: given one, the other is computed.
struct ProbsAndLogits {
  explicit ProbsAndLogits(const Probs& given);
  explicit ProbsAndLogits(const Logits& given);
  Argument probs, inner, logits;  ///< `inner` is kept away from 0 and 1, as PyTorch does.
};
/// Both forms of the probabilities of classes [.., classes], normalized.
struct ClassProbabilities {
  ClassProbabilities(const char* family, const Probs& probs);
  ClassProbabilities(const char* family, const Logits& logits);
  Tensor logits, probs;
};

/// The rows that more than one file needs.
extern const Family kNormal, kLogNormal, kHalfNormal, kCauchy, kLaplace, kGumbel, kUniform,
    kExponential, kGamma, kBeta, kDirichlet, kPareto, kContinuousBernoulli, kBernoulli, kBinomial,
    kGeometric, kPoisson, kCategorical, kOneHotCategorical, kMultivariateNormal,
    kLowRankMultivariateNormal, kWishart, kIndependent, kTransformed;

}  // namespace tenon::distributions
