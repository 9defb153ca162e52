// The bodies of PoolRows, written once over a vector type (gemm_vector.h) and compiled for each
// instruction set. In an unnamed namespace, without shared inline functions.
#pragma once

#include "cpu/kernels/gemm/gemm_vector.h"
#include "cpu/kernels/pool/pool2d_rows.h"

namespace tenon::cpu {
namespace {

// Elements p[0], p[stride], …: n <= lanes of them.
template <class V>
typename V::reg load_strided(const float* p, int stride, int n) {
  if (stride == 1) return V::load_part(p, n);
  if (stride == 2) {
    const int last = 2 * n - 1;
    typename V::reg even = V::load_part(p, last < V::lanes ? last : V::lanes);
    typename V::reg odd = last > V::lanes ? V::load_part(p + V::lanes, last - V::lanes) : V::zero();
    V::split(even, odd);
    return even;
  }
  float gathered[V::lanes] = {};
  for (int i = 0; i < n; ++i) gathered[i] = p[i * stride];
  return V::load(gathered);
}

// 2 n neighbouring floats, separated into even and odd elements.
template <class V>
void load_pairs(const float* p, int n, typename V::reg& even, typename V::reg& odd) {
  fetch_ahead(p);
  fetch_ahead(p + V::lanes);
  even = V::load_part(p, 2 * n < V::lanes ? 2 * n : V::lanes);
  odd = 2 * n > V::lanes ? V::load_part(p + V::lanes, 2 * n - V::lanes) : V::zero();
  V::split(even, odd);
}

template <class V>
void store_pairs(float* p, int n, typename V::reg even, typename V::reg odd) {
  V::zip(even, odd);
  V::store_part(p, even, 2 * n < V::lanes ? 2 * n : V::lanes);
  if (2 * n > V::lanes) V::store_part(p + V::lanes, odd, 2 * n - V::lanes);
}

// Calls f(x of the first tap, offset in y, n) for every vector of outputs. If one vector holds a
// row, n and the masks computed from it are constant.
template <class V, class F>
void each_vector(const PoolRun& run, F f) {
  if (run.cols <= V::lanes) {
    const int n = static_cast<int>(run.cols);
    if (n <= 0) return;
    for (std::int64_t i = 0; i < run.rows; ++i) f(run.x + i * run.x_out_row, i * run.pitch, n);
    return;
  }
  for (std::int64_t i = 0; i < run.rows; ++i) {
    for (std::int64_t j = 0; j < run.cols; j += V::lanes) {
      const int n = run.cols - j < V::lanes ? static_cast<int>(run.cols - j) : V::lanes;
      f(run.x + i * run.x_out_row + j * run.stride, i * run.pitch + j, n);
    }
  }
}

template <class V>
void max_2x2(const PoolRun& run, float* y) {
  each_vector<V>(run, [&](const float* x, std::int64_t at, int n) {
    typename V::reg a, b, c, d;
    load_pairs<V>(x, n, a, b);
    load_pairs<V>(x + run.x_tap_row, n, c, d);
    a = V::select(V::greater_or_nan(b, a), b, a);
    c = V::select(V::greater_or_nan(d, c), d, c);
    V::store_part(y + at, V::select(V::greater_or_nan(c, a), c, a), n);
  });
}

bool is_2x2(const PoolRun& run) {
  return run.tap_rows == 2 && run.tap_cols == 2 && run.tap_step == 1 && run.stride == 2;
}

template <class V>
void max_rows(const PoolRun& run, float* y, float* taps) {
  if (taps == nullptr && is_2x2(run)) return max_2x2<V>(run, y);
  each_vector<V>(run, [&](const float* x, std::int64_t at, int n) {
    typename V::reg best = V::zero(), tap = V::zero();
    float number = 0;
    for (std::int64_t a = 0; a < run.tap_rows; ++a) {
      for (int b = 0; b < run.tap_cols; ++b, number += 1) {
        const typename V::reg value =
            load_strided<V>(x + a * run.x_tap_row + b * run.tap_step, run.stride, n);
        if (number == 0) {
          best = value;
          continue;
        }
        const typename V::mask newer = V::greater_or_nan(value, best);
        best = V::select(newer, value, best);
        tap = V::select(newer, V::broadcast(&number), tap);
      }
    }
    V::store_part(y + at, best, n);
    if (taps != nullptr) V::store_part(taps + at, tap, n);
  });
}

template <class V>
void sum_rows(const PoolRun& run, float scale, float* y) {
  each_vector<V>(run, [&](const float* x, std::int64_t at, int n) {
    typename V::reg sum = V::zero();
    for (std::int64_t a = 0; a < run.tap_rows; ++a) {
      for (int b = 0; b < run.tap_cols; ++b) {
        sum = V::add(sum, load_strided<V>(x + a * run.x_tap_row + b * run.tap_step, run.stride, n));
      }
    }
    V::store_part(y + at, V::mul(sum, V::broadcast(&scale)), n);
  });
}

template <class V>
void max_backward_2x2(const PoolRun& run, const float* dy, float* dx) {
  each_vector<V>(run, [&](const float* x, std::int64_t at, int n) {
    const typename V::reg none = V::zero(), g = V::load_part(dy + at, n);
    typename V::reg a, b, c, d;
    load_pairs<V>(x, n, a, b);
    load_pairs<V>(x + run.x_tap_row, n, c, d);
    // The gradient moves to each later tap that is larger (or NaN), in the order of the scalar
    // loop.
    typename V::reg best = a, ga = g, gb = none, gc = none, gd = none;
    typename V::mask newer = V::greater_or_nan(b, best);
    best = V::select(newer, b, best);
    gb = V::select(newer, g, none);
    ga = V::select(newer, none, ga);
    newer = V::greater_or_nan(c, best);
    best = V::select(newer, c, best);
    gc = V::select(newer, g, none);
    ga = V::select(newer, none, ga);
    gb = V::select(newer, none, gb);
    newer = V::greater_or_nan(d, best);
    gd = V::select(newer, g, none);
    ga = V::select(newer, none, ga);
    gb = V::select(newer, none, gb);
    gc = V::select(newer, none, gc);
    float* to = dx + (x - run.x);
    store_pairs<V>(to, n, ga, gb);
    store_pairs<V>(to + run.x_tap_row, n, gc, gd);
  });
}

template <class V>
void avg_backward_2x2(const PoolRun& run, float scale, const float* dy, float* dx) {
  each_vector<V>(run, [&](const float* x, std::int64_t at, int n) {
    const typename V::reg g = V::mul(V::load_part(dy + at, n), V::broadcast(&scale));
    float* to = dx + (x - run.x);
    store_pairs<V>(to, n, g, g);
    store_pairs<V>(to + run.x_tap_row, n, g, g);
  });
}

template <class V>
PoolRows make_pool_rows() {
  return {max_rows<V>, sum_rows<V>, max_backward_2x2<V>, avg_backward_2x2<V>};
}

}  // namespace
}  // namespace tenon::cpu
