// Image transforms: converts decoded images of any size to a batch of bytes. Each image has its own
// list of transforms. Integer arithmetic and roundings are those of the CPU (scalar/image.h), so
// the bytes are the same, except for exponentials (blur).
//
// - join_colours: converts the planes that nvJPEG decoded to RGB, for the region that the first
//   transform reads. Grid [rows of the tallest image, images], blocks of kScaleThreads.
// - scale_rows, scale_columns: a first transform that scales. Grid [enough for the items of the
//   tallest box, images] and [rows of the tallest result, images], blocks of kScaleThreads.
// - transform_images: all other transforms. Grid [1, images], one block of kChangeThreads an image,
//   with a barrier between transforms; statistics of an image are block reductions.
//
// Bandwidth-bound, mostly from caches; scaling is bound by double precision too. Results are
// overwritten.
#pragma once

#include "cuda/kernels/images/images_args.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "scalar/image.h"

namespace tenon::cuda {

/// An image in memory: strides between a pixel's channels (`channel`) and between pixels (`pixel`).
struct ImageView {
  unsigned char* data;
  int width, height;
  int pixel;
  long long channel;
};

TENON_DEVICE unsigned char* pixel_at(const ImageView& view, int x, int y) {
  return view.data + (static_cast<long long>(y) * view.width + x) * view.pixel;
}

/// The output of the `move`-th transform that moves pixels, counted from 1. 0: the decoded image.
TENON_DEVICE ImageView view_after(const ImagesArgs& args, int move, int width, int height) {
  const ImageOnGpu& image = args.images[blockIdx.y];
  const long long plane = static_cast<long long>(args.height) * args.width;
  if (move == image.moves) return {args.out + 3 * plane * blockIdx.y, width, height, 1, plane};
  return {move % 2 != 0 ? image.spare : image.pixels, width, height, 3, 1};
}

TENON_DEVICE bool begins_with_scaling(const ImageOnGpu& image) {
  return image.changes > 0 && image.change[0].kind == ImageTransform::kScale;
}

TENON_DEVICE void join_colours(const ImagesArgs& args) {
  const ImageOnGpu& image = args.images[blockIdx.y];
  if (image.planes == nullptr) return;
  int y = static_cast<int>(blockIdx.x), left = 0, right = image.width, bottom = image.height;
  if (begins_with_scaling(image)) {
    const ImageTransform& box = image.change[0];
    y += box.top, bottom = box.top + box.height;
    left = box.left, right = left + box.width;
  }
  if (y >= bottom) return;
  const JpegPlanes planes = jpeg_planes(image.width, image.height, image.across, image.down);
  const auto colour = [&](int k) {
    return scalar::ColourPlane{image.planes + planes.colour(k),
                               planes.colour_pitch,
                               planes.colour_width,
                               planes.colour_height,
                               image.across,
                               image.down};
  };
  const scalar::ColourPlane blue = colour(0), red = colour(1);
  const unsigned char* light = image.planes + y * planes.pitch;
  unsigned char* out = image.pixels + 3ll * y * image.width;
  for (int x = left + static_cast<int>(threadIdx.x); x < right; x += kScaleThreads)
    scalar::rgb_of(light[x], scalar::colour_at(blue, x, y), scalar::colour_at(red, x, y),
                   out + 3 * x);
}

// ---- Scaling -----------------------------------------------------------------------------------

TENON_DEVICE scalar::ResampleAxis axis_across(const ImageTransform& c) {
  return scalar::resample_axis(c.numbers[0], c.numbers[2], c.left, c.left + c.width, c.to_width);
}
TENON_DEVICE scalar::ResampleAxis axis_down(const ImageTransform& c) {
  return scalar::resample_axis(c.numbers[1], c.numbers[3], c.top, c.top + c.height, c.to_height);
}

/// Scales rows horizontally into [rows, to_width, 3]: the items from `item` on, `stride` apart. An
/// item is a column of kImageRows rows.
TENON_DEVICE void scale_rows_of(const ImageTransform& change, const ImageView& from,
                                unsigned char* to, int item, int stride) {
  const scalar::TapRange range = scalar::all_taps(axis_down(change), change.to_height);
  const int rows_of_all = range.end - range.first, width = change.to_width;
  const scalar::ResampleAxis axis = axis_across(change);
  const long long pitch = 3ll * from.width;
  const int items = (rows_of_all + kImageRows - 1) / kImageRows * width;
  for (; item < items; item += stride) {
    const int first_row = item / width * kImageRows, x = item % width;
    const int rows = rows_of_all - first_row < kImageRows ? rows_of_all - first_row : kImageRows;
    const unsigned char* in = from.data + (range.first + first_row) * pitch;
    const double centre = scalar::tap_centre(axis, x);
    const int first = scalar::first_tap(axis, centre),
              count = scalar::end_of_taps(axis, centre, first) - first;
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += scalar::raw_weight(axis, centre, first + k);
    int sums[kImageRows][3];
    for (auto& row : sums)
      for (int& channel : row) channel = scalar::kHalfWeight;
    for (int k = 0; k < count; ++k) {
      const int weight =
          scalar::tap_weight(scalar::raw_weight(axis, centre, first + k), sum, count);
      for (int r = 0; r < kImageRows; ++r) {
        if (r >= rows) break;
        const unsigned char* p = in + r * pitch + 3 * (first + k);
        for (int c = 0; c < 3; ++c) sums[r][c] += weight * p[c];
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < 3; ++c)
        to[(static_cast<long long>(first_row + r) * width + x) * 3 + c] =
            scalar::resampled(sums[r][c]);
  }
}

/// Row `y` of the result from the output of scale_rows_of(); by the whole block.
TENON_DEVICE void scale_columns_of(const ImageTransform& change, const unsigned char* from,
                                   const ImageView& to, int y) {
  __shared__ int weights[kMostTaps];
  const int thread = static_cast<int>(threadIdx.x);
  const scalar::ResampleAxis axis = axis_down(change);
  const double centre = scalar::tap_centre(axis, y);
  const int first = scalar::first_tap(axis, centre),
            count = scalar::end_of_taps(axis, centre, first) - first,
            first_row = scalar::first_tap(axis, scalar::tap_centre(axis, 0));
  if (thread < count) {
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += scalar::raw_weight(axis, centre, first + k);
    weights[thread] =
        scalar::tap_weight(scalar::raw_weight(axis, centre, first + thread), sum, count);
  }
  __syncthreads();
  const int row = 3 * change.to_width;
  const unsigned char* in = from + static_cast<long long>(first - first_row) * row;
  const int to_y = change.upside_down != 0 ? change.to_height - 1 - y : y;
  for (int i = thread; i < row; i += static_cast<int>(blockDim.x)) {
    int sum = scalar::kHalfWeight;
    for (int k = 0; k < count; ++k) sum += weights[k] * in[static_cast<long long>(k) * row + i];
    const int x = i / 3;
    pixel_at(to, change.mirrored != 0 ? change.to_width - 1 - x : x, to_y)[i % 3 * to.channel] =
        scalar::resampled(sum);
  }
}

TENON_DEVICE void scale_rows(const ImagesArgs& args) {
  const ImageOnGpu& image = args.images[blockIdx.y];
  if (!begins_with_scaling(image)) return;
  scale_rows_of(image.change[0], view_after(args, 0, image.width, image.height), image.scratch,
                static_cast<int>(blockIdx.x * kScaleThreads + threadIdx.x),
                static_cast<int>(gridDim.x * kScaleThreads));
}

TENON_DEVICE void scale_columns(const ImagesArgs& args) {
  const ImageOnGpu& image = args.images[blockIdx.y];
  const int y = static_cast<int>(blockIdx.x);
  if (!begins_with_scaling(image) || y >= image.change[0].to_height) return;
  const ImageTransform& change = image.change[0];
  scale_columns_of(change, image.scratch, view_after(args, 1, change.to_width, change.to_height),
                   y);
}

// ---- Changes by one block ----------------------------------------------------------------------

/// Calls f(x, y) for the pixels from (left, top) up to (right, bottom); a warp takes a row.
template <class F>
TENON_DEVICE void each_pixel(int left, int top, int right, int bottom, const F& f) {
  for (int y = top + static_cast<int>(threadIdx.x / 32); y < bottom; y += kChangeThreads / 32)
    for (int x = left + static_cast<int>(threadIdx.x % 32); x < right; x += 32) f(x, y);
}
template <class F>
TENON_DEVICE void each_pixel(const ImageView& view, const F& f) {
  each_pixel(0, 0, view.width, view.height, f);
}

TENON_DEVICE void scale(const ImageTransform& change, const ImageView& from, const ImageView& to,
                        unsigned char* scratch) {
  scale_rows_of(change, from, scratch, static_cast<int>(threadIdx.x), kChangeThreads);
  for (int y = 0; y < change.to_height; ++y) {
    __syncthreads();
    scale_columns_of(change, scratch, to, y);
  }
}

/// Copies pixels from the positions that place(x, y, from_x, from_y) gives; black outside.
template <class F>
TENON_DEVICE void gather(const ImageView& from, const ImageView& to, const F& place) {
  each_pixel(to, [&](int x, int y) {
    long long px, py;
    place(x, y, px, py);
    const bool inside = px >= 0 && px < from.width && py >= 0 && py < from.height;
    const unsigned char* p =
        pixel_at(from, inside ? static_cast<int>(px) : 0, inside ? static_cast<int>(py) : 0);
    unsigned char* out = pixel_at(to, x, y);
    for (int c = 0; c < 3; ++c) out[c * to.channel] = inside ? p[c] : 0;
  });
}

TENON_DEVICE void see_from_aside(const ImageTransform& change, const ImageView& from,
                                 const ImageView& to) {
  each_pixel(to, [&](int x, int y) {
    scalar::FourPixels four = {};
    const bool inside =
        scalar::perspective_place(change.numbers, x, y, from.width, from.height, four);
    const unsigned char *a = pixel_at(from, four.left, four.top),
                        *b = pixel_at(from, four.right, four.top),
                        *c = pixel_at(from, four.left, four.bottom),
                        *d = pixel_at(from, four.right, four.bottom);
    unsigned char* out = pixel_at(to, x, y);
    for (int k = 0; k < 3; ++k)
      out[k * to.channel] = inside ? scalar::level_between(four, a[k], b[k], c[k], d[k]) : 0;
  });
}

/// Gaussian blur through `scratch`, float [height, width, 3].
TENON_DEVICE void blur(const ImageTransform& change, const ImageView& from, const ImageView& to,
                       unsigned char* scratch) {
  __shared__ double weights[kMostBlur];
  auto* across = reinterpret_cast<float*>(scratch);
  const int kernel = change.amount, reach = kernel / 2, thread = static_cast<int>(threadIdx.x);
  double weight = 0, sum = 0;
  for (int k = 0; k < kernel; ++k) {
    const double raw = scalar::blur_weight(k - reach, change.numbers[0]);
    if (k == thread) weight = raw;
    sum += raw;
  }
  if (thread < kernel) weights[thread] = weight / sum;
  __syncthreads();
  each_pixel(from, [&](int x, int y) {
    double sums[3] = {};
    for (int k = 0; k < kernel; ++k) {
      const unsigned char* p = pixel_at(from, scalar::reflected(x + k - reach, from.width), y);
      for (int c = 0; c < 3; ++c) sums[c] += scalar::product(weights[k], p[c]);
    }
    float* out = across + (static_cast<long long>(y) * from.width + x) * 3;
    for (int c = 0; c < 3; ++c) out[c] = static_cast<float>(sums[c]);
  });
  __syncthreads();
  each_pixel(to, [&](int x, int y) {
    double sums[3] = {};
    for (int k = 0; k < kernel; ++k) {
      const int row = scalar::reflected(y + k - reach, from.height);
      const float* p = across + (static_cast<long long>(row) * from.width + x) * 3;
      for (int c = 0; c < 3; ++c) sums[c] += scalar::product(weights[k], static_cast<double>(p[c]));
    }
    unsigned char* out = pixel_at(to, x, y);
    for (int c = 0; c < 3; ++c) out[c * to.channel] = scalar::byte_of(sums[c] + 0.5);
  });
}

TENON_DEVICE void sharpen(const ImageTransform& change, const ImageView& from,
                          const ImageView& to) {
  const long long row = 3ll * from.width;
  each_pixel(to, [&](int x, int y) {
    const bool edge = x == 0 || y == 0 || x == from.width - 1 || y == from.height - 1;
    const unsigned char* p = pixel_at(from, x, y);
    unsigned char* out = pixel_at(to, x, y);
    for (int c = 0; c < 3; ++c) {
      int sum = 4 * p[c];
      for (int dy = -1; dy <= 1 && !edge; ++dy)
        for (int dx = -1; dx <= 1; ++dx) sum += p[dy * row + 3 * dx + c];
      out[c * to.channel] =
          scalar::blended(edge ? p[c] : scalar::smoothed_level(sum), p[c], change.factor);
    }
  });
}

TENON_DEVICE void move_pixels(const ImageTransform& change, const ImageView& from,
                              const ImageView& to, unsigned char* scratch) {
  if (change.kind == ImageTransform::kScale) return scale(change, from, to, scratch);
  if (change.kind == ImageTransform::kPerspective) return see_from_aside(change, from, to);
  if (change.kind == ImageTransform::kBlur) return blur(change, from, to, scratch);
  if (change.kind == ImageTransform::kSharpness) return sharpen(change, from, to);
  if (change.kind == ImageTransform::kCrop) {
    gather(from, to, [&](int x, int y, long long& px, long long& py) {
      px = change.left + (change.mirrored != 0 ? to.width - 1 - x : x);
      py = change.top + (change.upside_down != 0 ? to.height - 1 - y : y);
    });
    return;
  }
  const scalar::AffineAxis across = scalar::affine_axis(change.numbers),
                           down = scalar::affine_axis(change.numbers + 3);
  gather(from, to, [&](int x, int y, long long& px, long long& py) {
    px = scalar::affine_place(across, x, y), py = scalar::affine_place(down, x, y);
  });
}

/// The rounded mean of the block's sums over `count` pixels; every thread gets the result.
TENON_DEVICE unsigned char mean_level(long long sum, long long count) {
  __shared__ long long warps[kChangeThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) sum += shuffle_down(sum, distance);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  long long all = 0;
  for (const long long of_warp : warps) all += of_warp;
  return static_cast<unsigned char>(::round(static_cast<double>(all) / static_cast<double>(count)));
}

TENON_DEVICE unsigned char light_of(const ImageView& view, const unsigned char* p) {
  const unsigned char rgb[3] = {p[0], p[view.channel], p[2 * view.channel]};
  return scalar::luma(rgb);
}

/// Transforms that map each channel's levels by a table computed from the channel's histogram.
TENON_DEVICE void change_by_histogram(const ImageTransform& change, const ImageView& view) {
  __shared__ unsigned counts[3][256];
  __shared__ unsigned char levels[3][256];
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 3 * 256; i += kChangeThreads) counts[i / 256][i % 256] = 0;
  __syncthreads();
  each_pixel(view, [&](int x, int y) {
    const unsigned char* p = pixel_at(view, x, y);
    for (int c = 0; c < 3; ++c) atomicAdd(&counts[c][p[c * view.channel]], 1u);
  });
  __syncthreads();
  if (thread < 3 && change.kind == ImageTransform::kAutoContrast)
    scalar::auto_contrast_levels(counts[thread], levels[thread]);
  if (thread < 3 && change.kind == ImageTransform::kEqualize)
    scalar::equalized_levels(counts[thread], levels[thread]);
  __syncthreads();
  each_pixel(view, [&](int x, int y) {
    unsigned char* p = pixel_at(view, x, y);
    for (int c = 0; c < 3; ++c) p[c * view.channel] = levels[c][p[c * view.channel]];
  });
}

TENON_DEVICE void swap_pixels(const ImageView& view, unsigned char* a, unsigned char* b) {
  for (int c = 0; c < 3; ++c) {
    const unsigned char level = a[c * view.channel];
    a[c * view.channel] = b[c * view.channel];
    b[c * view.channel] = level;
  }
}

TENON_DEVICE void change_pixel(const ImageTransform& change, unsigned char grey, unsigned char* p) {
  const float factor = change.factor;
  const unsigned char light = scalar::luma(p);
  if (change.kind == ImageTransform::kHue)
    return scalar::rotate_hue(p, static_cast<unsigned char>(change.amount));
  for (int c = 0; c < 3; ++c) {
    if (change.kind == ImageTransform::kBrightness) p[c] = scalar::blended(0, p[c], factor);
    if (change.kind == ImageTransform::kContrast) p[c] = scalar::blended(grey, p[c], factor);
    if (change.kind == ImageTransform::kSaturation) p[c] = scalar::blended(light, p[c], factor);
    if (change.kind == ImageTransform::kShift)
      p[c] = scalar::shifted_level(p[c], change.numbers[c]);
    if (change.kind == ImageTransform::kGrey) p[c] = light;
    if (change.kind == ImageTransform::kErase) p[c] = change.colour[c];
    if (change.kind == ImageTransform::kPosterize)
      p[c] = scalar::posterized_level(p[c], change.amount);
    if (change.kind == ImageTransform::kSolarize)
      p[c] = scalar::solarized_level(p[c], change.numbers[0]);
  }
}

TENON_DEVICE void change_in_place(const ImageTransform& change, const ImageView& view) {
  if (change.kind == ImageTransform::kAutoContrast || change.kind == ImageTransform::kEqualize)
    return change_by_histogram(change, view);
  if (change.kind == ImageTransform::kMirror)
    return each_pixel(0, 0, view.width / 2, view.height, [&](int x, int y) {
      swap_pixels(view, pixel_at(view, x, y), pixel_at(view, view.width - 1 - x, y));
    });
  if (change.kind == ImageTransform::kUpsideDown)
    return each_pixel(0, 0, view.width, view.height / 2, [&](int x, int y) {
      swap_pixels(view, pixel_at(view, x, y), pixel_at(view, x, view.height - 1 - y));
    });
  unsigned char grey = 0;
  if (change.kind == ImageTransform::kContrast) {
    long long sum = 0;
    each_pixel(view, [&](int x, int y) { sum += light_of(view, pixel_at(view, x, y)); });
    grey = mean_level(sum, static_cast<long long>(view.width) * view.height);
  }
  int left = 0, top = 0, right = view.width, bottom = view.height;
  if (change.kind == ImageTransform::kErase) {
    left = scalar::clamped(change.left, 0, right), top = scalar::clamped(change.top, 0, bottom);
    right = scalar::clamped(change.left + change.width, 0, right);
    bottom = scalar::clamped(change.top + change.height, 0, bottom);
  }
  each_pixel(left, top, right, bottom, [&](int x, int y) {
    unsigned char* at = pixel_at(view, x, y);
    unsigned char p[3] = {at[0], at[view.channel], at[2 * view.channel]};
    change_pixel(change, grey, p);
    for (int c = 0; c < 3; ++c) at[c * view.channel] = p[c];
  });
}

TENON_DEVICE void transform_images(const ImagesArgs& args) {
  const ImageOnGpu& image = args.images[blockIdx.y];
  const int scaled = begins_with_scaling(image) ? 1 : 0;
  ImageView view = scaled == 0
                       ? view_after(args, 0, image.width, image.height)
                       : view_after(args, 1, image.change[0].to_width, image.change[0].to_height);
  int moves = scaled;
  for (int k = scaled; k < image.changes; ++k) {
    // A copy, so the compiler need not load it again after stores to pixels.
    const ImageTransform change = image.change[k];
    if (moves_pixels(change.kind)) {
      const ImageView to = view_after(args, ++moves, change.to_width, change.to_height);
      move_pixels(change, view, to, image.scratch);
      view = to;
    } else {
      change_in_place(change, view);
    }
    __syncthreads();
  }
}

}  // namespace tenon::cuda
