// More layers: convolutions over one and three axes, transposed convolutions, instance
// normalisation, embedding bags, channel dropout, activations with parameters, losses as objects.
// Names, shapes and defaults of parameters are PyTorch's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <tenon/functional.h>
#include <tenon/nn.h>
#include <tenon/pooling_layers.h>

namespace tenon::nn {

// ---- Convolutions
// Constructors throw ValueError if channels, groups or a kernel size are below 1 and if the groups
// do not divide the channels. forward() throws as the function of the same name.
/// Convolution over one axis: x [N, in, L] to [N, out, P]; weight [out, in / groups, kernel], bias
/// [out]. P is (L + 2 · padding - dilation · (kernel - 1) - 1) / stride + 1, rounded down.
class TENON_API Conv1d : public Module {
 public:
  /// A layer of `in` input and `out` output channels, with PyTorch's initial values.
  Conv1d(std::int64_t in, std::int64_t out, std::int64_t kernel, const Conv1dOptions& options = {},
         const ParameterOptions& parameters = {});
  /// The weight.
  const Tensor& weight() const { return weight_; }
  /// The bias; undefined without one.
  const Tensor& bias() const { return bias_; }
  Tensor forward(const Tensor& x) const override { return conv1d(x, weight_, bias_, options_); }
  std::string describe() const override;

 private:
  Conv1dOptions options_;
  Tensor weight_, bias_;
};
/// Convolution over three axes: x [N, in, D, H, W] to [N, out, …], each size as for Conv1d; weight
/// [out, in / groups, kernel…], bias [out].
class TENON_API Conv3d : public Module {
 public:
  /// A layer of `in` input and `out` output channels, with PyTorch's initial values.
  Conv3d(std::int64_t in, std::int64_t out, Triple kernel, const Conv3dOptions& options = {},
         const ParameterOptions& parameters = {});
  /// The weight.
  const Tensor& weight() const { return weight_; }
  /// The bias; undefined without one.
  const Tensor& bias() const { return bias_; }
  Tensor forward(const Tensor& x) const override { return conv3d(x, weight_, bias_, options_); }
  std::string describe() const override;

 private:
  Conv3dOptions options_;
  Tensor weight_, bias_;
};

/// Transposed convolution over one axis: x [N, in, L] to [N, out, P]; weight [in, out / groups,
/// kernel], bias [out]. P is stride · (L - 1) + dilation · (kernel - 1) + 1 - 2 · padding +
/// output_padding.
class TENON_API ConvTranspose1d : public Module {
 public:
  /// A layer of `in` input and `out` output channels, with PyTorch's initial values.
  ConvTranspose1d(std::int64_t in, std::int64_t out, std::int64_t kernel,
                  const ConvTranspose1dOptions& options = {},
                  const ParameterOptions& parameters = {});
  /// The weight.
  const Tensor& weight() const { return weight_; }
  /// The bias; undefined without one.
  const Tensor& bias() const { return bias_; }
  Tensor forward(const Tensor& x) const override {
    return conv_transpose1d(x, weight_, bias_, options_);
  }
  std::string describe() const override;

 private:
  ConvTranspose1dOptions options_;
  Tensor weight_, bias_;
};
/// Transposed convolution over two axes: x [N, in, H, W] to [N, out, …], each size as for
/// ConvTranspose1d; weight [in, out / groups, kernel…], bias [out].
class TENON_API ConvTranspose2d : public Module {
 public:
  /// A layer of `in` input and `out` output channels, with PyTorch's initial values.
  ConvTranspose2d(std::int64_t in, std::int64_t out, Pair kernel,
                  const ConvTranspose2dOptions& options = {},
                  const ParameterOptions& parameters = {});
  /// The weight.
  const Tensor& weight() const { return weight_; }
  /// The bias; undefined without one.
  const Tensor& bias() const { return bias_; }
  Tensor forward(const Tensor& x) const override {
    return conv_transpose2d(x, weight_, bias_, options_);
  }
  std::string describe() const override;

 private:
  ConvTranspose2dOptions options_;
  Tensor weight_, bias_;
};
/// Transposed convolution over three axes: x [N, in, D, H, W] to [N, out, …], each size as for
/// ConvTranspose1d; weight [in, out / groups, kernel…], bias [out].
class TENON_API ConvTranspose3d : public Module {
 public:
  /// A layer of `in` input and `out` output channels, with PyTorch's initial values.
  ConvTranspose3d(std::int64_t in, std::int64_t out, Triple kernel,
                  const ConvTranspose3dOptions& options = {},
                  const ParameterOptions& parameters = {});
  /// The weight.
  const Tensor& weight() const { return weight_; }
  /// The bias; undefined without one.
  const Tensor& bias() const { return bias_; }
  Tensor forward(const Tensor& x) const override {
    return conv_transpose3d(x, weight_, bias_, options_);
  }
  std::string describe() const override;

 private:
  ConvTranspose3dOptions options_;
  Tensor weight_, bias_;
};

// ---- Normalisation
/// Options of instance normalisation layers.
struct InstanceNormOptions {
  double eps = 1e-5;                 ///< Added to the variance.
  double momentum = 0.1;             ///< Weight of a new batch in the running statistics.
  bool affine = false;               ///< Learn a weight and a bias for each channel.
  bool track_running_stats = false;  ///< Update running statistics in training, use in evaluation.
};
/// Instance normalisation (Ulyanov et al., 2016) of each channel of each sample: x [N, C, …] or,
/// without a batch, [C, …]. Base of InstanceNorm1d, InstanceNorm2d and InstanceNorm3d. Throws
/// ShapeError for another shape of input, and ValueError if statistics of a channel with only one
/// value are needed.
class TENON_API InstanceNorm : public Module {
 public:
  /// The weight [C]; undefined if `affine` is off.
  const Tensor& weight() const { return weight_; }
  /// The bias [C]; undefined if `affine` is off.
  const Tensor& bias() const { return bias_; }
  /// The running mean [C]; undefined if `track_running_stats` is off.
  const Tensor& running_mean() const { return running_mean_; }
  /// The running variance [C]; undefined if `track_running_stats` is off.
  const Tensor& running_var() const { return running_var_; }
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 protected:
  /// A layer with this name that takes inputs of `rank` axes, or one less without a batch.
  InstanceNorm(const char* kind, int rank, std::int64_t channels,
               const InstanceNormOptions& options);

 private:
  Tensor normalised(const Tensor& x) const;
  void renew(const Tensor& x) const;
  const char* kind_;
  int rank_;
  std::int64_t channels_;
  InstanceNormOptions options_;
  Tensor weight_, bias_, running_mean_, running_var_, num_batches_tracked_;
};
/// Instance normalisation of x [N, C, L] or [C, L]; the result has the same shape.
class TENON_API InstanceNorm1d : public InstanceNorm {
 public:
  /// A layer for this number of channels.
  explicit InstanceNorm1d(std::int64_t channels, const InstanceNormOptions& options = {})
      : InstanceNorm("InstanceNorm1d", 3, channels, options) {}
};
/// Instance normalisation of x [N, C, H, W] or [C, H, W]; the result has the same shape.
class TENON_API InstanceNorm2d : public InstanceNorm {
 public:
  /// A layer for this number of channels.
  explicit InstanceNorm2d(std::int64_t channels, const InstanceNormOptions& options = {})
      : InstanceNorm("InstanceNorm2d", 4, channels, options) {}
};
/// Instance normalisation of x [N, C, D, H, W] or [C, D, H, W]; the result has the same shape.
class TENON_API InstanceNorm3d : public InstanceNorm {
 public:
  /// A layer for this number of channels.
  explicit InstanceNorm3d(std::int64_t channels, const InstanceNormOptions& options = {})
      : InstanceNorm("InstanceNorm3d", 5, channels, options) {}
};

// ---- Embedding bags
/// embedding_bag() of a parameter weight [count, size]: index [bags, length], or a vector with
/// offsets [bags], to [bags, size].
class TENON_API EmbeddingBag : public ModuleOf<EmbeddingBag> {
 public:
  /// A table of `count` rows of `size` values.
  EmbeddingBag(std::int64_t count, std::int64_t size, const EmbeddingBagOptions& options = {},
               const TableOptions& table = {});
  /// The weight.
  const Tensor& weight() const { return weight_; }
  /// The combined rows of each bag. `per_sample_weights` has the shape of `index`.
  Tensor forward(const Tensor& index, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {}) const;
  std::string describe() const override;

 private:
  EmbeddingBagOptions options_;
  Tensor weight_;
};

// ---- Channel dropout
/// In training mode, sets each channel of each sample of x [N, C, …] to zero with probability `p`
/// and divides the others by 1 - p. In evaluation mode, returns the input. Base of Dropout1d,
/// Dropout2d and Dropout3d. Constructors throw ValueError for p outside [0, 1]; forward() throws
/// ShapeError for another number of axes.
class TENON_API ChannelDropout : public Module {
 public:
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 protected:
  /// A layer with this name that takes inputs of `rank` axes.
  ChannelDropout(const char* kind, int rank, double p, const OptionalGenerator& generator);

 private:
  const char* kind_;
  int rank_;
  double p_;
  OptionalGenerator generator_;
};
/// Channel dropout of x [N, C, L].
class TENON_API Dropout1d : public ChannelDropout {
 public:
  /// Dropout with probability `p`.
  explicit Dropout1d(double p = 0.5, const OptionalGenerator& generator = {})
      : ChannelDropout("Dropout1d", 3, p, generator) {}
};
/// Channel dropout of x [N, C, H, W].
class TENON_API Dropout2d : public ChannelDropout {
 public:
  /// Dropout with probability `p`.
  explicit Dropout2d(double p = 0.5, const OptionalGenerator& generator = {})
      : ChannelDropout("Dropout2d", 4, p, generator) {}
};
/// Channel dropout of x [N, C, D, H, W].
class TENON_API Dropout3d : public ChannelDropout {
 public:
  /// Dropout with probability `p`.
  explicit Dropout3d(double p = 0.5, const OptionalGenerator& generator = {})
      : ChannelDropout("Dropout3d", 5, p, generator) {}
};

// ---- Activations
#define TENON_ACTIVATION(Name, expression)                                \
  class TENON_API Name : public Module {                                  \
   public:                                                                \
    /** Creates the layer. */                                             \
    Name() = default;                                                     \
    Tensor forward(const Tensor& x) const override { return expression; } \
    std::string describe() const override { return #Name "()"; }          \
  }
/// Layer form of selu().
TENON_ACTIVATION(SELU, selu(x));
/// Layer form of hardswish().
TENON_ACTIVATION(Hardswish, hardswish(x));
/// Layer form of logsigmoid().
TENON_ACTIVATION(LogSigmoid, logsigmoid(x));
#undef TENON_ACTIVATION
/// Layer form of celu().
class TENON_API CELU : public Module {
 public:
  /// The argument of celu().
  explicit CELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& x) const override { return celu(x, alpha_); }
  std::string describe() const override;

 private:
  double alpha_;
};
/// Layer form of glu().
class TENON_API GLU : public Module {
 public:
  /// The axis that is halved.
  explicit GLU(int axis = -1) : axis_(axis) {}
  Tensor forward(const Tensor& x) const override { return glu(x, axis_); }
  std::string describe() const override;

 private:
  int axis_;
};
/// prelu() with learned slopes: weight [count], one slope for all elements or one for each channel
/// of x [N, C, …] (He et al., 2015).
class TENON_API PReLU : public Module {
 public:
  /// `count` slopes with this initial value.
  explicit PReLU(std::int64_t count = 1, double slope = 0.25);
  /// The weight.
  const Tensor& weight() const { return weight_; }
  Tensor forward(const Tensor& x) const override { return prelu(x, weight_); }
  std::string describe() const override;

 private:
  Tensor weight_;
};

// ---- Losses as objects: (output, target) to a scalar, or to one loss each
/// Negative log likelihood as an object; see nll_loss().
struct NLLLoss {
  Tensor weight{};                             ///< Class weights [C]; means are weighted by them.
  std::optional<std::int64_t> ignore_index{};  ///< Targets with this class are ignored.
  Reduction reduction = Reduction::Mean;       ///< How the losses are combined.
  /// The loss of an output.
  Tensor operator()(const Tensor& logp, const Tensor& target) const {
    return nll_loss(logp, target,
                    {.reduction = reduction, .weight = weight, .ignore_index = ignore_index});
  }
  /// The weight of each target in the mean (see Loss).
  Tensor counts(const Tensor& target) const {
    return CrossEntropyLoss{.weight = weight, .ignore_index = ignore_index}.counts(target);
  }
};
/// smooth_l1_loss() as an object.
struct SmoothL1Loss {
  double beta = 1;                        ///< Error at which the loss becomes linear.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of an output.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return smooth_l1_loss(output, target, reduction, beta);
  }
};
/// huber_loss() as an object.
struct HuberLoss {
  double delta = 1;                       ///< Error at which the loss becomes linear.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of an output.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return huber_loss(output, target, reduction, delta);
  }
};
/// Kullback-Leibler divergence as an object; see kl_div().
struct KLDivLoss {
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  bool log_target = false;                ///< Targets are log-probabilities.
  /// The loss of an output.
  Tensor operator()(const Tensor& logp, const Tensor& target) const {
    return kl_div(logp, target, reduction, log_target);
  }
};
/// Binary cross entropy of probabilities as an object; see binary_cross_entropy().
struct BCELoss {
  Tensor weight{};                        ///< Weight of each element; broadcasts.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of an output.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return binary_cross_entropy(output, target, {.reduction = reduction, .weight = weight});
  }
};
/// Binary cross entropy of logits as an object; see binary_cross_entropy_with_logits().
struct BCEWithLogitsLoss {
  Tensor weight{};                        ///< Weight of each element; broadcasts.
  Tensor pos_weight{};                    ///< Weight of positive targets.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of an output.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return binary_cross_entropy_with_logits(
        output, target, {.reduction = reduction, .weight = weight, .pos_weight = pos_weight});
  }
};

}  // namespace tenon::nn
