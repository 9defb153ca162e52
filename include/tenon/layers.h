// Layers beside those of nn.h: convolutions over one and three axes and transposed ones, instance
// norm, bags of rows, dropout of channels, activations with parameters or arguments, losses as
// objects. Names, shapes and defaults of parameters are PyTorch's.
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
// Constructors throw ValueError for channels, groups or a kernel below 1 and for channels that do
// not divide into the groups; forward() throws as the function of the same name.
/// `Sizes` is a number (one axis), a Pair or a Triple.
template <class Sizes>
struct ConvOptionsOf {
  Sizes stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Generator* generator = nullptr;  ///< of the initial values
};
/// x [N, in, L] to [N, out, P]; weight [out, in / groups, kernel], bias [out]. P is
/// (L + 2 · padding - dilation · (kernel - 1) - 1) / stride + 1, rounded down.
class TENON_API Conv1d : public Module {
 public:
  Conv1d(std::int64_t in, std::int64_t out, std::int64_t kernel,
         const ConvOptionsOf<std::int64_t>& options = {});
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined without one
  Tensor forward(const Tensor& x) const override { return conv1d(x, weight_, bias_, options_); }
  std::string describe() const override;

 private:
  Conv1dOptions options_;
  Tensor weight_, bias_;
};
/// x [N, in, D, H, W] to [N, out, …], each size as of Conv1d; weight [out, in / groups, kernel…],
/// bias [out].
class TENON_API Conv3d : public Module {
 public:
  Conv3d(std::int64_t in, std::int64_t out, Triple kernel,
         const ConvOptionsOf<Triple>& options = {});
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined without one
  Tensor forward(const Tensor& x) const override { return conv3d(x, weight_, bias_, options_); }
  std::string describe() const override;

 private:
  Conv3dOptions options_;
  Tensor weight_, bias_;
};

template <class Sizes>
struct ConvTransposeOptionsOf {
  Sizes stride = 1, padding = 0;
  Sizes output_padding = 0;  ///< added to the end of the result
  Sizes dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Generator* generator = nullptr;  ///< of the initial values
};
/// x [N, in, L] to [N, out, P]; weight [in, out / groups, kernel], bias [out]. P is
/// stride · (L - 1) + dilation · (kernel - 1) + 1 - 2 · padding + output_padding.
class TENON_API ConvTranspose1d : public Module {
 public:
  ConvTranspose1d(std::int64_t in, std::int64_t out, std::int64_t kernel,
                  const ConvTransposeOptionsOf<std::int64_t>& options = {});
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined without one
  Tensor forward(const Tensor& x) const override {
    return conv_transpose1d(x, weight_, bias_, options_);
  }
  std::string describe() const override;

 private:
  ConvTranspose1dOptions options_;
  Tensor weight_, bias_;
};
/// x [N, in, H, W] to [N, out, …], each size as of ConvTranspose1d; weight
/// [in, out / groups, kernel…], bias [out].
class TENON_API ConvTranspose2d : public Module {
 public:
  ConvTranspose2d(std::int64_t in, std::int64_t out, Pair kernel,
                  const ConvTransposeOptionsOf<Pair>& options = {});
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined without one
  Tensor forward(const Tensor& x) const override {
    return conv_transpose2d(x, weight_, bias_, options_);
  }
  std::string describe() const override;

 private:
  ConvTranspose2dOptions options_;
  Tensor weight_, bias_;
};
/// x [N, in, D, H, W] to [N, out, …], each size as of ConvTranspose1d; weight
/// [in, out / groups, kernel…], bias [out].
class TENON_API ConvTranspose3d : public Module {
 public:
  ConvTranspose3d(std::int64_t in, std::int64_t out, Triple kernel,
                  const ConvTransposeOptionsOf<Triple>& options = {});
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined without one
  Tensor forward(const Tensor& x) const override {
    return conv_transpose3d(x, weight_, bias_, options_);
  }
  std::string describe() const override;

 private:
  ConvTranspose3dOptions options_;
  Tensor weight_, bias_;
};

// ---- Normalisation
struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;             ///< of running statistics
  bool affine = false;               ///< a weight and a bias a channel
  bool track_running_stats = false;  ///< renewed while training, used in evaluation
};
/// Normalises each channel of each sample: x [N, C, …] or, without a batch, [C, …]. Throws
/// ShapeError for another input, ValueError for one value a channel where its statistics are taken.
class TENON_API InstanceNorm : public Module {
 public:
  const Tensor& weight() const { return weight_; }  ///< [C]; undefined without affine
  const Tensor& bias() const { return bias_; }
  const Tensor& running_mean() const { return running_mean_; }  ///< [C]; undefined untracked
  const Tensor& running_var() const { return running_var_; }
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 protected:
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
/// x [N, C, L] or [C, L].
class TENON_API InstanceNorm1d : public InstanceNorm {
 public:
  explicit InstanceNorm1d(std::int64_t channels, const InstanceNormOptions& options = {})
      : InstanceNorm("InstanceNorm1d", 3, channels, options) {}
};
/// x [N, C, H, W] or [C, H, W].
class TENON_API InstanceNorm2d : public InstanceNorm {
 public:
  explicit InstanceNorm2d(std::int64_t channels, const InstanceNormOptions& options = {})
      : InstanceNorm("InstanceNorm2d", 4, channels, options) {}
};
/// x [N, C, D, H, W] or [C, D, H, W].
class TENON_API InstanceNorm3d : public InstanceNorm {
 public:
  explicit InstanceNorm3d(std::int64_t channels, const InstanceNormOptions& options = {})
      : InstanceNorm("InstanceNorm3d", 5, channels, options) {}
};

// ---- Bags of rows
struct EmbeddingBagOptions {
  std::optional<std::int64_t> padding_index{};  ///< to scale_grad_by_freq: as EmbeddingOptions
  std::optional<double> max_norm{};
  double norm_type = 2;
  bool scale_grad_by_freq = false;
  BagMode mode = BagMode::Mean;
  bool include_last_offset = false;
  Generator* generator = nullptr;  ///< of the initial values
  Tensor weight{};  ///< initial values [count, size]; undefined: drawn from a normal distribution
};
/// embedding_bag() of a parameter weight [count, size]: index [bags, length], or a vector with
/// offsets [bags], to [bags, size].
class TENON_API EmbeddingBag : public ModuleOf<EmbeddingBag> {
 public:
  EmbeddingBag(std::int64_t count, std::int64_t size, const EmbeddingBagOptions& options = {});
  const Tensor& weight() const { return weight_; }
  Tensor forward(const Tensor& index, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {}) const;
  std::string describe() const override;

 private:
  EmbeddingBagOptions options_;
  Tensor weight_;
};

// ---- Dropout of whole channels
/// While training each channel of each sample of x [N, C, …] is zeros with probability p, the
/// others are divided by 1 - p; the identity otherwise. Constructors throw ValueError for p outside
/// [0, 1], forward() ShapeError for another number of axes.
class TENON_API ChannelDropout : public Module {
 public:
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 protected:
  ChannelDropout(const char* kind, int rank, double p, Generator* generator);

 private:
  const char* kind_;
  int rank_;
  double p_;
  Generator* generator_;
};
/// x [N, C, L] to the same shape.
class TENON_API Dropout1d : public ChannelDropout {
 public:
  explicit Dropout1d(double p = 0.5, Generator* generator = nullptr)
      : ChannelDropout("Dropout1d", 3, p, generator) {}
};
/// x [N, C, H, W] to the same shape.
class TENON_API Dropout2d : public ChannelDropout {
 public:
  explicit Dropout2d(double p = 0.5, Generator* generator = nullptr)
      : ChannelDropout("Dropout2d", 4, p, generator) {}
};
/// x [N, C, D, H, W] to the same shape.
class TENON_API Dropout3d : public ChannelDropout {
 public:
  explicit Dropout3d(double p = 0.5, Generator* generator = nullptr)
      : ChannelDropout("Dropout3d", 5, p, generator) {}
};

// ---- Activations
#define TENON_ACTIVATION(Name, expression)                                \
  class TENON_API Name : public Module {                                  \
   public:                                                                \
    Name() = default;                                                     \
    Tensor forward(const Tensor& x) const override { return expression; } \
    std::string describe() const override { return #Name "()"; }          \
  }
TENON_ACTIVATION(SELU, selu(x));
TENON_ACTIVATION(Hardswish, hardswish(x));
TENON_ACTIVATION(LogSigmoid, logsigmoid(x));
#undef TENON_ACTIVATION
class TENON_API CELU : public Module {
 public:
  explicit CELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& x) const override { return celu(x, alpha_); }
  std::string describe() const override;

 private:
  double alpha_;
};
class TENON_API GLU : public Module {
 public:
  explicit GLU(int axis = -1) : axis_(axis) {}
  Tensor forward(const Tensor& x) const override { return glu(x, axis_); }
  std::string describe() const override;

 private:
  int axis_;
};
/// weight [count]: a slope for all elements, or one a channel of x [N, C, …].
class TENON_API PReLU : public Module {
 public:
  explicit PReLU(std::int64_t count = 1, double slope = 0.25);
  const Tensor& weight() const { return weight_; }
  Tensor forward(const Tensor& x) const override { return prelu(x, weight_); }
  std::string describe() const override;

 private:
  Tensor weight_;
};

// ---- Losses as objects: (output, target) to a scalar, or to one loss each
struct NLLLoss {
  Tensor weight{};                             ///< [C]: of each class; means are weighted by it
  std::optional<std::int64_t> ignore_index{};  ///< targets that count for nothing
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& logp, const Tensor& target) const {
    return nll_loss(logp, target,
                    {.reduction = reduction, .weight = weight, .ignore_index = ignore_index});
  }
  Tensor counts(const Tensor& target) const {
    return CrossEntropyLoss{.weight = weight, .ignore_index = ignore_index}.counts(target);
  }
};
struct SmoothL1Loss {
  double beta = 1;
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return smooth_l1_loss(output, target, reduction, beta);
  }
};
struct HuberLoss {
  double delta = 1;
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return huber_loss(output, target, reduction, delta);
  }
};
struct KLDivLoss {
  Reduction reduction = Reduction::Mean;
  bool log_target = false;
  Tensor operator()(const Tensor& logp, const Tensor& target) const {
    return kl_div(logp, target, reduction, log_target);
  }
};
struct BCELoss {
  Tensor weight{};  ///< of each element; broadcasts
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return binary_cross_entropy(output, target, {.reduction = reduction, .weight = weight});
  }
};
struct BCEWithLogitsLoss {
  Tensor weight{};      ///< of each element; broadcasts
  Tensor pos_weight{};  ///< of positive targets
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return binary_cross_entropy_with_logits(
        output, target, {.reduction = reduction, .weight = weight, .pos_weight = pos_weight});
  }
};

}  // namespace tenon::nn
