// Probability distributions, by the names of torch.distributions: samples, densities, moments,
// entropies and divergences as tensors with gradients (docs/distributions.md).
//
// Parameters broadcast with each other; what they have in common is the batch shape. A value has
// the shape sample + batch + event, where the event shape is [] for numbers and [n] for vectors.
// Parameters are floating point; integers become float32, and a plain number takes the dtype of the
// other parameters. A parameter of a wrong shape throws ShapeError, and a plain number out of range
// throws ValueError, when the distribution is made. Elements of tensors are not checked: those out
// of range give results without meaning, mostly NaN. A function that a distribution has no closed
// form for throws NotSupported.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/ops.h>

namespace tenon {

/// Samples of a categorical distribution that have a gradient (Jang et al., 2017; Maddison et al.,
/// 2017): softmax((logits + Gumbel noise) / temperature) along an axis. With `hard` the result is
/// one-hot, and its gradient is that of the soft sample. PyTorch: `F.gumbel_softmax`, whose
/// `temperature` is `tau`. Throws ValueError for a temperature that is not above 0.
TENON_API Tensor gumbel_softmax(const Tensor& logits, double temperature = 1, bool hard = false,
                                int axis = -1, const OptionalGenerator& generator = {});

/// Probability distributions and transforms of them: what torch.distributions holds.
namespace distributions {

struct State;

/// A parameter: a tensor or a plain number.
class Argument {
 public:
  /// A tensor.
  Argument(Tensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT: implicit by design
  /// A number.
  template <class T>
  requires std::is_arithmetic_v<T> Argument(T number)  // NOLINT: implicit by design
      : number_(static_cast<double>(number)), is_number_(true) {}
  /// Whether it was made of a plain number.
  bool is_number() const { return is_number_; }
  /// The tensor; undefined for a number.
  const Tensor& tensor() const { return tensor_; }
  /// The number; 0 for a tensor.
  double number() const { return number_; }

 private:
  Tensor tensor_;
  double number_ = 0;
  bool is_number_ = false;
};

/// Probabilities as a parameter. Those of classes are divided by their sum.
struct Probs {
  Argument value;  ///< In [0, 1].
};
/// Logits as a parameter: log(p / (1 - p)) of a probability, or unnormalized log-probabilities of
/// classes.
struct Logits {
  Argument value;  ///< Any numbers.
};

/// Any distribution. A copy is a second handle to the same parameters, so a `Normal` may be kept as
/// a `Distribution`.
class TENON_API Distribution {
 public:
  /// Copies the handle. There is no move constructor, so a moved-from distribution stays valid.
  Distribution(const Distribution&) = default;
  /// Replaces the handle.
  Distribution& operator=(const Distribution&) = default;

  /// The family: "Normal".
  const char* name() const noexcept;
  /// The shape of independent distributions with their own parameters.
  const Shape& batch_shape() const noexcept;
  /// The shape of one value.
  const Shape& event_shape() const noexcept;
  /// A parameter, broadcast to the batch shape: "loc", "scale". Throws ValueError that lists the
  /// names.
  Tensor parameter(std::string_view name) const;
  /// The same distribution with its parameters broadcast to this batch shape.
  Distribution expand(const Shape& batch_shape) const;

  /// Whether rsample() is possible.
  bool has_rsample() const noexcept;
  /// Values of shape `shape` + batch + event, without a gradient. In the dtype of the parameters;
  /// Categorical gives int64.
  Tensor sample(const Shape& shape = {}, const OptionalGenerator& generator = {}) const;
  /// As sample(), with gradients with respect to the parameters (Kingma and Welling, 2014; for
  /// gamma distributions and those made of them by implicit differentiation, Figurnov et al.,
  /// 2018). Throws NotSupported for discrete distributions.
  Tensor rsample(const Shape& shape = {}, const OptionalGenerator& generator = {}) const;

  /// The logarithm of the density or probability at `value`, whose shape broadcasts with batch +
  /// event; the event axes are summed away. -infinity outside of the support, where PyTorch throws.
  Tensor log_prob(const Tensor& value) const;
  /// The probability of numbers up to `value`.
  Tensor cdf(const Tensor& value) const;
  /// The inverse of cdf().
  Tensor icdf(const Tensor& probability) const;
  /// The entropy, in nats.
  Tensor entropy() const;
  /// The mean; NaN or infinity where there is none.
  Tensor mean() const;
  /// The variance of each element of a value.
  Tensor variance() const;
  /// The square root of variance().
  Tensor stddev() const;
  /// The most likely value.
  Tensor mode() const;
  /// All values of a discrete distribution along a new first axis: [n] + batch + event, or with
  /// `expand` = false [n] + ones + event.
  Tensor enumerate_support(bool expand = true) const;

  /// For the library's own use.
  /// @{
  explicit Distribution(std::shared_ptr<const State> state) noexcept;
  const State& state() const noexcept { return *state_; }
  /// @}

 private:
  std::shared_ptr<const State> state_;
};

/// The Kullback-Leibler divergence KL(p ‖ q), of the common batch shape, for the pairs that PyTorch
/// has a closed form for. Throws NotSupported that names both distributions for other pairs.
TENON_API Tensor kl_divergence(const Distribution& p, const Distribution& q);

#define TENON_PARAMETER(name) \
  Tensor name() const { return parameter(#name); }

// ---- Numbers
/// The normal distribution with this mean and standard deviation.
struct TENON_API Normal : Distribution {
  Normal(const Argument& loc, const Argument& scale);  ///< scale > 0.
  TENON_PARAMETER(loc)                                 ///< The mean.
  TENON_PARAMETER(scale)                               ///< The standard deviation.
};
/// e to the power of a normal number with this mean and standard deviation.
struct TENON_API LogNormal : Distribution {
  LogNormal(const Argument& loc, const Argument& scale);  ///< scale > 0.
  TENON_PARAMETER(loc)                                    ///< The mean of the logarithm.
  TENON_PARAMETER(scale)  ///< The standard deviation of the logarithm.
};
/// The absolute value of a normal number of mean 0.
struct TENON_API HalfNormal : Distribution {
  explicit HalfNormal(const Argument& scale);  ///< scale > 0.
  TENON_PARAMETER(scale)                       ///< The standard deviation of the normal number.
};
/// The Cauchy distribution.
struct TENON_API Cauchy : Distribution {
  Cauchy(const Argument& loc, const Argument& scale);  ///< scale > 0.
  TENON_PARAMETER(loc)                                 ///< The median.
  TENON_PARAMETER(scale)                               ///< Half of the width at half of the height.
};
/// The absolute value of a Cauchy number of median 0.
struct TENON_API HalfCauchy : Distribution {
  explicit HalfCauchy(const Argument& scale);  ///< scale > 0.
  TENON_PARAMETER(scale)                       ///< The median.
};
/// The Laplace distribution.
struct TENON_API Laplace : Distribution {
  Laplace(const Argument& loc, const Argument& scale);  ///< scale > 0.
  TENON_PARAMETER(loc)                                  ///< The mean.
  TENON_PARAMETER(scale)                                ///< The mean distance from the mean.
};
/// The Gumbel distribution.
struct TENON_API Gumbel : Distribution {
  Gumbel(const Argument& loc, const Argument& scale);  ///< scale > 0.
  TENON_PARAMETER(loc)                                 ///< The mode.
  TENON_PARAMETER(scale)                               ///< The scale.
};
/// The logistic distribution.
struct TENON_API Logistic : Distribution {
  Logistic(const Argument& loc, const Argument& scale);  ///< scale > 0.
  TENON_PARAMETER(loc)                                   ///< The mean.
  TENON_PARAMETER(scale)                                 ///< The scale.
};
/// The uniform distribution over [low, high).
struct TENON_API Uniform : Distribution {
  Uniform(const Argument& low, const Argument& high);  ///< low < high.
  TENON_PARAMETER(low)                                 ///< The smallest value.
  TENON_PARAMETER(high)                                ///< The end, which is not a value.
};
/// The exponential distribution.
struct TENON_API Exponential : Distribution {
  explicit Exponential(const Argument& rate);  ///< rate > 0.
  TENON_PARAMETER(rate)                        ///< 1 / mean.
};
/// The gamma distribution.
struct TENON_API Gamma : Distribution {
  Gamma(const Argument& concentration, const Argument& rate);  ///< Both above 0.
  TENON_PARAMETER(concentration)                               ///< The shape.
  TENON_PARAMETER(rate)                                        ///< 1 / scale.
};
/// The sum of the squares of `df` standard normal numbers: Gamma(df / 2, 1 / 2), with the name and
/// the parameters of Gamma.
struct TENON_API Chi2 : Distribution {
  explicit Chi2(const Argument& df);  ///< df > 0.
  /// Degrees of freedom.
  Tensor df() const { return parameter("concentration") * 2; }
};
/// 1 / a gamma number.
struct TENON_API InverseGamma : Distribution {
  InverseGamma(const Argument& concentration, const Argument& rate);  ///< Both above 0.
  TENON_PARAMETER(concentration)                                      ///< The shape.
  TENON_PARAMETER(rate)                                               ///< The scale.
};
/// The beta distribution over (0, 1).
struct TENON_API Beta : Distribution {
  Beta(const Argument& concentration1, const Argument& concentration0);  ///< Both above 0.
  TENON_PARAMETER(concentration1)                                        ///< Often named alpha.
  TENON_PARAMETER(concentration0)                                        ///< Often named beta.
};
/// The Kumaraswamy distribution over (0, 1), which is close to Beta and has a closed cdf().
struct TENON_API Kumaraswamy : Distribution {
  Kumaraswamy(const Argument& concentration1, const Argument& concentration0);  ///< Both above 0.
  TENON_PARAMETER(concentration1)  ///< Often named alpha.
  TENON_PARAMETER(concentration0)  ///< Often named beta.
};
/// The F distribution of Fisher and Snedecor: the quotient of two Chi2 numbers, each divided by its
/// degrees of freedom.
struct TENON_API FisherSnedecor : Distribution {
  FisherSnedecor(const Argument& df1, const Argument& df2);  ///< Both above 0.
  TENON_PARAMETER(df1)                                       ///< Degrees of freedom above the line.
  TENON_PARAMETER(df2)                                       ///< Degrees of freedom below the line.
};
/// Student's t distribution.
struct TENON_API StudentT : Distribution {
  /// df and scale above 0.
  explicit StudentT(const Argument& df, const Argument& loc = 0, const Argument& scale = 1);
  TENON_PARAMETER(df)     ///< Degrees of freedom.
  TENON_PARAMETER(loc)    ///< The median.
  TENON_PARAMETER(scale)  ///< The scale.
};
/// The Weibull distribution.
struct TENON_API Weibull : Distribution {
  Weibull(const Argument& scale, const Argument& concentration);  ///< Both above 0.
  TENON_PARAMETER(scale)                                          ///< The scale.
  TENON_PARAMETER(concentration)                                  ///< The shape.
};
/// The Pareto distribution over [scale, infinity).
struct TENON_API Pareto : Distribution {
  Pareto(const Argument& scale, const Argument& alpha);  ///< Both above 0.
  TENON_PARAMETER(scale)                                 ///< The smallest value.
  TENON_PARAMETER(alpha)                                 ///< The exponent.
};
/// The generalized Pareto distribution over [loc, infinity), or for a negative concentration over
/// [loc, loc - scale / concentration].
struct TENON_API GeneralizedPareto : Distribution {
  GeneralizedPareto(const Argument& loc, const Argument& scale,
                    const Argument& concentration);  ///< scale > 0.
  TENON_PARAMETER(loc)                               ///< The smallest value.
  TENON_PARAMETER(scale)                             ///< The scale.
  TENON_PARAMETER(concentration)                     ///< The weight of the tail; any number.
};
/// The von Mises distribution of angles in [-π, π).
struct TENON_API VonMises : Distribution {
  VonMises(const Argument& loc, const Argument& concentration);  ///< concentration > 0.
  TENON_PARAMETER(loc)                                           ///< The mode, in radians.
  TENON_PARAMETER(concentration)                                 ///< About 1 / variance.
};
/// The continuous Bernoulli distribution over [0, 1] (Loaiza-Ganem and Cunningham, 2019).
struct TENON_API ContinuousBernoulli : Distribution {
  explicit ContinuousBernoulli(const Probs& probs);    ///< By its parameter λ.
  explicit ContinuousBernoulli(const Logits& logits);  ///< By the logits of λ.
  TENON_PARAMETER(probs)                               ///< The parameter λ.
  TENON_PARAMETER(logits)                              ///< log(λ / (1 - λ)).
};
/// The sigmoid of a logistic number: a Bernoulli number with a gradient (Maddison et al., 2017).
struct TENON_API RelaxedBernoulli : Distribution {
  RelaxedBernoulli(const Argument& temperature, const Probs& probs);    ///< temperature > 0.
  RelaxedBernoulli(const Argument& temperature, const Logits& logits);  ///< temperature > 0.
  TENON_PARAMETER(temperature)  ///< Near 0, samples are near 0 and 1.
  TENON_PARAMETER(probs)        ///< The probability of a value above 1/2.
  TENON_PARAMETER(logits)       ///< The logits of `probs`.
};

// ---- Whole numbers
/// 1 with a probability, else 0.
struct TENON_API Bernoulli : Distribution {
  explicit Bernoulli(const Probs& probs);    ///< By probabilities.
  explicit Bernoulli(const Logits& logits);  ///< By logits.
  TENON_PARAMETER(probs)                     ///< The probability of 1.
  TENON_PARAMETER(logits)                    ///< Its logit.
};
/// The number of successes in `total_count` trials.
struct TENON_API Binomial : Distribution {
  Binomial(const Argument& total_count, const Probs& probs);    ///< total_count >= 0.
  Binomial(const Argument& total_count, const Logits& logits);  ///< total_count >= 0.
  TENON_PARAMETER(total_count)                                  ///< The number of trials.
  TENON_PARAMETER(probs)                                        ///< The probability of a success.
  TENON_PARAMETER(logits)                                       ///< Its logit.
};
/// The number of failures before the first success.
struct TENON_API Geometric : Distribution {
  explicit Geometric(const Probs& probs);    ///< By the probability of a success, above 0.
  explicit Geometric(const Logits& logits);  ///< By its logit.
  TENON_PARAMETER(probs)                     ///< The probability of a success.
  TENON_PARAMETER(logits)                    ///< Its logit.
};
/// The Poisson distribution.
struct TENON_API Poisson : Distribution {
  explicit Poisson(const Argument& rate);  ///< rate >= 0.
  TENON_PARAMETER(rate)                    ///< The mean.
};
/// The number of successes before failure number `total_count`, which need not be whole.
struct TENON_API NegativeBinomial : Distribution {
  NegativeBinomial(const Argument& total_count, const Probs& probs);    ///< total_count > 0.
  NegativeBinomial(const Argument& total_count, const Logits& logits);  ///< total_count > 0.
  TENON_PARAMETER(total_count)                                          ///< Failures.
  TENON_PARAMETER(probs)   ///< The probability of a success, below 1.
  TENON_PARAMETER(logits)  ///< Its logit.
};
/// A class, int64, by parameters [.., classes].
struct TENON_API Categorical : Distribution {
  explicit Categorical(const Probs& probs);    ///< By probabilities, which need not sum to 1.
  explicit Categorical(const Logits& logits);  ///< By unnormalized log-probabilities.
  TENON_PARAMETER(probs)                       ///< Probabilities that sum to 1.
  TENON_PARAMETER(logits)                      ///< Their logarithms.
};

// ---- Vectors
/// A class as a one-hot vector, by parameters [.., classes].
struct TENON_API OneHotCategorical : Distribution {
  explicit OneHotCategorical(const Probs& probs);    ///< By probabilities.
  explicit OneHotCategorical(const Logits& logits);  ///< By unnormalized log-probabilities.
  TENON_PARAMETER(probs)                             ///< Probabilities that sum to 1.
  TENON_PARAMETER(logits)                            ///< Their logarithms.
};
/// How often each class was drawn in `total_count` draws, by parameters [.., classes].
struct TENON_API Multinomial : Distribution {
  Multinomial(std::int64_t total_count, const Probs& probs);    ///< total_count >= 0.
  Multinomial(std::int64_t total_count, const Logits& logits);  ///< total_count >= 0.
  std::int64_t total_count() const;                             ///< The number of draws.
  TENON_PARAMETER(probs)                                        ///< Probabilities that sum to 1.
  TENON_PARAMETER(logits)                                       ///< Their logarithms.
};
/// A softmax of Gumbel noise: a one-hot vector with a gradient (Maddison et al., 2017), by
/// parameters [.., classes].
struct TENON_API RelaxedOneHotCategorical : Distribution {
  RelaxedOneHotCategorical(const Argument& temperature, const Probs& probs);  ///< temperature > 0.
  RelaxedOneHotCategorical(const Argument& temperature,
                           const Logits& logits);  ///< temperature > 0.
  TENON_PARAMETER(temperature)                     ///< Near 0, samples are near one-hot vectors.
  TENON_PARAMETER(probs)                           ///< Probabilities that sum to 1.
  TENON_PARAMETER(logits)                          ///< Their logarithms.
};
/// The Dirichlet distribution of probabilities, by concentrations [.., n].
struct TENON_API Dirichlet : Distribution {
  explicit Dirichlet(const Argument& concentration);  ///< Above 0.
  TENON_PARAMETER(concentration)                      ///< Concentrations.
};
/// A covariance matrix [.., n, n], symmetric positive definite.
struct CovarianceMatrix {
  Tensor value;  ///< The matrix.
};
/// The inverse of a covariance matrix [.., n, n].
struct PrecisionMatrix {
  Tensor value;  ///< The matrix.
};
/// A lower triangular matrix L [.., n, n] of the covariance matrix L Lᵀ; its other triangle is not
/// read.
struct ScaleTril {
  Tensor value;  ///< The matrix.
};
/// The multivariate normal distribution; loc [.., n] or a number. Needs LAPACK (linalg.h).
struct TENON_API MultivariateNormal : Distribution {
  MultivariateNormal(const Argument& loc, const CovarianceMatrix& covariance);  ///< By covariances.
  MultivariateNormal(const Argument& loc,
                     const PrecisionMatrix& precision);                  ///< By their inverses.
  MultivariateNormal(const Argument& loc, const ScaleTril& scale_tril);  ///< By Cholesky factors.
  TENON_PARAMETER(loc)                                                   ///< The mean.
  TENON_PARAMETER(scale_tril)        ///< The Cholesky factor of the covariance.
  Tensor covariance_matrix() const;  ///< Covariances [.., n, n].
  Tensor precision_matrix() const;   ///< Their inverses.
};
/// The multivariate normal distribution with the covariance factor factorᵀ + diag(diagonal), factor
/// [.., n, r] and diagonal [.., n] above 0. Needs LAPACK (linalg.h).
struct TENON_API LowRankMultivariateNormal : Distribution {
  LowRankMultivariateNormal(const Argument& loc, const Tensor& cov_factor,
                            const Tensor& cov_diag);  ///< loc [.., n] or a number.
  TENON_PARAMETER(loc)                                ///< The mean.
  TENON_PARAMETER(cov_factor)                         ///< The factor.
  TENON_PARAMETER(cov_diag)                           ///< The diagonal.
  Tensor covariance_matrix() const;                   ///< Covariances [.., n, n].
};

// ---- Matrices
/// The Wishart distribution of symmetric positive definite matrices [.., n, n], with the mean df ·
/// scale matrix; df > n - 1. Needs LAPACK (linalg.h).
struct TENON_API Wishart : Distribution {
  Wishart(const Argument& df, const CovarianceMatrix& scale);   ///< By scale matrices.
  Wishart(const Argument& df, const PrecisionMatrix& inverse);  ///< By their inverses.
  Wishart(const Argument& df, const ScaleTril& scale_tril);     ///< By Cholesky factors.
  TENON_PARAMETER(df)                                           ///< Degrees of freedom.
  TENON_PARAMETER(scale_tril)        ///< The Cholesky factor of the scale matrix.
  Tensor covariance_matrix() const;  ///< Scale matrices [.., n, n].
  Tensor precision_matrix() const;   ///< Their inverses.
};
/// Cholesky factors [.., dim, dim] of correlation matrices, whose density is proportional to the
/// determinant of the correlations to the power of concentration - 1 (Lewandowski, Kurowicka and
/// Joe, 2009).
struct TENON_API LKJCholesky : Distribution {
  explicit LKJCholesky(std::int64_t dim, const Argument& concentration = 1);  ///< dim >= 2.
  std::int64_t dim() const;       ///< The number of rows.
  TENON_PARAMETER(concentration)  ///< Above 0; 1 is uniform over correlation matrices.
};

// ---- Distributions made of others
/// The distribution whose last `axes` batch axes belong to the event: their log-probabilities and
/// entropies are summed.
struct TENON_API Independent : Distribution {
  Independent(const Distribution& base, int axes);  ///< 0 <= axes <= rank of the batch shape.
  Distribution base() const;                        ///< The distribution inside.
};
/// A mixture of the distributions along the last batch axis of `components`, with a Categorical of
/// weights over that axis.
struct TENON_API MixtureSameFamily : Distribution {
  /// `mixture` is a Categorical. Throws ValueError for another distribution, and ShapeError if the
  /// number of classes is not the size of the last batch axis.
  MixtureSameFamily(const Distribution& mixture, const Distribution& components);
  Distribution mixture() const;     ///< The weights.
  Distribution components() const;  ///< The components.
};

/// A map that can be inverted, of numbers or of vectors. Subclass it for transforms of your own.
class TENON_API TransformRule {
 public:
  virtual ~TransformRule();
  virtual const char* name() const = 0;               ///< How errors name the transform.
  virtual Tensor forward(const Tensor& x) const = 0;  ///< y, for x.
  virtual Tensor inverse(const Tensor& y) const = 0;  ///< x, for y.
  /// log |dy / dx|, without the event axes.
  virtual Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const = 0;
  virtual int domain_axes() const { return 0; }    ///< Event axes of x.
  virtual int codomain_axes() const { return 0; }  ///< Event axes of y.
  /// 1 where y grows with x, -1 where it falls; undefined if it does both. For cdf() and icdf().
  virtual Tensor sign() const { return {}; }
};

/// A map that can be inverted, of numbers or of vectors. A handle.
class TENON_API Transform {
 public:
  /// A transform with this rule.
  explicit Transform(std::shared_ptr<const TransformRule> rule);
  Tensor operator()(const Tensor& x) const { return rule_->forward(x); }  ///< y, for x.
  /// The transform from y to x.
  Transform inv() const;
  /// log |dy / dx|, without the event axes.
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const {
    return rule_->log_abs_det_jacobian(x, y);
  }
  /// The rule.
  const TransformRule& rule() const { return *rule_; }

 private:
  std::shared_ptr<const TransformRule> rule_;
};

/// y = |x|. Its inverse is y, and log_abs_det_jacobian() throws NotSupported.
TENON_API Transform abs_transform();
/// y = loc + scale · x, of numbers, or of values with `event_axes` event axes.
TENON_API Transform affine_transform(const Argument& loc, const Argument& scale,
                                     int event_axes = 0);
TENON_API Transform exp_transform();                            ///< y = e^x.
TENON_API Transform power_transform(const Argument& exponent);  ///< y = x^exponent, for x > 0.
TENON_API Transform sigmoid_transform();                        ///< y = sigmoid(x).
TENON_API Transform tanh_transform();                           ///< y = tanh(x).
TENON_API Transform softplus_transform();                       ///< y = log(1 + e^x).
/// Vectors [.., n] to probabilities [.., n + 1], by breaking a stick of length 1 n times.
TENON_API Transform stick_breaking_transform();
/// Vectors to probabilities [.., n]: their softmax. Its inverse is the logarithm, and
/// log_abs_det_jacobian() throws NotSupported, because the sum of x is lost.
TENON_API Transform softmax_transform();
/// Vectors [.., n (n - 1) / 2] to the Cholesky factors [.., n, n] of correlation matrices.
TENON_API Transform corr_cholesky_transform();
/// Matrices to lower triangular ones with a positive diagonal: e to the power of the diagonal, and
/// the numbers below it. log_abs_det_jacobian() throws NotSupported, because the numbers above the
/// diagonal are lost.
TENON_API Transform lower_cholesky_transform();
/// Matrices to symmetric positive definite ones: L Lᵀ for L = lower_cholesky_transform()(x).
TENON_API Transform positive_definite_transform();
/// y = d.cdf(x), for a distribution of numbers that has cdf() and icdf(). Throws NotSupported for
/// others. PyTorch: `CumulativeDistributionTransform`.
TENON_API Transform cumulative_distribution_transform(const Distribution& d);
/// Values with the event shape `from` to the event shape `to`, of as many numbers. PyTorch:
/// `ReshapeTransform`.
TENON_API Transform reshape_transform(const Shape& from, const Shape& to);
/// Part k of x along a negative axis by transform k. The transforms are of numbers, and part k has
/// lengths[k] numbers. PyTorch: `CatTransform`.
TENON_API Transform concat_transform(std::vector<Transform> transforms, const Ints& lengths,
                                     int axis = -1);
/// Slice k of x along a negative axis by transform k, of numbers. PyTorch: `StackTransform`.
TENON_API Transform stack_transform(std::vector<Transform> transforms, int axis = -1);
/// The transforms one after another, the first one first. PyTorch: `ComposeTransform`.
TENON_API Transform compose(std::vector<Transform> transforms);
/// The transform whose last `axes` batch axes belong to the event. PyTorch: `IndependentTransform`.
TENON_API Transform independent_transform(const Transform& transform, int axes);

/// The distribution of transform(x) for x from `base`.
struct TENON_API TransformedDistribution : Distribution {
  TransformedDistribution(const Distribution& base, const Transform& transform);  ///< One.
  TransformedDistribution(const Distribution& base,
                          std::vector<Transform> transforms);  ///< One after another.
  Distribution base() const;                                   ///< The distribution of x.
};

/// Probabilities [.., n + 1] that stick_breaking_transform() makes of normal numbers [.., n].
struct TENON_API LogisticNormal : TransformedDistribution {
  LogisticNormal(const Argument& loc, const Argument& scale);  ///< scale > 0.
  Tensor loc() const;                                          ///< The means of the normal numbers.
  Tensor scale() const;  ///< The standard deviations of the normal numbers.
};

#undef TENON_PARAMETER

}  // namespace distributions
}  // namespace tenon
