// Padding, upsampling, shuffles, windows, Unflatten.
#include <tenon/shape_layers.h>

#include <algorithm>
#include <cmath>

#include <tenon/error.h>
#include <tenon/resampling.h>

#include "base/make_error.h"
#include "base/str.h"
#include "nn/windows.h"

namespace tenon::nn {

std::string Padding::describe() const {
  static constexpr const char* kKinds[] = {"ConstantPad", "ZeroPad", "ReflectionPad",
                                           "ReplicationPad", "CircularPad"};
  return cat(kKinds[static_cast<int>(mode_)], axes_, "d(", sizes_text("padding", sizes_),
             mode_ == Mode::Constant ? cat(", value=", value_) : "", ")");
}

Padding::Padding(Mode mode, int axes, const PadSizes& sizes, double value)
    : mode_(mode), axes_(axes), sizes_(sizes.sizes), value_(value) {
  const auto all = 2 * static_cast<std::size_t>(axes);
  if (sizes_.size() == 1) sizes_.resize(all, sizes_[0]);
  if (sizes_.size() != all)
    throw make_error<ValueError>(describe(), ": ", sizes_.size(), " sizes, must be 1 or ", all);
}

Tensor Padding::forward(const Tensor& x) const {
  const bool is_constant = mode_ == Mode::Constant || mode_ == Mode::Zero;
  if (is_constant ? x.rank() < axes_ : x.rank() != axes_ + 1 && x.rank() != axes_ + 2)
    throw make_error<ShapeError>(
        describe(), ": the input is ", x.shape(), ", must have ",
        is_constant ? cat("at least ", axes_) : cat(axes_ + 2, " axes, or ", axes_ + 1),
        is_constant ? " axes" : " without a batch");
  if (is_constant) return pad(x, sizes_, value_);
  return pad(x, sizes_,
             mode_ == Mode::Reflection    ? PadMode::Reflect
             : mode_ == Mode::Replication ? PadMode::Replicate
                                          : PadMode::Circular);
}

Upsample::Upsample(double factor, const UpsampleOptions& options)
    : factor_(factor), options_(options) {
  if (!(factor > 0 && std::isfinite(factor)))
    throw make_error<ValueError>("Upsample: the factor is ", factor,
                                 ", must be finite and above 0");
}

Upsample::Upsample(Ints sizes, const UpsampleOptions& options)
    : sizes_(std::move(sizes)), options_(options) {
  if (sizes_.empty()) throw ValueError("Upsample: there are no sizes: give one for each axis");
  check_window("Upsample", {{"a size", sizes_, 1}});
}

Tensor Upsample::forward(const Tensor& x) const {
  if (factor_ == 0) return interpolate(x, sizes_, options_.mode, options_.align_corners);
  const auto axes = static_cast<std::size_t>(std::max(x.rank() - 2, 0));
  return interpolate(x, {},
                     InterpolateOptions{.mode = options_.mode,
                                        .align_corners = options_.align_corners,
                                        .scale_factors = std::vector<double>(axes, factor_)});
}

std::string Upsample::describe() const {
  static constexpr const char* kModes[] = {"nearest", "linear", "nearest-exact", "cubic", "area"};
  return cat("Upsample(", factor_ == 0 ? sizes_text("size", sizes_) : cat("scale_factor=", factor_),
             options_.mode == Interpolation::Nearest
                 ? ""
                 : cat(", mode=", kModes[static_cast<int>(options_.mode)]),
             options_.align_corners ? ", align_corners=true" : "", ")");
}

std::string PixelShuffle::describe() const { return cat("PixelShuffle(", value_, ")"); }
std::string PixelUnshuffle::describe() const { return cat("PixelUnshuffle(", value_, ")"); }
std::string ChannelShuffle::describe() const { return cat("ChannelShuffle(", value_, ")"); }

std::string Unflatten::describe() const {
  return cat("Unflatten(", axis_, ", ", sizes_text("sizes", sizes_), ")");
}

namespace {

std::string window_text(const WindowOptions& o) {
  std::string out = sizes_text("kernel_size", size_list(o.kernel));
  const std::pair<const char*, std::pair<Pair, std::int64_t>> others[] = {
      {"dilation", {o.dilation, 1}}, {"padding", {o.padding, 0}}, {"stride", {o.stride, 1}}};
  for (const auto& [name, value] : others)
    if (value.first != Pair(value.second))
      out += cat(", ", sizes_text(name, size_list(value.first)));
  return out;
}

}  // namespace

std::string Unfold::describe() const { return cat("Unfold(", window_text(options_), ")"); }
std::string Fold::describe() const {
  return cat("Fold(", sizes_text("output_size", size_list(output_)), ", ", window_text(options_),
             ")");
}

}  // namespace tenon::nn
