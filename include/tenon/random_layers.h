// Layers for functions of several headers: dropout for selu(), random slopes, fractional pooling,
// the bilinear map, cross entropy with its linear layer. Names, shapes and defaults are PyTorch's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tenon/elementwise.h>
#include <tenon/functional.h>
#include <tenon/losses.h>
#include <tenon/nn.h>
#include <tenon/pooling.h>

namespace tenon::nn {

// ---- Random in training mode
/// Layer form of rrelu(): random slopes in training mode, their mean in evaluation mode.
class TENON_API RReLU : public Module {
 public:
  /// The limits of the slopes. Throws ValueError unless lower <= upper.
  explicit RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3,
                 const OptionalGenerator& generator = {});
  Tensor forward(const Tensor& x) const override {
    return rrelu(x, lower_, upper_, is_training(), generator_);
  }
  std::string describe() const override;

 private:
  double lower_, upper_;
  OptionalGenerator generator_;
};
#define TENON_ALPHA_DROPOUT(Name, function)                                      \
  class TENON_API Name : public Module {                                         \
   public:                                                                       \
    /** Dropout with probability `p`. Throws ValueError for p outside [0, 1]. */ \
    explicit Name(double p = 0.5, const OptionalGenerator& generator = {});      \
    Tensor forward(const Tensor& x) const override {                             \
      return function(x, p_, is_training(), generator_);                         \
    }                                                                            \
    std::string describe() const override;                                       \
                                                                                 \
   private:                                                                      \
    double p_;                                                                   \
    OptionalGenerator generator_;                                                \
  }
/// Layer form of alpha_dropout(), in training mode.
TENON_ALPHA_DROPOUT(AlphaDropout, alpha_dropout);
/// Layer form of feature_alpha_dropout(), in training mode.
TENON_ALPHA_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout);
#undef TENON_ALPHA_DROPOUT

/// Options of FractionalMaxPool2d and FractionalMaxPool3d. `Sizes` is a Pair or a Triple.
template <class Sizes>
struct FractionalPoolOptions {
  std::optional<Sizes> output{};  ///< Sizes of the output; unset: `ratio` of the input's.
  double ratio = 0.5;             ///< Above 0 and below 1; on each axis.
  OptionalGenerator generator{};  ///< For the places of the windows.
};
#define TENON_FRACTIONAL_POOL(Name, Sizes, function)                               \
  class TENON_API Name : public Module {                                           \
   public:                                                                         \
    /** Windows of size `kernel`. Throws ValueError for an option out of range. */ \
    explicit Name(Sizes kernel, const FractionalPoolOptions<Sizes>& options = {}); \
    Tensor forward(const Tensor& x) const override;                                \
    std::string describe() const override;                                         \
                                                                                   \
   private:                                                                        \
    Sizes kernel_;                                                                 \
    FractionalPoolOptions<Sizes> options_;                                         \
  }
/// The maxima of fractional_max_pool2d().
TENON_FRACTIONAL_POOL(FractionalMaxPool2d, Pair, fractional_max_pool2d);
/// The maxima of fractional_max_pool3d().
TENON_FRACTIONAL_POOL(FractionalMaxPool3d, Triple, fractional_max_pool3d);
#undef TENON_FRACTIONAL_POOL

// ---- With parameters
/// Layer form of bilinear(): a [.., in1], b [.., in2] to [.., out]; weight [out, in1, in2], bias
/// [out].
class TENON_API Bilinear : public ModuleOf<Bilinear> {
 public:
  /// Throws ValueError for a number of features below 1.
  Bilinear(std::int64_t in1, std::int64_t in2, std::int64_t out,
           const ParameterOptions& options = {});
  /// The bilinear map of a and b.
  Tensor forward(const Tensor& a, const Tensor& b) const { return bilinear(a, b, weight_, bias_); }
  std::string describe() const override;

 private:
  Tensor weight_, bias_;
};
/// linear_cross_entropy() with a layer "linear".
class TENON_API LinearCrossEntropyLoss : public ModuleOf<LinearCrossEntropyLoss> {
 public:
  /// A last layer from `features` to `classes`, by default without a bias.
  LinearCrossEntropyLoss(std::int64_t features, std::int64_t classes,
                         const ClassLossOptions& loss = {},
                         const LinearOptions& layer = {.bias = false});
  /// The loss of x [N, features] for the classes [N].
  Tensor forward(const Tensor& x, const Tensor& target) const {
    return linear_cross_entropy(x, linear_.weight(), target, loss_, linear_.bias());
  }
  std::string describe() const override;

 private:
  Linear linear_;
  ClassLossOptions loss_;
};

// ---- Losses
/// triplet_margin_with_distance_loss() as an object.
struct TripletMarginWithDistanceLoss : TripletDistanceOptions {
  /// The loss of embeddings.
  Tensor operator()(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const {
    return triplet_margin_with_distance_loss(anchor, positive, negative, *this);
  }
};

}  // namespace tenon::nn
