// Layers that move elements: padding, upsampling, shuffles, windows, Unflatten. Names and defaults
// of options are PyTorch's. forward() throws as the function of the same name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include <tenon/functional.h>
#include <tenon/joining.h>
#include <tenon/module.h>
#include <tenon/rearrange.h>

namespace tenon::nn {

// ---- Padding
/// Sizes of a padding: one for all sides, or (before, after) pairs, the last axis first.
struct PadSizes {
  Ints sizes;  ///< One size, or two for each axis.
  /// The same size on all sides.
  PadSizes(std::int64_t all) : sizes{all} {}  // NOLINT: a size is a PadSizes
  /// (before, after) pairs, the last axis first: left, right, top, bottom.
  PadSizes(std::initializer_list<std::int64_t> sides) : sizes(sides) {}
};
/// Pads the last axes. Base of the layers below. Constructors throw ValueError for another number
/// of sizes; forward() throws ShapeError for another number of axes.
class TENON_API Padding : public Module {
 public:
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 protected:
  /// How a layer pads.
  enum class Mode { Constant, Zero, Reflection, Replication, Circular };
  /// A layer with a mode for `axes` axes.
  Padding(Mode mode, int axes, const PadSizes& sizes, double value = 0);

 private:
  Mode mode_;
  int axes_;
  Ints sizes_;
  double value_;
};

#define TENON_PADDING(Kind, mode, axes)                                        \
  class TENON_API Kind : public Padding {                                      \
   public:                                                                     \
    /** Sizes for all sides, or (before, after) pairs, the last axis first. */ \
    explicit Kind(const PadSizes& sizes) : Padding(Mode::mode, axes, sizes) {} \
  }
/// Pads x [N, C, L] or [C, L] by reflection; see pad().
TENON_PADDING(ReflectionPad1d, Reflection, 1);
/// Pads x [N, C, H, W] or [C, H, W] by reflection; see pad().
TENON_PADDING(ReflectionPad2d, Reflection, 2);
/// Pads x [N, C, D, H, W] or [C, D, H, W] by reflection; see pad().
TENON_PADDING(ReflectionPad3d, Reflection, 3);
/// Pads x [N, C, L] or [C, L] with its border elements.
TENON_PADDING(ReplicationPad1d, Replication, 1);
/// Pads x [N, C, H, W] or [C, H, W] with its border elements.
TENON_PADDING(ReplicationPad2d, Replication, 2);
/// Pads x [N, C, D, H, W] or [C, D, H, W] with its border elements.
TENON_PADDING(ReplicationPad3d, Replication, 3);
/// Pads x [N, C, L] or [C, L] from the other end.
TENON_PADDING(CircularPad1d, Circular, 1);
/// Pads x [N, C, H, W] or [C, H, W] from the other end.
TENON_PADDING(CircularPad2d, Circular, 2);
/// Pads x [N, C, D, H, W] or [C, D, H, W] from the other end.
TENON_PADDING(CircularPad3d, Circular, 3);
/// Pads the last axis with zeros.
TENON_PADDING(ZeroPad1d, Zero, 1);
/// Pads the last two axes with zeros.
TENON_PADDING(ZeroPad2d, Zero, 2);
/// Pads the last three axes with zeros.
TENON_PADDING(ZeroPad3d, Zero, 3);
#undef TENON_PADDING

#define TENON_PADDING(Kind, axes)                                                              \
  class TENON_API Kind : public Padding {                                                      \
   public:                                                                                     \
    /** Sizes for all sides, or (before, after) pairs, the last axis first. */                 \
    Kind(const PadSizes& sizes, double value) : Padding(Mode::Constant, axes, sizes, value) {} \
  }
/// Pads the last axis with a value.
TENON_PADDING(ConstantPad1d, 1);
/// Pads the last two axes with a value.
TENON_PADDING(ConstantPad2d, 2);
/// Pads the last three axes with a value.
TENON_PADDING(ConstantPad3d, 3);
#undef TENON_PADDING

// ---- Upsampling
/// Options of Upsample.
struct UpsampleOptions {
  Interpolation mode = Interpolation::Nearest;  ///< How elements are computed.
  bool align_corners = false;                   ///< Linear: the corners keep their values.
};
/// Resizes the axes after the channels of x [N, C, …]; layer form of interpolate(). A size that a
/// factor gives is rounded down.
class TENON_API Upsample : public Module {
 public:
  /// A factor for all axes, above 0.
  explicit Upsample(double factor, const UpsampleOptions& options = {});
  /// The sizes of the result.
  explicit Upsample(Ints sizes, const UpsampleOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  double factor_ = 0;  // 0: sizes_ are given
  Ints sizes_;
  UpsampleOptions options_;
};
/// Upsample of images [N, C, H, W] by repeating pixels.
class TENON_API UpsamplingNearest2d : public Upsample {
 public:
  /// A factor for both axes.
  explicit UpsamplingNearest2d(double factor) : Upsample(factor) {}
  /// Height and width of the result.
  explicit UpsamplingNearest2d(Ints sizes) : Upsample(std::move(sizes)) {}
};
/// Upsample of images [N, C, H, W] by bilinear interpolation that keeps the corners.
class TENON_API UpsamplingBilinear2d : public Upsample {
 public:
  /// A factor for both axes.
  explicit UpsamplingBilinear2d(double factor) : Upsample(factor, {Interpolation::Linear, true}) {}
  /// Height and width of the result.
  explicit UpsamplingBilinear2d(Ints sizes)
      : Upsample(std::move(sizes), {Interpolation::Linear, true}) {}
};

// ---- Rearranging
#define TENON_SHUFFLE(Kind, function, parameter)                                   \
  class TENON_API Kind : public Module {                                           \
   public:                                                                         \
    /** The argument of the function. */                                           \
    explicit Kind(std::int64_t parameter) : value_(parameter) {}                   \
    Tensor forward(const Tensor& x) const override { return function(x, value_); } \
    std::string describe() const override;                                         \
                                                                                   \
   private:                                                                        \
    std::int64_t value_;                                                           \
  }
/// Layer form of pixel_shuffle().
TENON_SHUFFLE(PixelShuffle, pixel_shuffle, factor);
/// Layer form of pixel_unshuffle().
TENON_SHUFFLE(PixelUnshuffle, pixel_unshuffle, factor);
/// Layer form of channel_shuffle().
TENON_SHUFFLE(ChannelShuffle, channel_shuffle, groups);
#undef TENON_SHUFFLE

/// One axis as several; layer form of unflatten().
class TENON_API Unflatten : public Module {
 public:
  /// The axis and its sizes; one of them may be -1.
  Unflatten(int axis, Ints sizes) : axis_(axis), sizes_(std::move(sizes)) {}
  Tensor forward(const Tensor& x) const override { return unflatten(x, axis_, sizes_); }
  std::string describe() const override;

 private:
  int axis_;
  Ints sizes_;
};
/// The windows of images as columns; layer form of unfold().
class TENON_API Unfold : public Module {
 public:
  /// The windows.
  explicit Unfold(const WindowOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) const override { return unfold(x, options_); }
  std::string describe() const override;

 private:
  WindowOptions options_;
};
/// Sums columns into images; layer form of fold().
class TENON_API Fold : public Module {
 public:
  /// Height and width of the images, and the windows.
  Fold(Pair output, const WindowOptions& options) : output_(output), options_(options) {}
  Tensor forward(const Tensor& x) const override { return fold(x, output_, options_); }
  std::string describe() const override;

 private:
  Pair output_;
  WindowOptions options_;
};

}  // namespace tenon::nn
