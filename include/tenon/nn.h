// Layers: initializers, the most common layers and losses. Names and shapes of
// parameters are PyTorch's. More layers are in layers.h, pooling_layers.h, recurrent.h and
// transformer.h; module.h explains how to write a new one.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/containers.h>
#include <tenon/module.h>
#include <tenon/ops.h>
#include <tenon/tensor.h>

namespace tenon::nn {

/// Computes the initial value of a parameter from its shape and the generator of its layer.
using Initializer = std::function<Tensor(const Shape&, const OptionalGenerator&)>;

/// Initial values of parameters; PyTorch's torch.nn.init. Random values come from `generator`, or
/// from Generator::current() without one.
namespace init {
/// Which size the Kaiming initializers divide by.
enum class FanMode {
  In,  ///< The number of inputs of a unit.
  Out  ///< The number of outputs of a unit.
};
/// Fan-in and fan-out, the number of inputs and outputs of one unit of a weight [out, in, kernel…].
/// Throws ShapeError for a rank below 2.
TENON_API std::pair<std::int64_t, std::int64_t> fans(const Shape& weight);
/// Recommended scale for an activation: sqrt(2) for "relu", 5/3 for "tanh", 1 for "linear" and
/// "sigmoid", sqrt(2 / (1 + a²)) for "leaky_relu". Throws ValueError for another name. PyTorch:
/// `calculate_gain`.
TENON_API double gain(const std::string& nonlinearity, double a = 0.01);
/// One value everywhere; float32, as all initial values.
TENON_API Tensor constant(const Shape& shape, double value);
/// Uniform in [low, high).
TENON_API Tensor uniform(const Shape& shape, double low, double high,
                         const OptionalGenerator& generator = {});
/// Normal with this mean and standard deviation.
TENON_API Tensor normal(const Shape& shape, double mean = 0, double stddev = 1,
                        const OptionalGenerator& generator = {});
/// Uniform with variance 2 · gain² / (fan-in + fan-out) (Glorot and Bengio, 2010).
TENON_API Tensor xavier_uniform(const Shape& shape, double gain = 1,
                                const OptionalGenerator& generator = {});
/// Normal with variance 2 · gain² / (fan-in + fan-out) (Glorot and Bengio, 2010).
TENON_API Tensor xavier_normal(const Shape& shape, double gain = 1,
                               const OptionalGenerator& generator = {});
/// Uniform with variance 2 / ((1 + a²) · fan) (He et al., 2015), where `a` is the slope of a leaky
/// ReLU. PyTorch initializes weights of Linear and Conv2d with a = sqrt(5).
TENON_API Tensor kaiming_uniform(const Shape& shape, double a = 0, FanMode mode = FanMode::In,
                                 const OptionalGenerator& generator = {});
/// Normal with variance 2 / ((1 + a²) · fan) (He et al., 2015).
TENON_API Tensor kaiming_normal(const Shape& shape, double a = 0, FanMode mode = FanMode::In,
                                const OptionalGenerator& generator = {});
/// Normal with variance 1 / fan-in.
TENON_API Tensor lecun_normal(const Shape& shape, const OptionalGenerator& generator = {});
/// Uniform with variance 1 / fan-in.
TENON_API Tensor lecun_uniform(const Shape& shape, const OptionalGenerator& generator = {});
/// An initializer by name ("xavier_uniform", "kaiming_normal", …) with its defaults. Throws
/// ValueError with a similar name if there is none.
TENON_API Tensor by_name(const std::string& name, const Shape& shape,
                         const OptionalGenerator& generator = {});
}  // namespace init

// ---- Layers
/// Options of Linear.
struct LinearOptions {
  bool bias = true;               ///< Add a bias.
  OptionalGenerator generator{};  ///< For the initial values.
  Initializer weight_init{};      ///< The initial weight; empty: PyTorch's default.
  /// A parameter [out, in] of another module, used as this module's weight (tied weights).
  Tensor tied_weight{};
};
/// Fully connected layer, y = x · weightᵀ + bias: x [.., in] to [.., out]; weight [out, in], bias
/// [out].
class TENON_API Linear : public Module {
 public:
  /// A layer of `in` inputs and `out` outputs, with PyTorch's initial values.
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  /// The weight.
  const Tensor& weight() const { return weight_; }
  /// The bias; undefined without one.
  const Tensor& bias() const { return bias_; }
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Tensor weight_, bias_;
};

/// How a convolution creates its parameters.
struct ParameterOptions {
  bool bias = true;               ///< Add a bias.
  OptionalGenerator generator{};  ///< For the initial values.
  Initializer weight_init{};      ///< The initial weight; empty: PyTorch's default.
};
/// Convolution over two axes: x [N, in, H, W] to [N, out, P, Q]; weight [out, in / groups, kernel],
/// bias [out].
class TENON_API Conv2d : public Module {
 public:
  /// A layer of `in` input and `out` output channels, with PyTorch's initial values.
  Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dOptions& options = {},
         const ParameterOptions& parameters = {});
  /// The weight.
  const Tensor& weight() const { return weight_; }
  /// The bias; undefined without one.
  const Tensor& bias() const { return bias_; }
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Conv2dOptions options_;
  Tensor weight_, bias_;
};

/// Options of two-dimensional pooling layers.
struct PoolOptions {
  Pair stride = 0;                ///< Step of the window; 0: the window's size.
  Pair padding = 0;               ///< Padding on each side.
  Pair dilation = 1;              ///< Distance of the window's elements; maxima only.
  bool ceil_mode = false;         ///< Round the output size up instead of down.
  bool count_include_pad = true;  ///< Averages only: count the padding in the divisor.
  std::int64_t divisor = 0;       ///< Averages only: divisor of the sums; 0: the window's size.
};
/// Maximum of each window: x [N, C, H, W] to [N, C, P, Q].
class TENON_API MaxPool2d : public Module {
 public:
  /// Windows of size `kernel`.
  explicit MaxPool2d(Pair kernel, const PoolOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Pool2dOptions options_;
};
/// Mean of each window: x [N, C, H, W] to [N, C, P, Q].
class TENON_API AvgPool2d : public Module {
 public:
  /// Windows of size `kernel`.
  explicit AvgPool2d(Pair kernel, const PoolOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Pool2dOptions options_;
  std::int64_t divisor_;
};

/// Mean over windows whose sizes are chosen so that the output has `output` rows and columns: x [N,
/// C, H, W] of any size to [N, C, output].
class TENON_API AdaptiveAvgPool2d : public Module {
 public:
  /// Height and width of the output.
  explicit AdaptiveAvgPool2d(Pair output) : output_(output) {}
  Tensor forward(const Tensor& x) const override {
    return adaptive_avg_pool2d(x, {output_.h, output_.w});
  }
  std::string describe() const override;

 private:
  Pair output_;
};
/// Maximum over windows whose sizes are chosen as in AdaptiveAvgPool2d.
class TENON_API AdaptiveMaxPool2d : public Module {
 public:
  /// Height and width of the output.
  explicit AdaptiveMaxPool2d(Pair output) : output_(output) {}
  Tensor forward(const Tensor& x) const override {
    return adaptive_max_pool2d(x, {output_.h, output_.w});
  }
  std::string describe() const override;

 private:
  Pair output_;
};

/// Options of batch normalisation layers.
struct BatchNormOptions {
  double eps = 1e-5;  ///< Added to the variance.
  /// Weight of a new batch in the running statistics; none: the mean of all batches so far.
  std::optional<double> momentum = 0.1;
  bool affine = true;               ///< Learn a weight and a bias for each channel.
  bool track_running_stats = true;  ///< Off: use the batch's own statistics in evaluation too.
};
/// Batch normalisation (Ioffe and Szegedy, 2015) of each channel; base of BatchNorm1d, BatchNorm2d
/// and BatchNorm3d. In training mode it uses the statistics of the batch and updates the buffers
/// running_mean, running_var and num_batches_tracked as PyTorch does; in evaluation mode it uses
/// the running statistics. Throws ShapeError for another shape of input, and ValueError in training
/// if a channel has only one value.
class TENON_API BatchNorm : public Module {
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
  /// A layer with this name that takes inputs of min_rank to max_rank axes.
  BatchNorm(const char* kind, int min_rank, int max_rank, std::int64_t channels,
            const BatchNormOptions& options);

 private:
  void renew(const Moments& batch, std::int64_t count) const;
  const char* kind_;
  int min_rank_, max_rank_;
  std::int64_t channels_;
  BatchNormOptions options_;
  Tensor weight_, bias_, running_mean_, running_var_, num_batches_tracked_;
};
/// Batch normalisation of x [N, C] or [N, C, L]; the result has the same shape.
class TENON_API BatchNorm1d : public BatchNorm {
 public:
  /// A layer for this number of channels.
  explicit BatchNorm1d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm1d", 2, 3, channels, options) {}
};
/// Batch normalisation of x [N, C, H, W]; the result has the same shape.
class TENON_API BatchNorm2d : public BatchNorm {
 public:
  /// A layer for this number of channels.
  explicit BatchNorm2d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm2d", 4, 4, channels, options) {}
};
/// Batch normalisation of x [N, C, D, H, W]; the result has the same shape.
class TENON_API BatchNorm3d : public BatchNorm {
 public:
  /// A layer for this number of channels.
  explicit BatchNorm3d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm3d", 5, 5, channels, options) {}
};

/// Options of LayerNorm.
struct LayerNormOptions {
  double eps = 1e-5;               ///< Added to the variance.
  bool elementwise_affine = true;  ///< Learn a weight (and a bias).
  bool bias = true;                ///< Learn a bias.
};
/// Layer normalisation (Ba et al., 2016) over the last axes, whose sizes are `shape`. weight and
/// bias have that shape.
class TENON_API LayerNorm : public Module {
 public:
  /// Normalises over the last `shape.rank()` axes.
  explicit LayerNorm(const Shape& shape, const LayerNormOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Shape shape_;
  double eps_;
  Tensor weight_, bias_;
};

/// Options of GroupNorm.
struct GroupNormOptions {
  double eps = 1e-5;   ///< Added to the variance.
  bool affine = true;  ///< Learn a weight and a bias for each channel.
};
/// Group normalisation (Wu and He, 2018) of x [N, C, …] over groups of channels. weight and bias
/// are [C].
class TENON_API GroupNorm : public Module {
 public:
  /// `groups` must divide `channels`.
  GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  std::int64_t groups_, channels_;
  double eps_;
  Tensor weight_, bias_;
};

/// Options of LocalResponseNorm.
struct LocalResponseNormOptions {
  double alpha = 1e-4;  ///< Factor of the mean square.
  double beta = 0.75;   ///< Exponent.
  double k = 1;         ///< Added constant.
};
/// Local response normalisation over `size` neighbouring channels; see local_response_norm().
class TENON_API LocalResponseNorm : public Module {
 public:
  /// A layer that normalises over `size` channels.
  explicit LocalResponseNorm(std::int64_t size, const LocalResponseNormOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  std::int64_t size_;
  LocalResponseNormOptions options_;
};

/// How Embedding and EmbeddingBag create their weight.
struct TableOptions {
  OptionalGenerator generator{};  ///< For the initial values.
  Tensor weight{};  ///< Initial values [count, size]; undefined: normally distributed.
};
/// Rows of a weight [count, size] by index: int64 or int32 […] to […, size].
class TENON_API Embedding : public Module {
 public:
  /// A table of `count` rows of `size` values.
  Embedding(std::int64_t count, std::int64_t size, const EmbeddingOptions& options = {},
            const TableOptions& table = {});
  /// The weight.
  const Tensor& weight() const { return weight_; }
  Tensor forward(const Tensor& index) const override;
  std::string describe() const override;

 private:
  EmbeddingOptions options_;
  Tensor weight_;
};

/// Merges the axes start_axis to end_axis into one; by default all axes after the batch axis.
class TENON_API Flatten : public Module {
 public:
  /// First and last axis to merge.
  explicit Flatten(int start_axis = 1, int end_axis = -1) : start_(start_axis), end_(end_axis) {}
  Tensor forward(const Tensor& x) const override { return flatten(x, start_, end_); }
  std::string describe() const override;

 private:
  int start_, end_;
};

/// In training mode, sets each element to zero with probability `p` and scales the others by 1 / (1
/// - p) (Srivastava et al., 2014). In evaluation mode, returns the input.
class TENON_API Dropout : public Module {
 public:
  /// Dropout with probability `p`.
  explicit Dropout(double p = 0.5, const OptionalGenerator& generator = {});
  Tensor forward(const Tensor& x) const override {
    return dropout(x, p_, is_training(), generator_);
  }
  std::string describe() const override;

 private:
  double p_;
  OptionalGenerator generator_;
};

#define TENON_ACTIVATION(Name, expression)                                \
  class TENON_API Name : public Module {                                  \
   public:                                                                \
    /** Creates the layer. */                                             \
    Name() = default;                                                     \
    Tensor forward(const Tensor& x) const override { return expression; } \
    std::string describe() const override { return #Name "()"; }          \
  }
/// Returns the input.
TENON_ACTIVATION(Identity, x);
/// Layer form of relu().
TENON_ACTIVATION(ReLU, relu(x));
/// Layer form of relu6().
TENON_ACTIVATION(ReLU6, relu6(x));
/// Layer form of tanh().
TENON_ACTIVATION(Tanh, tanh(x));
/// Layer form of sigmoid().
TENON_ACTIVATION(Sigmoid, sigmoid(x));
/// Layer form of silu().
TENON_ACTIVATION(SiLU, silu(x));
/// Layer form of mish().
TENON_ACTIVATION(Mish, mish(x));
/// Layer form of softsign().
TENON_ACTIVATION(Softsign, softsign(x));
/// Layer form of hardsigmoid().
TENON_ACTIVATION(Hardsigmoid, hardsigmoid(x));
#undef TENON_ACTIVATION

#define TENON_ACTIVATION(Name, Type, parameter, standard, expression)     \
  class TENON_API Name : public Module {                                  \
   public:                                                                \
    /** Creates the layer with the argument of the function. */           \
    explicit Name(Type parameter = standard) : value_(parameter) {}       \
    Tensor forward(const Tensor& x) const override { return expression; } \
    std::string describe() const override;                                \
                                                                          \
   private:                                                               \
    Type value_;                                                          \
  }
/// Layer form of gelu().
TENON_ACTIVATION(GELU, bool, tanh_approximation, false, gelu(x, value_));
/// Layer form of leaky_relu().
TENON_ACTIVATION(LeakyReLU, double, negative_slope, 0.01, leaky_relu(x, value_));
/// Layer form of elu().
TENON_ACTIVATION(ELU, double, alpha, 1.0, elu(x, value_));
/// Layer form of softmax().
TENON_ACTIVATION(Softmax, int, axis, -1, softmax(x, value_));
/// Layer form of log_softmax().
TENON_ACTIVATION(LogSoftmax, int, axis, -1, log_softmax(x, value_));
#undef TENON_ACTIVATION

/// Layer form of softplus().
class TENON_API Softplus : public Module {
 public:
  /// The arguments of softplus().
  explicit Softplus(double beta = 1, double threshold = 20) : beta_(beta), threshold_(threshold) {}
  Tensor forward(const Tensor& x) const override { return softplus(x, beta_, threshold_); }
  std::string describe() const override;

 private:
  double beta_, threshold_;
};
/// x limited to [low, high]; the gradient is 0 at the limits, too.
class TENON_API Hardtanh : public Module {
 public:
  /// The limits. Throws ValueError unless low < high.
  explicit Hardtanh(double low = -1, double high = 1);
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  double low_, high_;
};

/// An activation layer by name: "relu", "tanh", "sigmoid", "gelu", "silu", "leaky_relu", "elu", …
/// Throws ValueError with a similar name if there is none.
TENON_API AnyModule activation(const std::string& name);

/// The two sums that make up the mean of a loss over a dataset. Both are float64 scalars.
struct LossTerms {
  Tensor total;    ///< Sum of the losses, each multiplied by its weight.
  Tensor counted;  ///< Sum of the weights.
};

/// A loss function: (output, target) to a scalar. Any callable converts to a Loss. Optional members
/// of the callable decide how losses are averaged over the batches of a dataset:
/// - A member `reduction`: the loss of each sample can be computed, so the mean over a dataset does
///   not depend on the batches.
/// - A member function `Tensor counts(const Tensor& target) const`: the weight of each target in
/// the
///   mean, of the target's shape; undefined if each target counts as one.
/// - A member `ignore_index` (`std::optional<std::int64_t>`): the class of targets that are
/// ignored.
/// - A member `task` (a string): as for_task().
///
/// The value of any other callable counts as the mean over the samples of the batch. If the targets
/// are class indices, it counts as the mean over the targets other than -100, PyTorch's default
/// ignore_index.
class TENON_API Loss {
 public:
  /// The form of a loss function.
  using Function = std::function<Tensor(const Tensor& output, const Tensor& target)>;
  /// An empty loss.
  Loss() = default;
  /// A loss from a callable.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Loss> &&
           std::is_invocable_r_v<Tensor, std::remove_cvref_t<F>&, const Tensor&, const Tensor&>)
      Loss(F loss) {
    if constexpr (requires { loss.reduction = Reduction::None; }) {
      F apart = loss;
      apart.reduction = Reduction::None;
      each_ = std::move(apart);
    }
    if constexpr (requires(const Tensor& target) {
                    { loss.counts(target) } -> std::convertible_to<Tensor>;
                  })
      counts_ = [loss](const Tensor& target) -> Tensor { return loss.counts(target); };
    if constexpr (requires { std::optional<std::int64_t>(loss.ignore_index); })
      ignored_ = loss.ignore_index;
    if constexpr (requires { std::string(loss.task); }) task_ = std::string(loss.task);
    call_ = std::move(loss);
  }
  /// Whether the loss is not empty.
  explicit operator bool() const { return static_cast<bool>(call_); }
  /// The loss of a batch.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return call_(output, target);
  }
  /// The sums that this batch contributes to the mean over a dataset. Both are 0 if all targets are
  /// ignored.
  LossTerms terms(const Tensor& output, const Tensor& target) const;
  /// LossTerms::counted, which does not depend on the output.
  Tensor counted(const Tensor& target) const;
  /// Which targets are not ignored: bool, of the target's shape; undefined: all.
  Tensor kept(const Tensor& target) const;
  /// The class whose targets are ignored, if there is one.
  std::optional<std::int64_t> ignored() const;
  /// The same loss for a task of train::task_names(), for instance "regression". A train::Trainer
  /// then measures the metrics of that task and chooses the best epoch by it, unless
  /// TrainOptions::task says otherwise.
  Loss for_task(std::string task) const {
    Loss out = *this;
    out.task_ = std::move(task);
    return out;
  }
  /// The task that the loss is for; "": the loss does not say.
  const std::string& task() const { return task_; }
  /// Whether the weight of a batch depends on the values of its targets, not only on their shape.
  bool counts_vary(const Tensor& target) const;

 private:
  Function call_, each_;
  std::function<Tensor(const Tensor& target)> counts_;
  std::optional<std::int64_t> ignored_;
  std::string task_;
};

// ---- Losses as objects: (output, target) to a scalar, or to one loss each with Reduction::None
/// Cross entropy as an object; see cross_entropy().
struct CrossEntropyLoss {
  double label_smoothing = 0;                  ///< In [0, 1].
  Tensor weight{};                             ///< Class weights [C]; means are weighted by them.
  std::optional<std::int64_t> ignore_index{};  ///< Targets with this class are ignored.
  Reduction reduction = Reduction::Mean;       ///< How the losses are combined.
  /// The loss of logits [N, C, …].
  TENON_API Tensor operator()(const Tensor& logits, const Tensor& target) const;
  /// The weight of each target in the mean (see Loss): its class weight, 0 if it is ignored.
  TENON_API Tensor counts(const Tensor& target) const;
};
/// Squared error as an object; see mse_loss().
struct MSELoss {
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of an output.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return mse_loss(output, target, reduction);
  }
};
/// Absolute error as an object; see l1_loss().
struct L1Loss {
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of an output.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return l1_loss(output, target, reduction);
  }
};

}  // namespace tenon::nn
