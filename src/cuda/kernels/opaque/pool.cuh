// Pooling over [planes, height, width]: one thread per element of the result (for some gradients
// per window), neighbouring threads along a row.
//
// Arrays are contiguous and do not overlap; results are overwritten. Gradients gather: each input
// element adds its windows in ascending order, so there are no atomics and results are
// deterministic. Bandwidth-bound: each array crosses global memory once; overlapping windows are
// served by L1. The window's geometry is a template argument (loops unroll), sizes are arguments.
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "cuda/kernels/opaque/pool_args.cuh"

namespace tenon::cuda {

/// Inside: every window is entirely inside the array, so no bounds are checked.
template <int KernelH, int KernelW, int StrideH, int StrideW, int PadH, int PadW, int DilH,
          int DilW, bool CountPad, bool Inside>
struct Window {
  static constexpr int kKernelH = KernelH, kKernelW = KernelW;
  static constexpr int kStrideH = StrideH, kStrideW = StrideW;
  static constexpr int kPadH = PadH, kPadW = PadW;
  static constexpr bool kInside = Inside;
  static constexpr int kUnroll = KernelH * KernelW <= 16 ? 16 : 1;

  int h0, w0;  // position of the first element; may be in the padding
  int height, width;

  __device__ __forceinline__ Window(int p, int q, const PoolArgs& a)
      : h0(p * StrideH - PadH),
        w0(q * StrideW - PadW),
        height(static_cast<int>(a.height)),
        width(static_cast<int>(a.width)) {}

  /// Calls f(offset in the plane) for the elements inside the array, in row-major order.
  template <class F>
  __device__ __forceinline__ void each(F&& f) const {
    each_tap([&](int offset, int) { f(offset); });
  }
  /// Calls f(offset in the plane, number in the window).
  template <class F>
  __device__ __forceinline__ void each_tap(F&& f) const {
#pragma unroll kUnroll
    for (int k = 0; k < KernelH; ++k) {
      const int i = h0 + k * DilH;
      if (!Inside && (i < 0 || i >= height)) continue;
#pragma unroll kUnroll
      for (int l = 0; l < KernelW; ++l) {
        const int j = w0 + l * DilW;
        if (!Inside && (j < 0 || j >= width)) continue;
        f(i * width + j, k * KernelW + l);
      }
    }
  }

  /// The offset of the first maximum (a NaN beats all before it); -1 if the window has no element
  /// inside.
  template <class E>
  __device__ __forceinline__ int largest(const void* x, long long plane) const {
    typename E::Value best = 0;
    int where = -1;
    each([&](int offset) {
      const typename E::Value v = E::load(x, plane + offset);
      if (where < 0 || v > best || v != v) {
        best = v;
        where = offset;
      }
    });
    return where;
  }

  /// The divisor of an average: the window's elements clipped to the padded array, or to the array.
  __device__ __forceinline__ int area() const {
    if constexpr (Inside) return KernelH * KernelW;
    const int low_h = CountPad ? h0 : max(h0, 0), low_w = CountPad ? w0 : max(w0, 0);
    const int margin_h = CountPad ? PadH : 0, margin_w = CountPad ? PadW : 0;
    return (min(h0 + KernelH, height + margin_h) - low_h) *
           (min(w0 + KernelW, width + margin_w) - low_w);
  }

  /// The largest number of windows along an axis that contain one of `elements` neighbours.
  static constexpr int windows_h(int elements) {
    return (elements - 1 + (KernelH - 1) * DilH) / StrideH + 1;
  }
  static constexpr int windows_w(int elements) {
    return (elements - 1 + (KernelW - 1) * DilW) / StrideW + 1;
  }
  /// The first window that contains row i or column j.
  static __device__ __forceinline__ int first_h(int i) {
    return first(i + PadH - (KernelH - 1) * DilH, StrideH);
  }
  static __device__ __forceinline__ int first_w(int j) {
    return first(j + PadW - (KernelW - 1) * DilW, StrideW);
  }

  /// Calls f(p, q) for the windows that contain element (i, j), in row-major order.
  template <class F>
  static __device__ __forceinline__ void covering(int i, int j, const PoolArgs& a, F&& f) {
    const int p_end = min((i + PadH) / StrideH, static_cast<int>(a.windows_h) - 1);
    const int q_end = min((j + PadW) / StrideW, static_cast<int>(a.windows_w) - 1);
    const int p_begin = first_h(i), q_begin = first_w(j);
#pragma unroll 1
    for (int p = p_begin; p <= p_end; ++p) {
      if (DilH > 1 && (i + PadH - p * StrideH) % DilH != 0) continue;
#pragma unroll 1
      for (int q = q_begin; q <= q_end; ++q) {
        if (DilW > 1 && (j + PadW - q * StrideW) % DilW != 0) continue;
        f(p, q);
      }
    }
  }

 private:
  static __device__ __forceinline__ int first(int low, int stride) {
    return low > 0 ? (low + stride - 1) / stride : 0;
  }
};

template <class Storage>
struct alignas(2 * sizeof(Storage)) Pair {
  Storage at[2];
};

/// This thread's position: column, row and plane of `out`.
template <bool Wide>
struct Place {
  bool inside;
  long long element;
  int row, column;
  long long plane;

  __device__ __forceinline__ explicit Place(const PoolArgs& a) {
    typename Counter<Wide>::type n = thread_number<Wide>();
    inside = n < static_cast<typename Counter<Wide>::type>(a.count);
    element = n;
    typename Counter<Wide>::type rest = split<Wide>(n, a.columns);
    column = static_cast<int>(n);
    plane = split<Wide>(rest, a.rows);
    row = static_cast<int>(rest);
  }
};

/// out[p, q] = in[source][first maximum of in[0] in window (p, q)]. Source 0 is max pooling; source
/// 1 reads a gradient's gradient. A window without elements of the array gives -infinity, or a zero
/// gradient.
template <class E, class W, bool Wide, int Source>
__device__ __forceinline__ void max_pool(const PoolArgs& a) {
  const Place<Wide> at(a);
  if (!at.inside) return;
  const long long plane = at.plane * a.height * a.width;
  const int where = W(at.row, at.column, a).template largest<E>(a.in[0], plane);
  const typename E::Value none = Source == 0 ? -scalar::float_of(0x7f800000u) : 0.0f;
  E::store(a.out, at.element, where < 0 ? none : E::load(a.in[Source], plane + where));
}

/// out[i, j] = sum of in[1] over the windows whose first maximum of in[0] is (i, j).
template <class E, class W, bool Wide>
__device__ __forceinline__ void max_pool_grad(const PoolArgs& a) {
  const Place<Wide> at(a);
  if (!at.inside) return;
  const long long plane = at.plane * a.height * a.width;
  const long long pooled = at.plane * a.windows_h * a.windows_w;
  const int here = at.row * static_cast<int>(a.width) + at.column;
  typename E::Value sum = 0;
  W::covering(at.row, at.column, a, [&](int p, int q) {
    if (W(p, q, a).template largest<E>(a.in[0], plane) == here)
      sum += E::load(a.in[1], pooled + p * a.windows_w + q);
  });
  E::store(a.out, at.element, sum);
}

/// The same by tiles of Tile x Tile elements of `Planes` planes, one tile per block. The first
/// maxima of the windows that overlap the tile are found once each and kept in shared memory. Block
/// x: column and row of the tile, planes.
template <class E, class W, int Tile, int Planes>
__device__ __forceinline__ void max_pool_grad_tiled(const PoolArgs& a) {
  constexpr int kWide = W::windows_w(Tile), kWindows = W::windows_h(Tile) * kWide;
  __shared__ int largest[Planes * kWindows];
  __shared__ typename E::Value gradients[Planes * kWindows];
  unsigned column = blockIdx.x;
  unsigned row = split<false>(column, a.columns);
  const long long first_plane = static_cast<long long>(split<false>(row, a.rows)) * Planes;
  const int planes = static_cast<int>(min(a.planes - first_plane, static_cast<long long>(Planes)));
  const int i0 = static_cast<int>(row) * Tile, j0 = static_cast<int>(column) * Tile;
  const int p0 = W::first_h(i0), q0 = W::first_w(j0);
  const int height = static_cast<int>(a.height), width = static_cast<int>(a.width);
  for (int n = static_cast<int>(threadIdx.x); n < planes * kWindows;
       n += static_cast<int>(blockDim.x)) {
    const long long plane = first_plane + n / kWindows;
    const int p = p0 + n % kWindows / kWide, q = q0 + n % kWide;
    if (p >= a.windows_h || q >= a.windows_w) continue;  // outside the pooled array: not read
    largest[n] = W(p, q, a).template largest<E>(a.in[0], plane * a.height * a.width);
    gradients[n] = E::load(a.in[1], (plane * a.windows_h + p) * a.windows_w + q);
  }
  __syncthreads();
  for (int n = static_cast<int>(threadIdx.x); n < planes * Tile * Tile;
       n += static_cast<int>(blockDim.x)) {
    const int plane = n / (Tile * Tile), i = i0 + n / Tile % Tile, j = j0 + n % Tile;
    if (i >= height || j >= width) continue;
    const int here = i * width + j;
    typename E::Value sum = 0;
    W::covering(i, j, a, [&](int p, int q) {
      const int window = plane * kWindows + (p - p0) * kWide + q - q0;
      if (largest[window] == here) sum += gradients[window];
    });
    E::store(a.out, (first_plane + plane) * a.height * a.width + here, sum);
  }
}

/// For disjoint windows that are entirely inside: the thread of a window owns the elements of the
/// window and of the rest of its stride (the last windows own up to the edge) and stores value(i,
/// j) there. Pairs: the owned cells are two columns wide and begin at even columns.
template <class E, class W, bool Pairs, class F>
__device__ __forceinline__ void write_cell(const PoolArgs& a, int p, int q, long long plane,
                                           F&& value) {
  const W window(p, q, a);
  const int i_end = p + 1 == a.windows_h ? window.height : window.h0 + W::kStrideH;
  [[maybe_unused]] const int j_end = q + 1 == a.windows_w ? window.width : window.w0 + W::kStrideW;
  for (int i = window.h0; i < i_end; ++i) {
    const long long row = plane + static_cast<long long>(i) * window.width;
    if constexpr (Pairs) {
      Pair<typename E::Storage> pair;
      E::store(pair.at, 0, value(i, window.w0));
      E::store(pair.at, 1, value(i, window.w0 + 1));
      *reinterpret_cast<Pair<typename E::Storage>*>(static_cast<typename E::Storage*>(a.out) + row +
                                                    window.w0) = pair;
    } else {
      for (int j = window.w0; j < j_end; ++j) E::store(a.out, row + j, value(i, j));
    }
  }
}

/// One thread per window, so that each maximum is found once.
template <class E, class W, bool Wide, bool Pairs>
__device__ __forceinline__ void max_pool_grad_disjoint(const PoolArgs& a) {
  const Place<Wide> at(a);
  if (!at.inside) return;
  const long long plane = at.plane * a.height * a.width;
  const int where = W(at.row, at.column, a).template largest<E>(a.in[0], plane);
  const typename E::Value g = E::load(a.in[1], at.element);
  const int width = static_cast<int>(a.width);
  write_cell<E, W, Pairs>(a, at.row, at.column, plane,
                          [&](int i, int j) { return i * width + j == where ? g : 0; });
}

struct alignas(16) PoolWord {
  unsigned at[4];
};

/// Copies elements between arrays that begin at multiples of 16 bytes.
template <class Storage>
__device__ __forceinline__ void copy_planes(Storage* to, const Storage* from, int elements) {
  constexpr int kElements = 16 / static_cast<int>(sizeof(Storage));
  const int words = elements / kElements;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += static_cast<int>(blockDim.x))
    reinterpret_cast<PoolWord*>(to)[i] = reinterpret_cast<const PoolWord*>(from)[i];
  for (int i = words * kElements + static_cast<int>(threadIdx.x); i < elements;
       i += static_cast<int>(blockDim.x))
    to[i] = from[i];
}

/// Disjoint windows in small planes, of which a block holds several in shared memory. It reads and
/// writes whole 16-byte words whatever the width. A thread replaces the elements of its windows by
/// their gradient in place.
template <class E, class W>
__device__ __forceinline__ void max_pool_grad_staged(const PoolArgs& a) {
  using Storage = typename E::Storage;
  __shared__ __align__(16) Storage planes[kPoolStaged];
  const long long first = static_cast<long long>(blockIdx.x) * a.planes_of_block;
  const int count =
      static_cast<int>(min(a.planes - first, static_cast<long long>(a.planes_of_block)));
  const int plane = static_cast<int>(a.height * a.width),
            windows = static_cast<int>(a.windows_h * a.windows_w);
  copy_planes(planes, static_cast<const Storage*>(a.in[0]) + first * plane, count * plane);
  __syncthreads();
  for (int n = static_cast<int>(threadIdx.x); n < count * windows;
       n += static_cast<int>(blockDim.x)) {
    const typename E::Value g = E::load(a.in[1], first * windows + n);
    unsigned column = static_cast<unsigned>(n);
    unsigned row = split<false>(column, a.columns);
    const int at = static_cast<int>(split<false>(row, a.rows)) * plane;
    const int p = static_cast<int>(row), q = static_cast<int>(column);
    const W window(p, q, a);
    const int where = window.template largest<E>(planes, at);
    const int i_end = p + 1 == a.windows_h ? window.height : window.h0 + W::kStrideH;
    const int j_end = q + 1 == a.windows_w ? window.width : window.w0 + W::kStrideW;
    for (int i = window.h0; i < i_end; ++i)
      for (int j = window.w0; j < j_end; ++j) {
        const int offset = i * window.width + j;
        E::store(planes, at + offset, offset == where ? g : 0);
      }
  }
  __syncthreads();
  copy_planes(static_cast<Storage*>(a.out) + first * plane, planes, count * plane);
}

template <class E, class W, bool Wide>
__device__ __forceinline__ void avg_pool(const PoolArgs& a) {
  const Place<Wide> at(a);
  if (!at.inside) return;
  const long long plane = at.plane * a.height * a.width;
  const W window(at.row, at.column, a);
  typename E::Value sum = 0;
  bool empty = true;
  window.each([&](int offset) {
    sum += E::load(a.in[0], plane + offset);
    empty = false;
  });
  E::store(a.out, at.element, empty ? 0 : sum / static_cast<typename E::Value>(window.area()));
}

template <class E, class W, bool Wide>
__device__ __forceinline__ void avg_pool_grad(const PoolArgs& a) {
  const Place<Wide> at(a);
  if (!at.inside) return;
  const long long pooled = at.plane * a.windows_h * a.windows_w;
  typename E::Value sum = 0;
  W::covering(at.row, at.column, a, [&](int p, int q) {
    sum += E::load(a.in[0], pooled + p * a.windows_w + q) /
           static_cast<typename E::Value>(W(p, q, a).area());
  });
  E::store(a.out, at.element, sum);
}

/// One thread per window.
template <class E, class W, bool Wide, bool Pairs>
__device__ __forceinline__ void avg_pool_grad_disjoint(const PoolArgs& a) {
  const Place<Wide> at(a);
  if (!at.inside) return;
  const W window(at.row, at.column, a);
  const typename E::Value g =
      E::load(a.in[0], at.element) / static_cast<typename E::Value>(window.area());
  const int h1 = window.h0 + W::kKernelH, w1 = window.w0 + W::kKernelW;
  write_cell<E, W, Pairs>(a, at.row, at.column, at.plane * a.height * a.width,
                          [&](int i, int j) { return i < h1 && j < w1 ? g : 0; });
}

/// NHWC feature maps of 16 bits or float32; the number of channels is a multiple of kPoolLanes. A
/// thread has kPoolLanes channels of one pixel of the pooled map, or of the pixels under one stride
/// of the unpooled map.
template <class E>
struct alignas(16) PoolLanes {
  typename E::Storage at[kPoolLanes];
};

template <class E>
__device__ __forceinline__ PoolLanes<E> load_lanes(const void* image, long long element) {
  return *reinterpret_cast<const PoolLanes<E>*>(static_cast<const typename E::Storage*>(image) +
                                                element);
}
template <class E>
__device__ __forceinline__ void store_lanes(void* image, long long element,
                                            const float (&values)[kPoolLanes]) {
  PoolLanes<E> lanes;
#pragma unroll
  for (int l = 0; l < kPoolLanes; ++l) E::store(lanes.at, l, values[l]);
  *reinterpret_cast<PoolLanes<E>*>(static_cast<typename E::Storage*>(image) + element) = lanes;
}

/// A thread's position: channels, column, row and image.
template <bool Wide>
struct LastPlace {
  bool inside;
  long long channel, image;
  int row, column;

  __device__ __forceinline__ explicit LastPlace(const PoolArgs& a) {
    typename Counter<Wide>::type group = thread_number<Wide>();
    inside = group < static_cast<typename Counter<Wide>::type>(a.count);
    typename Counter<Wide>::type c = split<Wide>(group, a.groups);
    typename Counter<Wide>::type r = split<Wide>(c, a.columns);
    image = static_cast<long long>(split<Wide>(r, a.rows));
    channel = static_cast<long long>(group) * kPoolLanes;
    column = static_cast<int>(c);
    row = static_cast<int>(r);
  }
};

/// The tap numbers of the maxima in their windows, one per channel.
struct alignas(kPoolLanes) PoolTaps {
  unsigned char at[kPoolLanes];
};
/// The tap of a window that is entirely in the padding.
inline constexpr int kNoTap = 255;

/// The first maximum of a window (a NaN beats all before it) and, with Taps, its tap number.
template <class E, class W, bool Wide, bool Taps>
__device__ __forceinline__ void max_pool_last(const PoolArgs& a) {
  const LastPlace<Wide> at(a);
  if (!at.inside) return;
  const long long first = at.image * a.height * a.width * a.channels + at.channel;
  float best[kPoolLanes];
  int where[kPoolLanes];
#pragma unroll
  for (int l = 0; l < kPoolLanes; ++l) {
    best[l] = -scalar::float_of(0x7f800000u);
    where[l] = kNoTap;
  }
  W(at.row, at.column, a).each_tap([&](int offset, int tap) {
    const PoolLanes<E> x = load_lanes<E>(a.in[0], first + offset * a.channels);
#pragma unroll
    for (int l = 0; l < kPoolLanes; ++l) {
      const float v = E::load(x.at, l);
      const bool is_first = Taps && (W::kInside ? tap == 0 : where[l] == kNoTap);
      if (is_first || v > best[l] || v != v) {
        best[l] = v;
        where[l] = tap;
      }
    }
  });
  const long long pixel = (at.image * a.windows_h + at.row) * a.windows_w + at.column;
  const long long element = pixel * a.channels + at.channel;
  if (!Taps || a.out != nullptr) store_lanes<E>(a.out, element, best);
  if constexpr (Taps) {
    PoolTaps found;
#pragma unroll
    for (int l = 0; l < kPoolLanes; ++l) found.at[l] = static_cast<unsigned char>(where[l]);
    *reinterpret_cast<PoolTaps*>(a.taps + element) = found;
  }
}

/// in[0] has each window's tap number, in[1] the gradient that goes there. A thread has the
/// elements under one stride. Bandwidth-bound; windows that overlap several strides are read from
/// the caches.
template <class E, class W, bool Wide>
__device__ __forceinline__ void max_pool_grad_last(const PoolArgs& a) {
  constexpr int kStrideH = W::kStrideH, kStrideW = W::kStrideW;
  // The windows that overlap the stride at position r begin at strides r + kFirst to r + kLast.
  constexpr int kFirstH = -((W::kKernelH - 1 - W::kPadH) / kStrideH);
  constexpr int kFirstW = -((W::kKernelW - 1 - W::kPadW) / kStrideW);
  constexpr int kLastH = (kStrideH - 1 + W::kPadH) / kStrideH;
  constexpr int kLastW = (kStrideW - 1 + W::kPadW) / kStrideW;
  const LastPlace<Wide> at(a);
  if (!at.inside) return;
  const unsigned char* taps = static_cast<const unsigned char*>(a.in[0]) + at.channel;
  float sums[kStrideH * kStrideW][kPoolLanes] = {};
#pragma unroll
  for (int y = kFirstH; y <= kLastH; ++y)
#pragma unroll
    for (int x = kFirstW; x <= kLastW; ++x) {
      const int p = at.row + y, q = at.column + x;
      if (p < 0 || q < 0 || p >= a.windows_h || q >= a.windows_w) continue;
      const long long pixel = ((at.image * a.windows_h + p) * a.windows_w + q) * a.channels;
      const PoolTaps found = *reinterpret_cast<const PoolTaps*>(taps + pixel);
      const PoolLanes<E> g = load_lanes<E>(a.in[1], pixel + at.channel);
#pragma unroll
      for (int e = 0; e < kStrideH * kStrideW; ++e) {
        const int k = e / kStrideW + W::kPadH - y * kStrideH;
        const int l = e % kStrideW + W::kPadW - x * kStrideW;
        if (k < 0 || k >= W::kKernelH || l < 0 || l >= W::kKernelW) continue;
#pragma unroll
        for (int lane = 0; lane < kPoolLanes; ++lane)
          if (found.at[lane] == k * W::kKernelW + l) sums[e][lane] += E::load(g.at, lane);
      }
    }
  const int height = static_cast<int>(a.height), width = static_cast<int>(a.width);
#pragma unroll
  for (int e = 0; e < kStrideH * kStrideW; ++e) {
    const int i = at.row * kStrideH + e / kStrideW, j = at.column * kStrideW + e % kStrideW;
    if (i >= height || j >= width) continue;
    const long long pixel = (at.image * a.height + i) * a.width + j;
    store_lanes<E>(a.out, pixel * a.channels + at.channel, sums[e]);
  }
}

}  // namespace tenon::cuda
