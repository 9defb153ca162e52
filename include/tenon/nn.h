// Networks: initialisers, containers, layers, losses. Names and shapes of parameters are PyTorch's.
// What they are made of, and how to write one's own, stands in module.h.
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

#include <tenon/module.h>
#include <tenon/ops.h>
#include <tenon/tensor.h>

namespace tenon::nn {

// ---- Initialisers: tensors drawn from a generator (the process's when none is given)
namespace init {
enum class FanMode { In, Out };
/// Inputs and outputs of one unit of a weight [out, in, kernel…]. Throws ShapeError below rank 2.
TENON_API std::pair<std::int64_t, std::int64_t> fans(const Shape& weight);
/// sqrt(2) for "relu", 5/3 for "tanh", 1 for "linear" and "sigmoid", sqrt(2 / (1 + a²)) for
/// "leaky_relu". Throws ValueError for another name.
TENON_API double gain(const std::string& nonlinearity, double a = 0.01);
TENON_API Tensor constant(const Shape& shape, double value);
TENON_API Tensor uniform(const Shape& shape, double low, double high,
                         Generator* generator = nullptr);
TENON_API Tensor normal(const Shape& shape, double mean = 0, double stddev = 1,
                        Generator* generator = nullptr);
TENON_API Tensor xavier_uniform(const Shape& shape, double gain = 1,
                                Generator* generator = nullptr);
TENON_API Tensor xavier_normal(const Shape& shape, double gain = 1, Generator* generator = nullptr);
/// With slope `a` of a leaky ReLU; a = sqrt(5) is PyTorch's default for weights of Linear and
/// Conv2d.
TENON_API Tensor kaiming_uniform(const Shape& shape, double a = 0, FanMode mode = FanMode::In,
                                 Generator* generator = nullptr);
TENON_API Tensor kaiming_normal(const Shape& shape, double a = 0, FanMode mode = FanMode::In,
                                Generator* generator = nullptr);
/// Normal with variance 1 / fan-in.
TENON_API Tensor lecun_normal(const Shape& shape, Generator* generator = nullptr);
TENON_API Tensor lecun_uniform(const Shape& shape, Generator* generator = nullptr);
/// One of the above by name ("xavier_uniform", "kaiming_normal", …) with its defaults. Throws
/// ValueError with a near miss.
TENON_API Tensor by_name(const std::string& name, const Shape& shape,
                         Generator* generator = nullptr);
}  // namespace init

// ---- Containers
/// Modules one after another, named "0", "1", …
class TENON_API Sequential : public Module {
 public:
  Sequential();
  Sequential(const Sequential&) = default;  // no move: what was moved from stays a module
  Sequential& operator=(const Sequential&) = default;
  explicit Sequential(const std::vector<AnyModule>& modules);
  template <class... M>
  requires(sizeof...(M) > 0 && (TakesOneTensor<std::remove_cvref_t<M>> && ...) &&
           !(sizeof...(M) == 1 && (std::derived_from<std::remove_cvref_t<M>, Sequential> &&
                                   ...))) explicit Sequential(M&&... modules)
      : Sequential() {
    (append(AnyModule(std::forward<M>(modules))), ...);
  }
  void append(const AnyModule& module);
  std::int64_t size() const { return static_cast<std::int64_t>(modules_->size()); }
  /// Throws ValueError outside [0, size).
  const AnyModule& operator[](std::int64_t index) const;
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override { return "Sequential"; }

 private:
  std::shared_ptr<std::vector<AnyModule>> modules_;
};

/// A list of modules that its owner calls; has no forward of its own.
class TENON_API ModuleList : public ModuleBase {
 public:
  ModuleList();
  ModuleList(const ModuleList&) = default;  // no move: what was moved from stays a module
  ModuleList& operator=(const ModuleList&) = default;
  explicit ModuleList(const std::vector<AnyModule>& modules);
  void append(const AnyModule& module);
  std::int64_t size() const { return static_cast<std::int64_t>(modules_->size()); }
  const AnyModule& operator[](std::int64_t index) const;

 private:
  std::shared_ptr<std::vector<AnyModule>> modules_;
};

// ---- Layers
/// Height and width; one number means both.
struct Pair {
  std::int64_t h, w;
  Pair(std::int64_t both) : h(both), w(both) {}  // NOLINT: implicit by design
  Pair(std::int64_t height, std::int64_t width) : h(height), w(width) {}
};

struct LinearOptions {
  bool bias = true;
  Generator* generator = nullptr;  ///< of the initial values
  /// Makes the initial weight out of its shape and the generator; empty: PyTorch's default.
  std::function<Tensor(const Shape&, Generator*)> weight_init{};
  /// A parameter [out, in] of another module that this one uses as its own (tied weights).
  Tensor tied_weight{};
};
/// y = x · weightᵀ + bias; weight [out, in], bias [out].
class TENON_API Linear : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined without one
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Tensor weight_, bias_;
};

struct Conv2dOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Generator* generator = nullptr;  ///< of the initial values
  /// Makes the initial weight out of its shape and the generator; empty: PyTorch's default.
  std::function<Tensor(const Shape&, Generator*)> weight_init{};
};
/// x [N, in, H, W]; weight [out, in / groups, kernel], bias [out].
class TENON_API Conv2d : public Module {
 public:
  Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dOptions& options = {});
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined without one
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  tenon::Conv2dOptions options_;
  Tensor weight_, bias_;
};

struct PoolOptions {
  Pair stride = 0;  ///< 0: the kernel's size
  Pair padding = 0, dilation = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< averages only
  std::int64_t divisor = 0;       ///< averages only: what sums are divided by; 0: the window's size
};
class TENON_API MaxPool2d : public Module {
 public:
  explicit MaxPool2d(Pair kernel, const PoolOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Pool2dOptions options_;
};
class TENON_API AvgPool2d : public Module {
 public:
  explicit AvgPool2d(Pair kernel, const PoolOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Pool2dOptions options_;
  std::int64_t divisor_;
};

/// Windows such that `output` rows and columns come out, whatever the size of the input.
class TENON_API AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(Pair output) : output_(output) {}
  Tensor forward(const Tensor& x) const override {
    return adaptive_avg_pool2d(x, {output_.h, output_.w});
  }
  std::string describe() const override;

 private:
  Pair output_;
};
class TENON_API AdaptiveMaxPool2d : public Module {
 public:
  explicit AdaptiveMaxPool2d(Pair output) : output_(output) {}
  Tensor forward(const Tensor& x) const override {
    return adaptive_max_pool2d(x, {output_.h, output_.w});
  }
  std::string describe() const override;

 private:
  Pair output_;
};

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: the mean of all batches so far
  bool affine = true;                    ///< a weight and a bias a channel
  bool track_running_stats = true;       ///< off: the batch's own statistics in evaluation too
};
/// Normalises by channel: while training with the statistics of the batch, renewing running_mean,
/// running_var and num_batches_tracked as PyTorch does; in evaluation with the running ones.
/// Throws ShapeError for another input, ValueError for one value a channel while training.
class TENON_API BatchNorm : public Module {
 public:
  const Tensor& weight() const { return weight_; }  ///< [C]; undefined without affine
  const Tensor& bias() const { return bias_; }
  const Tensor& running_mean() const { return running_mean_; }  ///< [C]; undefined untracked
  const Tensor& running_var() const { return running_var_; }
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 protected:
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
/// x [N, C] or [N, C, L].
class TENON_API BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm1d", 2, 3, channels, options) {}
};
/// x [N, C, H, W].
class TENON_API BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm2d", 4, 4, channels, options) {}
};
/// x [N, C, D, H, W].
class TENON_API BatchNorm3d : public BatchNorm {
 public:
  explicit BatchNorm3d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm3d", 5, 5, channels, options) {}
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;
};
/// Normalises over the last axes, which are `shape`.
class TENON_API LayerNorm : public Module {
 public:
  explicit LayerNorm(const Shape& shape, const LayerNormOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Shape shape_;
  double eps_;
  Tensor weight_, bias_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
/// Normalises x [N, C, …] over groups of channels.
class TENON_API GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  std::int64_t groups_, channels_;
  double eps_;
  Tensor weight_, bias_;
};

struct LocalResponseNormOptions {
  double alpha = 1e-4, beta = 0.75, k = 1;
};
/// Divides by a power of the mean square of `size` neighbouring channels; see local_response_norm.
class TENON_API LocalResponseNorm : public Module {
 public:
  explicit LocalResponseNorm(std::int64_t size, const LocalResponseNormOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  std::int64_t size_;
  LocalResponseNormOptions options_;
};

struct EmbeddingOptions {
  std::optional<std::int64_t> padding_index{};  ///< whose row begins as zeros, without gradient
  /// Rows of a larger norm are read scaled to this one; the weight stays as it is.
  std::optional<double> max_norm{};
  double norm_type = 2;             ///< the p of those norms
  bool scale_grad_by_freq = false;  ///< a row's gradient is divided by how often it was read
  Generator* generator = nullptr;   ///< of the initial values
  Tensor weight{};  ///< initial values [count, size]; undefined: drawn from a normal distribution
};
/// Rows of weight [count, size] by index: int64 or int32 […] to […, size].
class TENON_API Embedding : public Module {
 public:
  Embedding(std::int64_t count, std::int64_t size, const EmbeddingOptions& options = {});
  Embedding(std::int64_t count, std::int64_t size, Generator* generator);
  const Tensor& weight() const { return weight_; }
  Tensor forward(const Tensor& index) const override;
  std::string describe() const override;

 private:
  EmbeddingOptions options_;
  Tensor weight_;
};

class TENON_API Flatten : public Module {
 public:
  explicit Flatten(int start_axis = 1, int end_axis = -1) : start_(start_axis), end_(end_axis) {}
  Tensor forward(const Tensor& x) const override { return flatten(x, start_, end_); }
  std::string describe() const override;

 private:
  int start_, end_;
};

/// Zeroes with probability p while training; the identity otherwise.
class TENON_API Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5, Generator* generator = nullptr);
  Tensor forward(const Tensor& x) const override {
    return dropout(x, p_, is_training(), generator_);
  }
  std::string describe() const override;

 private:
  double p_;
  Generator* generator_;
};

#define TENON_ACTIVATION(Name, expression)                                \
  class TENON_API Name : public Module {                                  \
   public:                                                                \
    Name() = default;                                                     \
    Tensor forward(const Tensor& x) const override { return expression; } \
    std::string describe() const override { return #Name "()"; }          \
  }
TENON_ACTIVATION(Identity, x);
TENON_ACTIVATION(ReLU, relu(x));
TENON_ACTIVATION(ReLU6, relu6(x));
TENON_ACTIVATION(Tanh, tanh(x));
TENON_ACTIVATION(Sigmoid, sigmoid(x));
TENON_ACTIVATION(SiLU, silu(x));
TENON_ACTIVATION(Mish, mish(x));
TENON_ACTIVATION(Softplus, softplus(x));
TENON_ACTIVATION(Softsign, softsign(x));
TENON_ACTIVATION(Hardtanh, hardtanh(x));
TENON_ACTIVATION(Hardsigmoid, hardsigmoid(x));
#undef TENON_ACTIVATION

#define TENON_ACTIVATION(Name, Type, parameter, standard, expression)     \
  class TENON_API Name : public Module {                                  \
   public:                                                                \
    explicit Name(Type parameter = standard) : value_(parameter) {}       \
    Tensor forward(const Tensor& x) const override { return expression; } \
    std::string describe() const override;                                \
                                                                          \
   private:                                                               \
    Type value_;                                                          \
  }
TENON_ACTIVATION(GELU, bool, tanh_approximation, false, gelu(x, value_));
TENON_ACTIVATION(LeakyReLU, double, negative_slope, 0.01, leaky_relu(x, value_));
TENON_ACTIVATION(ELU, double, alpha, 1.0, elu(x, value_));
TENON_ACTIVATION(Softmax, int, axis, -1, softmax(x, value_));
TENON_ACTIVATION(LogSoftmax, int, axis, -1, log_softmax(x, value_));
#undef TENON_ACTIVATION

/// "relu", "tanh", "sigmoid", "gelu", "silu", "leaky_relu", "elu", …; throws ValueError with a near
/// miss.
TENON_API AnyModule activation(const std::string& name);

/// What the mean of a loss over a whole set is made of. Both are scalars of float64.
struct LossTerms {
  Tensor total;    ///< the sum of the losses, each times what it counts
  Tensor counted;  ///< the sum of what they count
};

/// A loss: (output, target) to a scalar. Any callable becomes one. What the callable has besides
/// decides how its values are averaged over batches:
/// - a member `reduction`: each loss can be had apart, so the mean of a set does not depend on how
///   it is cut into batches;
/// - a member function `Tensor counts(const Tensor& target) const`: what each target counts in the
///   mean, of the target's shape; undefined where each counts one;
/// - a member `ignore_index` (std::optional<std::int64_t>): targets that count for nothing.
/// Of other callables the value counts as the mean over the batch: over its samples, or where
/// targets are class numbers over those that are not -100, PyTorch's default ignore_index.
class TENON_API Loss {
 public:
  using Function = std::function<Tensor(const Tensor& output, const Tensor& target)>;
  Loss() = default;
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
    call_ = std::move(loss);
  }
  explicit operator bool() const { return static_cast<bool>(call_); }
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return call_(output, target);
  }
  /// What this batch adds to the mean over a set. Where nothing counts both are 0.
  LossTerms terms(const Tensor& output, const Tensor& target) const;
  /// LossTerms::counted, which needs no output.
  Tensor counted(const Tensor& target) const;
  /// Which targets are not left out: bool, of the target's shape; undefined: all.
  Tensor kept(const Tensor& target) const;
  /// The class number whose targets are left out, if there is one.
  std::optional<std::int64_t> ignored() const;
  /// Whether how much a batch counts depends on its targets' values, not on their shape alone.
  bool counts_vary(const Tensor& target) const;

 private:
  Function call_, each_;
  std::function<Tensor(const Tensor& target)> counts_;
  std::optional<std::int64_t> ignored_;
};

// ---- Losses as objects: (output, target) to a scalar
struct CrossEntropyLoss {
  double label_smoothing = 0;
  Tensor weight{};                             ///< [C]: of each class; means are weighted by it
  std::optional<std::int64_t> ignore_index{};  ///< targets that count for nothing
  Reduction reduction = Reduction::Mean;
  TENON_API Tensor operator()(const Tensor& logits, const Tensor& target) const;
  /// As Loss asks for it: the weight of each target's class, 0 where it is left out.
  TENON_API Tensor counts(const Tensor& target) const;
};
struct MSELoss {
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return mse_loss(output, target, reduction);
  }
};
struct L1Loss {
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return l1_loss(output, target, reduction);
  }
};

}  // namespace tenon::nn
