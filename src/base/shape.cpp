// Shape's checked construction, and the two rules that every op shares: axes and broadcasting.
//
// A Shape has at most kMaxRank non-negative sizes, and an element count, ignoring zero sizes, that
// fits 2^59. So products of sizes and strides never overflow later.
#include <tenon/error.h>
#include <tenon/shape.h>

#include <algorithm>

#include "base/make_error.h"
#include "base/str.h"

namespace tenon {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 59;

std::string list(const std::int64_t* sizes, int rank) {
  std::string out = "[";
  for (int i = 0; i < rank; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(sizes[i]);
  }
  return out + "]";
}

void check(const std::int64_t* sizes, int rank) {
  if (rank > kMaxRank)
    throw make_error<ShapeError>("shape ", list(sizes, rank), " has ", rank, " axes; at most ",
                                 kMaxRank, " are supported: merge some with reshape");
  std::int64_t count = 1;
  for (int i = 0; i < rank; ++i) {
    if (sizes[i] < 0)
      throw make_error<ShapeError>("shape ", list(sizes, rank), " has the negative size ", sizes[i],
                                   " on axis ", i, "; sizes start at 0");
    const std::int64_t size = std::max<std::int64_t>(sizes[i], 1);
    if (size > kMaxElements / count)
      throw make_error<ShapeError>("shape ", list(sizes, rank),
                                   " has more than 2^59 elements; use smaller sizes");
    count *= size;
  }
}

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> sizes)
    : Shape(sizes.begin(), static_cast<int>(sizes.size())) {}

Shape::Shape(const std::int64_t* sizes, int rank) {
  if (rank < 0) throw make_error<ShapeError>("shape: the rank is ", rank, "; it starts at 0");
  check(sizes, rank);
  rank_ = rank;
  std::copy(sizes, sizes + rank, sizes_);
}

std::int64_t Shape::at(int axis) const {
  const int i = axis < 0 ? axis + rank_ : axis;
  if (i < 0 || i >= rank_)
    throw make_error<ShapeError>("shape ", str(), " has no axis ", axis, "; its rank is ", rank_);
  return sizes_[i];
}

Shape Shape::appended(std::int64_t size) const {
  std::int64_t sizes[kMaxRank + 1];
  std::copy(begin(), end(), sizes);
  sizes[rank_] = size;
  return Shape(sizes, rank_ + 1);
}

std::string Shape::str() const { return list(sizes_, rank_); }

namespace {

template <class What>
int checked_axis(int axis, int rank, const What& what) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  if (rank == 0)
    throw make_error<ShapeError>(what, ": axis ", axis, " of a scalar, which has no axes");
  throw make_error<ShapeError>(what, ": axis ", axis, " is outside [", -rank, ", ", rank - 1,
                               "] for a tensor of rank ", rank);
}

template <class What>
Shape broadcast(const Shape& a, const Shape& b, const What& what) {
  const int rank = std::max(a.rank(), b.rank());
  std::int64_t sizes[kMaxRank];
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const std::int64_t sa = ia < 0 ? 1 : a[ia], sb = ib < 0 ? 1 : b[ib];
    if (sa != sb && sa != 1 && sb != 1)
      throw make_error<ShapeError>(what, ": shapes ", a, " and ", b, " do not broadcast: axis ",
                                   i - rank, " is ", sa, " and ", sb, "; sizes must be equal or 1");
    sizes[i] = sa == 1 ? sb : sa;
  }
  return Shape(sizes, rank);
}

}  // namespace

int normalize_axis(int axis, int rank, const char* what) { return checked_axis(axis, rank, what); }
int normalize_axis(int axis, int rank, const OpPlace& what) {
  return checked_axis(axis, rank, what);
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* what) {
  return broadcast(a, b, what);
}
Shape broadcast_shapes(const Shape& a, const Shape& b, const OpPlace& what) {
  return broadcast(a, b, what);
}

}  // namespace tenon
