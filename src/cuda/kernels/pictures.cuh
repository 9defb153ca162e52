// From decoded pictures of any size to a batch of bytes: a box of each scaled along its rows, then
// along its columns, mirrored, and its colours changed, in the CPU's integers and roundings
// (scalar/picture.h): the same bytes.
//
// scale_rows: blocks [groups of kPictureRows rows, pictures]; writes PictureOnCard::rows.
// scale_columns: blocks [rows of the result, pictures]; reads them and writes planes of channels.
// change_colours: blocks [1, pictures]; in place. All have kPictureThreads threads. Bound by the
// bytes that are read, which caches mostly hold.
#pragma once

#include "cuda/kernels/intrinsics.cuh"
#include "cuda/kernels/pictures_args.cuh"
#include "scalar/picture.h"

namespace tenon::cuda {

inline constexpr int kPictureThreads = 256;

TENON_DEVICE void scale_rows(const PicturesArgs& args) {
  const PictureOnCard& picture = args.pictures[blockIdx.y];
  const PictureRecord& record = picture.record;
  const int first_row = static_cast<int>(blockIdx.x) * kPictureRows;
  if (first_row >= record.rows) return;
  const int rows = record.rows - first_row < kPictureRows ? record.rows - first_row : kPictureRows;
  const scalar::ResampleAxis axis =
      scalar::resample_axis(record.left, record.right, record.low_x, record.high_x, args.width);
  const long long pitch = 3ll * record.width;
  const unsigned char* in = picture.pixels + (record.first_row + first_row) * pitch;
  for (int x = static_cast<int>(threadIdx.x); x < args.width; x += kPictureThreads) {
    const double centre = scalar::tap_centre(axis, x);
    const int first = scalar::first_tap(axis, centre),
              count = scalar::end_of_taps(axis, centre, first) - first;
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += scalar::raw_weight(axis, centre, first + k);
    int sums[kPictureRows][3];
    for (auto& row : sums)
      for (int& channel : row) channel = scalar::kHalfWeight;
    for (int k = 0; k < count; ++k) {
      const int weight =
          scalar::tap_weight(scalar::raw_weight(axis, centre, first + k), sum, count);
      for (int r = 0; r < kPictureRows; ++r) {
        if (r >= rows) break;
        const unsigned char* from = in + r * pitch + 3 * (first + k);
        for (int c = 0; c < 3; ++c) sums[r][c] += weight * from[c];
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < 3; ++c)
        picture.rows[(static_cast<long long>(first_row + r) * args.width + x) * 3 + c] =
            scalar::resampled(sums[r][c]);
  }
}

TENON_DEVICE void scale_columns(const PicturesArgs& args) {
  __shared__ int weights[kMostTaps];
  const PictureOnCard& picture = args.pictures[blockIdx.y];
  const PictureRecord& record = picture.record;
  const int y = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const scalar::ResampleAxis axis =
      scalar::resample_axis(record.top, record.bottom, record.low_y, record.high_y, args.height);
  const double centre = scalar::tap_centre(axis, y);
  const int first = scalar::first_tap(axis, centre),
            count = scalar::end_of_taps(axis, centre, first) - first;
  if (thread < count) {
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += scalar::raw_weight(axis, centre, first + k);
    weights[thread] =
        scalar::tap_weight(scalar::raw_weight(axis, centre, first + thread), sum, count);
  }
  __syncthreads();
  const int row = 3 * args.width;
  const unsigned char* in = picture.rows + static_cast<long long>(first - record.first_row) * row;
  const long long plane = static_cast<long long>(args.height) * args.width;
  const int to_y = record.upside_down != 0 ? args.height - 1 - y : y;
  unsigned char* out =
      args.out + blockIdx.y * 3 * plane + static_cast<long long>(to_y) * args.width;
  for (int i = thread; i < row; i += kPictureThreads) {
    int sum = scalar::kHalfWeight;
    for (int k = 0; k < count; ++k) sum += weights[k] * in[static_cast<long long>(k) * row + i];
    const int x = i / 3;
    out[i % 3 * plane + (record.mirrored != 0 ? args.width - 1 - x : x)] = scalar::resampled(sum);
  }
}

/// The mean of the block's sums over `count` pixels, rounded; every thread is given it.
TENON_DEVICE unsigned char mean_level(long long sum, long long count) {
  __shared__ long long warps[kPictureThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) sum += shuffle_down(sum, distance);
  __syncthreads();  // the last mean has been read
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  long long all = 0;
  for (const long long of_warp : warps) all += of_warp;
  return static_cast<unsigned char>(::round(static_cast<double>(all) / static_cast<double>(count)));
}

TENON_DEVICE void change_pixel(const PictureChange& change, unsigned char grey, unsigned char* p) {
  const float factor = change.factor;
  const unsigned char light = scalar::luma(p);
  if (change.kind == PictureChange::kHue) return scalar::turn_hue(p, change.turn);
  for (int c = 0; c < 3; ++c) {
    if (change.kind == PictureChange::kBrightness) p[c] = scalar::blended(0, p[c], factor);
    if (change.kind == PictureChange::kContrast) p[c] = scalar::blended(grey, p[c], factor);
    if (change.kind == PictureChange::kSaturation) p[c] = scalar::blended(light, p[c], factor);
    if (change.kind == PictureChange::kShift) p[c] = scalar::shifted_level(p[c], change.shift[c]);
    if (change.kind == PictureChange::kGrey) p[c] = light;
    if (change.kind == PictureChange::kErase) p[c] = change.colour[c];
  }
}

TENON_DEVICE void change_colours(const PicturesArgs& args) {
  const PictureRecord& record = args.pictures[blockIdx.y].record;
  const int plane = args.height * args.width;
  unsigned char* out = args.out + blockIdx.y * 3ll * plane;
  for (int k = 0; k < record.changes; ++k) {
    const PictureChange& change = record.change[k];
    unsigned char grey = 0;
    if (change.kind == PictureChange::kContrast) {
      long long sum = 0;
      for (int i = static_cast<int>(threadIdx.x); i < plane; i += kPictureThreads) {
        const unsigned char p[3] = {out[i], out[plane + i], out[2 * plane + i]};
        sum += scalar::luma(p);
      }
      grey = mean_level(sum, plane);
    }
    const bool boxed = change.kind == PictureChange::kErase;
    for (int i = static_cast<int>(threadIdx.x); i < plane; i += kPictureThreads) {
      const int x = i % args.width - change.left, y = i / args.width - change.top;
      if (boxed && (x < 0 || x >= change.width || y < 0 || y >= change.height)) continue;
      unsigned char p[3] = {out[i], out[plane + i], out[2 * plane + i]};
      change_pixel(change, grey, p);
      for (int c = 0; c < 3; ++c) out[c * plane + i] = p[c];
    }
  }
}

}  // namespace tenon::cuda
