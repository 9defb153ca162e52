// Local response normalisation across channels, and its gradient:
//
//   y = x s^-beta,  s = k + mean * sum of x^2 over channels [c - Before, c + After]
//   dx = dy s^-beta - 2 mean beta x * sum of dy x s^(-beta - 1) over channels [c - After, c +
//   Before]
//
// Arrays are contiguous and do not overlap: [N, C, places], or (16 bits or float32, C a multiple of
// kResponseLanes) [N, places, C]. Results are overwritten. Sums run in ascending order of channels,
// so results are deterministic. Bandwidth-bound: each array crosses global memory once; elements
// shared by neighbours come from L1.
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "cuda/kernels/opaque/response_args.cuh"
#include "scalar/exp.h"
#include "scalar/log.h"

namespace tenon::cuda {

/// An element of an NCHW array and its neighbours along the channels.
template <class E, int Before, int After, bool Wide>
struct ResponsePlace {
  using V = typename E::Value;
  const ResponseArgs& a;
  bool inside;
  long long element = 0;
  int channel = 0, channels = 0;
  long long step = 0;  // distance to the next channel

  __device__ __forceinline__ explicit ResponsePlace(const ResponseArgs& args) : a(args) {
    const auto i = thread_number<Wide>();
    inside = i < static_cast<typename Counter<Wide>::type>(a.count);
    element = static_cast<long long>(i);
    step = static_cast<long long>(a.places.value);
    channels = static_cast<int>(a.channels.value);
    typename Counter<Wide>::type c = divide<Wide>(i, a.places);
    split<Wide>(c, a.channels);
    channel = static_cast<int>(c);
  }
  /// Loads the element `d` channels further; the element must exist.
  __device__ __forceinline__ V load(int input, int d) const {
    return E::load(a.in[input], element + d * step);
  }
  __device__ __forceinline__ bool exists(int d) const {
    return channel + d >= 0 && channel + d < channels;
  }
  __device__ __forceinline__ V scale(int d) const {
    V sum = 0;
    for (int e = d - Before; e <= d + After; ++e)
      if (exists(e)) sum += load(0, e) * load(0, e);
    return static_cast<V>(a.k) + static_cast<V>(a.mean) * sum;
  }
  __device__ __forceinline__ V power(V x, V y) const { return scalar::exp(y * scalar::log(x)); }
};

template <class E, int Before, int After, bool Wide>
__device__ __forceinline__ void response_norm(const ResponseArgs& a) {
  const ResponsePlace<E, Before, After, Wide> at(a);
  using V = typename E::Value;
  if (!at.inside) return;
  E::store(a.out, at.element, at.load(0, 0) * at.power(at.scale(0), static_cast<V>(-a.beta)));
}

template <class E, int Before, int After, bool Wide>
__device__ __forceinline__ void response_norm_grad(const ResponseArgs& a) {
  const ResponsePlace<E, Before, After, Wide> at(a);
  using V = typename E::Value;
  if (!at.inside) return;
  const V beta = static_cast<V>(a.beta);
  V own = 0, sum = 0;
  for (int d = -After; d <= Before; ++d) {
    if (!at.exists(d)) continue;
    const V s = at.scale(d), g = at.load(1, d), scaled = g * at.power(s, -beta);
    if (d == 0) own = scaled;
    sum += scaled * at.load(0, d) / s;
  }
  E::store(a.out, at.element, own - 2 * static_cast<V>(a.mean) * beta * at.load(0, 0) * sum);
}

/// The terms that gradients add, for the thread's channels and the channels whose windows reach
/// them. Element kResponseLanes of x and g is the thread's first channel. `power(s, y)` is s^y.
template <int Before, int After, class V, class Power>
__device__ __forceinline__ void response_gradients(const V (&x)[3 * kResponseLanes],
                                                   const V (&g)[3 * kResponseLanes], V mean, V beta,
                                                   V k, const Power& power,
                                                   V (&dx)[kResponseLanes]) {
  static_assert(Before + After <= kResponseLanes, "two windows reach no farther than a neighbour");
  constexpr int kFirst = kResponseLanes - After, kTerms = kResponseLanes + After + Before;
  V terms[kTerms];
#pragma unroll
  for (int i = 0; i < kTerms; ++i) {
    const int c = kFirst + i;
    V sum = 0;
#pragma unroll
    for (int e = -Before; e <= After; ++e) sum += x[c + e] * x[c + e];
    const V s = k + mean * sum;
    terms[i] = g[c] * x[c] * power(s, -beta - 1);
    if (i >= After && i < After + kResponseLanes) dx[i - After] = g[c] * power(s, -beta);
  }
#pragma unroll
  for (int l = 0; l < kResponseLanes; ++l) {
    V sum = 0;
#pragma unroll
    for (int i = l; i <= l + After + Before; ++i) sum += terms[i];
    dx[l] -= 2 * mean * beta * x[kResponseLanes + l] * sum;
  }
}

/// NCHW: a thread has a run of kResponseLanes channels at one position.
template <class E, int Before, int After, bool Wide>
__device__ __forceinline__ void response_norm_grad_runs(const ResponseArgs& a) {
  using V = typename E::Value;
  typename Counter<Wide>::type place = thread_number<Wide>();
  if (place >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  typename Counter<Wide>::type run = split<Wide>(place, a.places);
  const auto image = static_cast<long long>(split<Wide>(run, a.runs));
  const auto step = static_cast<long long>(a.places.value);
  const int channels = static_cast<int>(a.channels.value),
            first = static_cast<int>(run) * kResponseLanes;
  const long long base = image * channels * step + static_cast<long long>(place);
  V x[3 * kResponseLanes], g[3 * kResponseLanes], dx[kResponseLanes];
#pragma unroll
  for (int i = 0; i < 3 * kResponseLanes; ++i) {
    const int c = first + i - kResponseLanes;
    const bool exists = c >= 0 && c < channels;
    x[i] = exists ? E::load(a.in[0], base + c * step) : 0;
    g[i] = exists ? E::load(a.in[1], base + c * step) : 0;
  }
  response_gradients<Before, After>(
      x, g, static_cast<V>(a.mean), static_cast<V>(a.beta), static_cast<V>(a.k),
      [](V s, V y) { return scalar::exp(y * scalar::log(s)); }, dx);
#pragma unroll
  for (int l = 0; l < kResponseLanes; ++l)
    if (first + l < channels) E::store(a.out, base + (first + l) * step, dx[l]);
}

/// NHWC: a thread's channels, and the channels before and after them at the same pixel.
template <class E>
struct alignas(16) ResponseLanes {
  typename E::Storage at[kResponseLanes];
};

/// Element kResponseLanes is the thread's first channel. Channels that do not exist are zero.
template <class E>
__device__ __forceinline__ void load_near(const void* from, long long word, unsigned group,
                                          unsigned groups, float (&x)[3 * kResponseLanes]) {
  const auto* words = static_cast<const ResponseLanes<E>*>(from) + word;
#pragma unroll
  for (int part = -1; part <= 1; ++part) {
    const bool exists = part == 0 || (part < 0 ? group > 0 : group + 1 < groups);
    ResponseLanes<E> lanes = {};
    if (exists) lanes = words[part];
#pragma unroll
    for (int l = 0; l < kResponseLanes; ++l)
      x[(part + 1) * kResponseLanes + l] = E::load(lanes.at, l);
  }
}
template <class E>
__device__ __forceinline__ void store_lanes(void* to, long long word,
                                            const float (&values)[kResponseLanes]) {
  ResponseLanes<E> lanes;
#pragma unroll
  for (int l = 0; l < kResponseLanes; ++l) E::store(lanes.at, l, values[l]);
  static_cast<ResponseLanes<E>*>(to)[word] = lanes;
}

/// s^y with a relative error of 4e-6, enough next to convolutions that round to tf32 or 16 bits.
__device__ __forceinline__ float power_near(float s, float y) {
  constexpr float kLog2E = 1.44269504f;
  return exp2_fast(y * (scalar::log(s) * kLog2E));
}

template <class E, int Before, int After, bool Wide>
__device__ __forceinline__ void response_norm_last(const ResponseArgs& a) {
  typename Counter<Wide>::type group = thread_number<Wide>();
  if (group >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  const auto word = static_cast<long long>(group);
  split<Wide>(group, a.channels);
  float x[3 * kResponseLanes], y[kResponseLanes];
  load_near<E>(a.in[0], word, static_cast<unsigned>(group), static_cast<unsigned>(a.channels.value),
               x);
  const auto mean = static_cast<float>(a.mean), k = static_cast<float>(a.k),
             beta = static_cast<float>(a.beta);
#pragma unroll
  for (int l = 0; l < kResponseLanes; ++l) {
    const int c = kResponseLanes + l;
    float sum = 0;
#pragma unroll
    for (int e = -Before; e <= After; ++e) sum += x[c + e] * x[c + e];
    y[l] = x[c] * power_near(k + mean * sum, -beta);
  }
  store_lanes<E>(a.out, word, y);
}

template <class E, int Before, int After, bool Wide>
__device__ __forceinline__ void response_norm_grad_last(const ResponseArgs& a) {
  typename Counter<Wide>::type group = thread_number<Wide>();
  if (group >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  const auto word = static_cast<long long>(group);
  split<Wide>(group, a.channels);
  const auto groups = static_cast<unsigned>(a.channels.value);
  float x[3 * kResponseLanes], g[3 * kResponseLanes], dx[kResponseLanes];
  load_near<E>(a.in[0], word, static_cast<unsigned>(group), groups, x);
  load_near<E>(a.in[1], word, static_cast<unsigned>(group), groups, g);
  response_gradients<Before, After>(x, g, static_cast<float>(a.mean), static_cast<float>(a.beta),
                                    static_cast<float>(a.k), power_near, dx);
  store_lanes<E>(a.out, word, dx);
}

}  // namespace tenon::cuda
