// Layers that are used less often: activations with arguments, distances of two inputs, the
// adaptive softmax. Names, shapes and defaults of parameters are PyTorch's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/elementwise.h>
#include <tenon/functional.h>
#include <tenon/nn.h>

namespace tenon::nn {

// ---- Activations
#define TENON_ACTIVATION(Name, expression)                                \
  class TENON_API Name : public Module {                                  \
   public:                                                                \
    /** Creates the layer. */                                             \
    Name() = default;                                                     \
    Tensor forward(const Tensor& x) const override { return expression; } \
    std::string describe() const override { return #Name "()"; }          \
  }
/// Layer form of tanhshrink().
TENON_ACTIVATION(Tanhshrink, tanhshrink(x));
/// softmax() over the channels of x [N, C, H, W] or [C, H, W].
TENON_ACTIVATION(Softmax2d, softmax(x, -3));
#undef TENON_ACTIVATION
/// Layer form of softmin().
class TENON_API Softmin : public Module {
 public:
  /// The axis.
  explicit Softmin(int axis = -1) : axis_(axis) {}
  Tensor forward(const Tensor& x) const override { return softmin(x, axis_); }
  std::string describe() const override;

 private:
  int axis_;
};
/// Layer form of softshrink().
class TENON_API Softshrink : public Module {
 public:
  /// The argument of softshrink(), at least 0.
  explicit Softshrink(double lambd = 0.5) : lambd_(lambd) {}
  Tensor forward(const Tensor& x) const override { return softshrink(x, lambd_); }
  std::string describe() const override;

 private:
  double lambd_;
};
/// Layer form of hardshrink().
class TENON_API Hardshrink : public Module {
 public:
  /// The argument of hardshrink().
  explicit Hardshrink(double lambd = 0.5) : lambd_(lambd) {}
  Tensor forward(const Tensor& x) const override { return hardshrink(x, lambd_); }
  std::string describe() const override;

 private:
  double lambd_;
};
/// Layer form of threshold().
class TENON_API Threshold : public Module {
 public:
  /// The arguments of threshold().
  Threshold(double threshold, double value) : threshold_(threshold), value_(value) {}
  Tensor forward(const Tensor& x) const override { return threshold(x, threshold_, value_); }
  std::string describe() const override;

 private:
  double threshold_, value_;
};

// ---- Of two inputs
/// Layer form of cosine_similarity().
class TENON_API CosineSimilarity : public ModuleOf<CosineSimilarity> {
 public:
  /// The axis of the vectors, and the smallest norm.
  explicit CosineSimilarity(int axis = 1, double eps = 1e-8) : axis_(axis), eps_(eps) {}
  /// The cosines of the vectors of a and b.
  Tensor forward(const Tensor& a, const Tensor& b) const {
    return cosine_similarity(a, b, axis_, eps_);
  }
  std::string describe() const override;

 private:
  int axis_;
  double eps_;
};
/// Layer form of pairwise_distance().
class TENON_API PairwiseDistance : public ModuleOf<PairwiseDistance> {
 public:
  /// The exponent of the norm, what is added to differences, and whether the axis stays with
  /// size 1.
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false)
      : p_(p), eps_(eps), keepdim_(keepdim) {}
  /// The distances of the rows of a and b.
  Tensor forward(const Tensor& a, const Tensor& b) const {
    return pairwise_distance(a, b, p_, eps_, keepdim_);
  }
  std::string describe() const override;

 private:
  double p_, eps_;
  bool keepdim_;
};

// ---- Adaptive softmax
/// Options of AdaptiveLogSoftmaxWithLoss.
struct AdaptiveSoftmaxOptions {
  double div_value = 4;           ///< Each cluster's features are this many times fewer.
  bool head_bias = false;         ///< Add a bias to the scores of the head.
  OptionalGenerator generator{};  ///< For the initial values.
};
/// What AdaptiveLogSoftmaxWithLoss returns.
struct AdaptiveSoftmaxResult {
  Tensor output;  ///< Log-probability of each target, [N] or [].
  Tensor loss;    ///< Their mean with the sign changed, a scalar.
};
/// Softmax over many classes that are sorted by frequency, in clusters (Grave et al., "Efficient
/// softmax approximation for GPUs", 2017). The head scores the classes below cutoffs[0], and one
/// entry for each cluster; rare clusters have fewer features. Parameters are head.weight
/// (head.bias) and tail.K.0.weight, tail.K.1.weight.
///
/// Every cluster scores every row, because shapes do not depend on values here. So the saving is in
/// parameters, not in time.
class TENON_API AdaptiveLogSoftmaxWithLoss : public ModuleOf<AdaptiveLogSoftmaxWithLoss> {
 public:
  /// `cutoffs` are the first classes of the clusters, ascending, above 0 and below `classes`.
  /// Throws ValueError for others.
  AdaptiveLogSoftmaxWithLoss(std::int64_t features, std::int64_t classes, const Ints& cutoffs,
                             const AdaptiveSoftmaxOptions& options = {});
  /// x [N, features] and classes [N], or [features] and []. On evaluation, a class out of range is
  /// a ValueError.
  AdaptiveSoftmaxResult forward(const Tensor& x, const Tensor& target) const;
  /// Log-probabilities of all classes: x [.., features] to [.., classes].
  Tensor log_prob(const Tensor& x) const;
  /// The most probable class of each row: x [.., features] to int64 [..].
  Tensor predict(const Tensor& x) const;
  std::string describe() const override;

 private:
  std::int64_t features_, classes_;
  Ints cutoffs_;
  Linear head_;
  ModuleList tail_;
};

}  // namespace tenon::nn
