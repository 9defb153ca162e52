// Shape: the sizes of a tensor, stored inline without allocation; at most kMaxRank axes. Pair and
// Triple: sizes, strides or paddings over two or three axes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <tenon/export.h>

namespace tenon {

/// Largest number of axes of a tensor.
inline constexpr int kMaxRank = 8;

/// The sizes of a tensor, outermost axis first. A scalar has rank 0. Sizes are never negative.
/// PyTorch's torch.Size.
class Shape {
 public:
  /// The shape of a scalar.
  Shape() = default;
  /// Sizes in braces. Throws ShapeError for more than kMaxRank sizes, a negative size, or more than
  /// 2^59 elements; the limit keeps counts of bytes and padded sizes within 64 bits.
  TENON_API Shape(std::initializer_list<std::int64_t> sizes);
  /// `rank` sizes from an array; throws as the constructor above.
  TENON_API Shape(const std::int64_t* sizes, int rank);

  /// Number of axes.
  int rank() const noexcept { return rank_; }
  /// Size along an axis in [0, rank); not checked.
  std::int64_t operator[](int axis) const noexcept { return sizes_[axis]; }
  /// Size along an axis in [0, rank), for writing; not checked.
  std::int64_t& operator[](int axis) noexcept { return sizes_[axis]; }
  /// Size along an axis; negative axes count from the end. Throws ShapeError for an axis out of
  /// range.
  TENON_API std::int64_t at(int axis) const;
  /// Number of elements; 1 for a scalar.
  std::int64_t numel() const noexcept {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= sizes_[i];
    return n;
  }
  /// The first size.
  const std::int64_t* begin() const noexcept { return sizes_; }
  /// The end of the sizes.
  const std::int64_t* end() const noexcept { return sizes_ + rank_; }
  /// Adds an axis at the end; throws as the constructors.
  void push_back(std::int64_t size) { *this = appended(size); }
  /// Whether ranks and sizes are equal.
  bool operator==(const Shape& other) const noexcept {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if (sizes_[i] != other.sizes_[i]) return false;
    return true;
  }
  /// Whether ranks or sizes differ.
  bool operator!=(const Shape& other) const noexcept { return !(*this == other); }
  /// The sizes as text: "[64, 3, 28, 28]".
  TENON_API std::string str() const;

 private:
  TENON_API Shape appended(std::int64_t size) const;
  std::int64_t sizes_[kMaxRank] = {};
  int rank_ = 0;
};

/// Height and width; one number sets both.
struct Pair {
  std::int64_t h;  ///< Height.
  std::int64_t w;  ///< Width.
  /// The same number for both.
  Pair(std::int64_t both) : h(both), w(both) {}  // NOLINT: implicit by design
  /// Height and width.
  Pair(std::int64_t height, std::int64_t width) : h(height), w(width) {}
  /// Whether both numbers are equal.
  bool operator==(const Pair&) const = default;
};

/// Depth, height and width; one number sets all three.
struct Triple {
  std::int64_t d;  ///< Depth.
  std::int64_t h;  ///< Height.
  std::int64_t w;  ///< Width.
  /// The same number for all three.
  Triple(std::int64_t all) : d(all), h(all), w(all) {}  // NOLINT: implicit by design
  /// Depth, height and width.
  Triple(std::int64_t depth, std::int64_t height, std::int64_t width)
      : d(depth), h(height), w(width) {}
  /// Whether all three numbers are equal.
  bool operator==(const Triple&) const = default;
};

/// Converts an axis in [-rank, rank) to one in [0, rank). Throws ShapeError with the name `what`
/// for an axis out of range.
TENON_API int normalize_axis(int axis, int rank, const char* what);

/// The shape that two shapes broadcast to by NumPy's rules. Throws ShapeError with the name `what`
/// and both shapes if they do not broadcast.
TENON_API Shape broadcast_shapes(const Shape& a, const Shape& b, const char* what);

}  // namespace tenon
