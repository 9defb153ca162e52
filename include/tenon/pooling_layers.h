// Pooling layers over one and three axes, power-average pooling and unpooling. Max and average
// pooling over two axes are in nn.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tenon/nn.h>
#include <tenon/pooling.h>

namespace tenon {
namespace nn {

/// Options of pooling layers over one or three axes. `Sizes` is a number or a Triple.
template <class Sizes>
struct PoolOptionsOf {
  Sizes stride = 0;               ///< Step of the window; 0: the window's size.
  Sizes padding = 0;              ///< Padding on each side.
  Sizes dilation = 1;             ///< Distance of the window's elements; maxima only.
  bool ceil_mode = false;         ///< Round the output size up instead of down.
  bool count_include_pad = true;  ///< Averages only: count the padding in the divisor.
  std::int64_t divisor = 0;       ///< Averages only: divisor of the sums; 0: the window's size.
};
/// Maximum of each window of x [N, C, L].
class TENON_API MaxPool1d : public Module {
 public:
  /// Windows of size `kernel`.
  explicit MaxPool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options = {});
  Tensor forward(const Tensor& x) const override { return max_pool1d(x, options_); }
  std::string describe() const override;

 private:
  Pool1dOptions options_;
};
/// Mean of each window of x [N, C, L].
class TENON_API AvgPool1d : public Module {
 public:
  /// Windows of size `kernel`.
  explicit AvgPool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options = {});
  Tensor forward(const Tensor& x) const override { return avg_pool1d(x, options_); }
  std::string describe() const override;

 private:
  Pool1dOptions options_;
};
/// Maximum of each window of x [N, C, D, H, W].
class TENON_API MaxPool3d : public Module {
 public:
  /// Windows of size `kernel`.
  explicit MaxPool3d(Triple kernel, const PoolOptionsOf<Triple>& options = {});
  Tensor forward(const Tensor& x) const override { return max_pool3d(x, options_); }
  std::string describe() const override;

 private:
  Pool3dOptions options_;
};
/// Mean of each window of x [N, C, D, H, W].
class TENON_API AvgPool3d : public Module {
 public:
  /// Windows of size `kernel`.
  explicit AvgPool3d(Triple kernel, const PoolOptionsOf<Triple>& options = {});
  Tensor forward(const Tensor& x) const override { return avg_pool3d(x, options_); }
  std::string describe() const override;

 private:
  Pool3dOptions options_;
};

/// Mean over windows of x [N, C, L] whose sizes are chosen so that the output has the given size.
class TENON_API AdaptiveAvgPool1d : public Module {
 public:
  /// The size of the output.
  explicit AdaptiveAvgPool1d(std::int64_t output) : output_(output) {}
  Tensor forward(const Tensor& x) const override { return adaptive_avg_pool1d(x, output_); }
  std::string describe() const override;

 private:
  std::int64_t output_;
};
/// Maximum over windows of x [N, C, L] whose sizes are chosen so that the output has the given
/// size.
class TENON_API AdaptiveMaxPool1d : public Module {
 public:
  /// The size of the output.
  explicit AdaptiveMaxPool1d(std::int64_t output) : output_(output) {}
  Tensor forward(const Tensor& x) const override { return adaptive_max_pool1d(x, output_); }
  std::string describe() const override;

 private:
  std::int64_t output_;
};
/// Mean over windows of x [N, C, D, H, W] whose sizes are chosen so that the output has the given
/// size.
class TENON_API AdaptiveAvgPool3d : public Module {
 public:
  /// The size of the output.
  explicit AdaptiveAvgPool3d(Triple output) : output_(output) {}
  Tensor forward(const Tensor& x) const override {
    return adaptive_avg_pool3d(x, {output_.d, output_.h, output_.w});
  }
  std::string describe() const override;

 private:
  Triple output_;
};
/// Maximum over windows of x [N, C, D, H, W] whose sizes are chosen so that the output has the
/// given size.
class TENON_API AdaptiveMaxPool3d : public Module {
 public:
  /// The size of the output.
  explicit AdaptiveMaxPool3d(Triple output) : output_(output) {}
  Tensor forward(const Tensor& x) const override {
    return adaptive_max_pool3d(x, {output_.d, output_.h, output_.w});
  }
  std::string describe() const override;

 private:
  Triple output_;
};

/// Power-average pooling of x [N, C, L], lp_pool1d(). Only stride and ceil_mode of the options are
/// used.
class TENON_API LPPool1d : public Module {
 public:
  /// Exponent and size of the window.
  LPPool1d(double p, std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options = {});
  Tensor forward(const Tensor& x) const override { return lp_pool1d(x, p_, options_); }
  std::string describe() const override;

 private:
  double p_;
  Pool1dOptions options_;
};
/// Power-average pooling of x [N, C, H, W], lp_pool2d(). Only stride and ceil_mode of the options
/// are used.
class TENON_API LPPool2d : public Module {
 public:
  /// Exponent and size of the window.
  LPPool2d(double p, Pair kernel, const PoolOptions& options = {});
  Tensor forward(const Tensor& x) const override { return lp_pool2d(x, p_, options_); }
  std::string describe() const override;

 private:
  double p_;
  Pool2dOptions options_;
};
/// Power-average pooling of x [N, C, D, H, W], lp_pool3d(). Only stride and ceil_mode of the
/// options are used.
class TENON_API LPPool3d : public Module {
 public:
  /// Exponent and size of the window.
  LPPool3d(double p, Triple kernel, const PoolOptionsOf<Triple>& options = {});
  Tensor forward(const Tensor& x) const override { return lp_pool3d(x, p_, options_); }
  std::string describe() const override;

 private:
  double p_;
  Pool3dOptions options_;
};

/// Partial inverse of max pooling, max_unpool1d(): writes values to the indices that
/// max_pool1d_with_indices() returned, with the same kernel size. Only stride and padding of the
/// options are used.
class TENON_API MaxUnpool1d : public ModuleOf<MaxUnpool1d> {
 public:
  /// The size of the window that was pooled.
  explicit MaxUnpool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options = {});
  /// The unpooled tensor. `output` is the size of the pooled input, if several are possible.
  Tensor forward(const Tensor& x, const Tensor& indices,
                 std::optional<std::int64_t> output = {}) const {
    return max_unpool1d(x, indices, options_, output);
  }
  std::string describe() const override;

 private:
  Pool1dOptions options_;
};
/// Partial inverse of max pooling, max_unpool2d(): writes values to the indices that
/// max_pool2d_with_indices() returned, with the same kernel size. Only stride and padding of the
/// options are used.
class TENON_API MaxUnpool2d : public ModuleOf<MaxUnpool2d> {
 public:
  /// The size of the window that was pooled.
  explicit MaxUnpool2d(Pair kernel, const PoolOptions& options = {});
  /// The unpooled tensor. `output` is the size of the pooled input, if several are possible.
  Tensor forward(const Tensor& x, const Tensor& indices, std::optional<Pair> output = {}) const {
    return max_unpool2d(x, indices, options_, output);
  }
  std::string describe() const override;

 private:
  Pool2dOptions options_;
};
/// Partial inverse of max pooling, max_unpool3d(): writes values to the indices that
/// max_pool3d_with_indices() returned, with the same kernel size. Only stride and padding of the
/// options are used.
class TENON_API MaxUnpool3d : public ModuleOf<MaxUnpool3d> {
 public:
  /// The size of the window that was pooled.
  explicit MaxUnpool3d(Triple kernel, const PoolOptionsOf<Triple>& options = {});
  /// The unpooled tensor. `output` is the size of the pooled input, if several are possible.
  Tensor forward(const Tensor& x, const Tensor& indices, std::optional<Triple> output = {}) const {
    return max_unpool3d(x, indices, options_, output);
  }
  std::string describe() const override;

 private:
  Pool3dOptions options_;
};

}  // namespace nn
}  // namespace tenon
