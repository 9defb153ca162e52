// Pooling layers over one axis and three; those over two stand in nn.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <tenon/nn.h>
#include <tenon/pooling.h>

namespace tenon {
namespace nn {

/// Depth, height and width; one number means all.
struct Triple {
  std::int64_t d, h, w;
  Triple(std::int64_t all) : d(all), h(all), w(all) {}  // NOLINT: implicit by design
  Triple(std::int64_t depth, std::int64_t height, std::int64_t width)
      : d(depth), h(height), w(width) {}
};

/// `Sizes` is a number or a Triple.
template <class Sizes>
struct PoolOptionsOf {
  Sizes stride = 0;  ///< 0: the kernel's size
  Sizes padding = 0, dilation = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< averages only
  std::int64_t divisor = 0;       ///< averages only: what sums are divided by; 0: the window's size
};
/// x [N, C, L].
class TENON_API MaxPool1d : public Module {
 public:
  explicit MaxPool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options = {});
  Tensor forward(const Tensor& x) const override { return max_pool1d(x, options_); }
  std::string describe() const override;

 private:
  Pool1dOptions options_;
};
class TENON_API AvgPool1d : public Module {
 public:
  explicit AvgPool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options = {});
  Tensor forward(const Tensor& x) const override { return avg_pool1d(x, options_); }
  std::string describe() const override;

 private:
  Pool1dOptions options_;
};
/// x [N, C, D, H, W].
class TENON_API MaxPool3d : public Module {
 public:
  explicit MaxPool3d(Triple kernel, const PoolOptionsOf<Triple>& options = {});
  Tensor forward(const Tensor& x) const override { return max_pool3d(x, options_); }
  std::string describe() const override;

 private:
  Pool3dOptions options_;
};
class TENON_API AvgPool3d : public Module {
 public:
  explicit AvgPool3d(Triple kernel, const PoolOptionsOf<Triple>& options = {});
  Tensor forward(const Tensor& x) const override { return avg_pool3d(x, options_); }
  std::string describe() const override;

 private:
  Pool3dOptions options_;
};

/// Windows such that `output` places come out, whatever the size of the input.
class TENON_API AdaptiveAvgPool1d : public Module {
 public:
  explicit AdaptiveAvgPool1d(std::int64_t output) : output_(output) {}
  Tensor forward(const Tensor& x) const override { return adaptive_avg_pool1d(x, output_); }
  std::string describe() const override;

 private:
  std::int64_t output_;
};
class TENON_API AdaptiveMaxPool1d : public Module {
 public:
  explicit AdaptiveMaxPool1d(std::int64_t output) : output_(output) {}
  Tensor forward(const Tensor& x) const override { return adaptive_max_pool1d(x, output_); }
  std::string describe() const override;

 private:
  std::int64_t output_;
};
class TENON_API AdaptiveAvgPool3d : public Module {
 public:
  explicit AdaptiveAvgPool3d(Triple output) : output_(output) {}
  Tensor forward(const Tensor& x) const override {
    return adaptive_avg_pool3d(x, {output_.d, output_.h, output_.w});
  }
  std::string describe() const override;

 private:
  Triple output_;
};
class TENON_API AdaptiveMaxPool3d : public Module {
 public:
  explicit AdaptiveMaxPool3d(Triple output) : output_(output) {}
  Tensor forward(const Tensor& x) const override {
    return adaptive_max_pool3d(x, {output_.d, output_.h, output_.w});
  }
  std::string describe() const override;

 private:
  Triple output_;
};

/// (elements of a window · the mean of x^p over it)^(1 / p): of the options stride and ceil_mode
/// count.
class TENON_API LPPool1d : public Module {
 public:
  LPPool1d(double p, std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options = {});
  Tensor forward(const Tensor& x) const override { return lp_pool1d(x, p_, options_); }
  std::string describe() const override;

 private:
  double p_;
  Pool1dOptions options_;
};
class TENON_API LPPool2d : public Module {
 public:
  LPPool2d(double p, Pair kernel, const PoolOptions& options = {});
  Tensor forward(const Tensor& x) const override { return lp_pool2d(x, p_, options_); }
  std::string describe() const override;

 private:
  double p_;
  Pool2dOptions options_;
};
class TENON_API LPPool3d : public Module {
 public:
  LPPool3d(double p, Triple kernel, const PoolOptionsOf<Triple>& options = {});
  Tensor forward(const Tensor& x) const override { return lp_pool3d(x, p_, options_); }
  std::string describe() const override;

 private:
  double p_;
  Pool3dOptions options_;
};

/// The way back of max pooling: x and the indices that max_pool1d_with_indices() gave, with its
/// kernel; stride and padding of the options count. `output`: the size of what was pooled, where
/// several are possible.
class TENON_API MaxUnpool1d : public ModuleOf<MaxUnpool1d> {
 public:
  explicit MaxUnpool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options = {});
  Tensor forward(const Tensor& x, const Tensor& indices,
                 std::optional<std::int64_t> output = {}) const {
    return max_unpool1d(x, indices, options_, output);
  }
  std::string describe() const override;

 private:
  Pool1dOptions options_;
};
class TENON_API MaxUnpool2d : public ModuleOf<MaxUnpool2d> {
 public:
  explicit MaxUnpool2d(Pair kernel, const PoolOptions& options = {});
  Tensor forward(const Tensor& x, const Tensor& indices,
                 std::optional<std::pair<std::int64_t, std::int64_t>> output = {}) const {
    return max_unpool2d(x, indices, options_, output);
  }
  std::string describe() const override;

 private:
  Pool2dOptions options_;
};
class TENON_API MaxUnpool3d : public ModuleOf<MaxUnpool3d> {
 public:
  explicit MaxUnpool3d(Triple kernel, const PoolOptionsOf<Triple>& options = {});
  Tensor forward(const Tensor& x, const Tensor& indices,
                 const std::optional<std::array<std::int64_t, 3>>& output = {}) const {
    return max_unpool3d(x, indices, options_, output);
  }
  std::string describe() const override;

 private:
  Pool3dOptions options_;
};

}  // namespace nn
}  // namespace tenon
