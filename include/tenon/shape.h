// Shape: the sizes of a tensor, held inline (no allocation), at most kMaxRank of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <tenon/export.h>

namespace tenon {

inline constexpr int kMaxRank = 8;

/// Sizes of a tensor, outermost first. Rank 0 is a scalar. Sizes are never negative.
class Shape {
 public:
  Shape() = default;
  /// Throws ShapeError for more than kMaxRank sizes, a negative size, or an element count beyond
  /// 2^59: bytes and padded sizes are counted in 64 bits.
  TENON_API Shape(std::initializer_list<std::int64_t> sizes);
  TENON_API Shape(const std::int64_t* sizes, int rank);

  int rank() const noexcept { return rank_; }
  std::int64_t operator[](int axis) const noexcept { return sizes_[axis]; }
  std::int64_t& operator[](int axis) noexcept { return sizes_[axis]; }
  /// Size along an axis, negative ones counted from the end. Throws ShapeError when there is no
  /// such axis.
  TENON_API std::int64_t at(int axis) const;
  /// Number of elements; 1 for a scalar.
  std::int64_t numel() const noexcept {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= sizes_[i];
    return n;
  }
  const std::int64_t* begin() const noexcept { return sizes_; }
  const std::int64_t* end() const noexcept { return sizes_ + rank_; }
  void push_back(std::int64_t size) { *this = appended(size); }
  bool operator==(const Shape& other) const noexcept {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if (sizes_[i] != other.sizes_[i]) return false;
    return true;
  }
  bool operator!=(const Shape& other) const noexcept { return !(*this == other); }
  /// "[64, 3, 28, 28]"
  TENON_API std::string str() const;

 private:
  TENON_API Shape appended(std::int64_t size) const;
  std::int64_t sizes_[kMaxRank] = {};
  int rank_ = 0;
};

/// The axis counted from the front; throws ShapeError naming `what` when it is outside [-rank,
/// rank).
TENON_API int normalize_axis(int axis, int rank, const char* what);

/// NumPy's broadcasting of two shapes; throws ShapeError naming `what` and both shapes.
TENON_API Shape broadcast_shapes(const Shape& a, const Shape& b, const char* what);

}  // namespace tenon
