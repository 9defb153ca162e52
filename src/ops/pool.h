// What pooling and the places of its maxima share: options as the op's attributes. Signals are
// images of one row; boxes of volumes are windows of images, then of the depth.
#pragma once

#include <tenon/pooling.h>

#include "graph/attrs.h"

namespace tenon {

PoolAttrs pool_attrs(const Pool2dOptions& options);
Pool2dOptions as_row(const Pool1dOptions& options);
PoolAttrs of_images(const Pool3dOptions& options);
PoolAttrs of_depth(const Pool3dOptions& options);
/// Whether pooling leaves every place of the depth as it is.
bool keeps_depth(const Pool3dOptions& options);

void require_pool_rank(const char* op, const Tensor& x, int rank, const char* wanted);
/// The least value of a type of whole numbers.
std::int64_t lowest_whole(DType dtype);

/// Values, and for each a number that says where it stands; or no such numbers.
struct Placed {
  Tensor values, places;
};
/// f of both.
template <class F>
Placed of_both(const Placed& x, const F& f) {
  return {f(x.values), x.places.defined() ? f(x.places) : Tensor()};
}
/// x with the numbers of its elements in each of its planes (the last `axes` axes): whole numbers
/// and int64, or x in a floating type that counts them all, and numbers of that type.
Placed numbered(const char* op, const Tensor& x, int axes);
/// In x's type, and int64.
ValuesAndIndices finished(const Placed& y, const Tensor& x);
/// Maxima of the windows of images [N, C, H, W], of one floating type with their places.
Placed placed_maxima(const Placed& x, const PoolAttrs& attrs);
/// What comes out of images of this shape. Throws as max_pool2d() does.
Shape pooled_images(const Shape& x, const PoolAttrs& attrs);

}  // namespace tenon
