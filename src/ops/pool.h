// Shared by pooling with and without indices of the maxima: conversion of options to attributes.
// 1-D inputs are images of one row; 3-D windows are pooled as images, then along the depth.
#pragma once

#include <tenon/pooling.h>

#include "graph/attrs.h"

namespace tenon {

PoolAttrs pool_attrs(const Pool2dOptions& options);
Pool2dOptions as_row(const Pool1dOptions& options);
PoolAttrs of_images(const Pool3dOptions& options);
PoolAttrs of_depth(const Pool3dOptions& options);
/// Whether pooling leaves the depth unchanged.
bool keeps_depth(const Pool3dOptions& options);

void require_pool_rank(const char* op, const Tensor& x, int rank, const char* wanted);
/// The lowest value of an integer dtype.
std::int64_t lowest_whole(DType dtype);

/// Values, and optionally the index of each value.
struct Placed {
  Tensor values, places;
};
/// Applies f to both.
template <class F>
Placed of_both(const Placed& x, const F& f) {
  return {f(x.values), x.places.defined() ? f(x.places) : Tensor()};
}
/// x with the index of each element in its plane (the last `axes` axes): for integers an int64
/// index; for floating x an index of x's dtype, or of a dtype large enough to count all elements.
Placed numbered(const char* op, const Tensor& x, int axes);
/// The values in x's dtype and the indices in int64.
ValuesAndIndices finished(const Placed& y, const Tensor& x);
/// Maxima over the windows of images [N, C, H, W] with their indices, all in one floating dtype.
Placed placed_maxima(const Placed& x, const PoolAttrs& attrs);
/// The output shape for images of this shape. Throws like max_pool2d().
Shape pooled_images(const Shape& x, const PoolAttrs& attrs);

}  // namespace tenon
