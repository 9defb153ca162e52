// Pooling kernels against plain loops that follow PyTorch's rules: borders, dilation, ceil-mode
// sizes, ties, NaN, on every instruction set that this machine has.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "cpu/kernels/isa.h"
#include "cpu/kernels/pool/pool2d.h"

using namespace tenon;
using namespace tenon::cpu;

namespace {

std::vector<Isa> instruction_sets() {
  if (hardware_isa() == Isa::Neon) return {Isa::Base, Isa::Neon};
  std::vector<Isa> all;
  for (const Isa isa : {Isa::Base, Isa::Avx2, Isa::Avx512}) {
    if (isa <= hardware_isa()) all.push_back(isa);
  }
  return all;
}

struct IsaLimit {
  explicit IsaLimit(Isa isa) { set_isa_limit(isa); }
  ~IsaLimit() { set_isa_limit(Isa::Neon); }
};

PoolShape make(std::int64_t h, std::int64_t w, int kernel_h, int kernel_w, int stride, int pad,
               int dil, bool ceil) {
  PoolShape s;
  s.n = 2;
  s.c = 3;
  s.h = h;
  s.w = w;
  s.kernel_h = kernel_h;
  s.kernel_w = kernel_w;
  s.stride_h = s.stride_w = stride;
  s.pad_h = s.pad_w = pad;
  s.dil_h = s.dil_w = dil;
  const auto size = [&](std::int64_t in, int kernel) {
    const std::int64_t span = in + 2 * pad - dil * (kernel - 1) - 1 + (ceil ? stride - 1 : 0);
    std::int64_t out = span / stride + 1;
    if (ceil && (out - 1) * stride >= in + pad) --out;
    return out;
  };
  s.p = size(h, kernel_h);
  s.q = size(w, kernel_w);
  return s;
}

std::vector<PoolShape> shapes(bool dilated) {
  std::vector<PoolShape> all = {
      make(28, 28, 2, 2, 2, 0, 1, false),  make(26, 26, 2, 2, 2, 0, 1, false),
      make(11, 11, 2, 2, 2, 0, 1, false),  make(11, 11, 2, 2, 2, 0, 1, true),
      make(112, 70, 3, 3, 2, 1, 1, false), make(7, 7, 3, 3, 2, 0, 1, true),
      make(9, 40, 3, 2, 1, 1, 1, false),   make(20, 75, 5, 4, 3, 2, 1, true),
      make(1, 1, 1, 1, 1, 0, 1, false),    make(5, 3, 5, 3, 1, 0, 1, false),
      make(6, 6, 4, 4, 4, 2, 1, false),    make(3, 90, 2, 2, 2, 1, 1, false)};
  if (dilated) {
    all.push_back(make(17, 37, 3, 3, 2, 1, 2, false));
    all.push_back(make(14, 14, 2, 2, 2, 0, 3, false));
    all.push_back(make(8, 8, 2, 2, 1, 1, 9, false));  // steps over the whole plane
    all.push_back(make(9, 10, 3, 2, 1, 1, 5, false));
  }
  return all;
}

// Few distinct values, so that windows have ties; some NaN and infinities where asked.
template <class T>
std::vector<T> values(std::int64_t count, std::uint64_t seed, bool special) {
  std::vector<T> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) {
    const Philox4 random = philox(seed, i, 1);
    v[i] = static_cast<T>(static_cast<int>(random.v[0] % 9) - 4);
    if (special && random.v[1] % 13 == 0) v[i] = std::numeric_limits<T>::quiet_NaN();
    if (special && random.v[1] % 7 == 1) v[i] = -std::numeric_limits<T>::infinity();
  }
  return v;
}

template <class T>
std::int64_t argmax(const PoolShape& s, const T* x, std::int64_t i, std::int64_t j) {
  std::int64_t best = -1;
  for (std::int64_t a = 0; a < s.kernel_h; ++a) {
    for (std::int64_t b = 0; b < s.kernel_w; ++b) {
      const std::int64_t y = i * s.stride_h - s.pad_h + a * s.dil_h,
                         z = j * s.stride_w - s.pad_w + b * s.dil_w;
      if (y < 0 || y >= s.h || z < 0 || z >= s.w) continue;
      const T value = x[y * s.w + z];
      if (best < 0 || value > x[best] || std::isnan(value)) best = y * s.w + z;
    }
  }
  return best;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b, T tolerance) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    if (!std::isnan(a[i]) && a[i] != b[i] && !(std::abs(a[i] - b[i]) <= tolerance)) return false;
  }
  return true;
}

template <class T>
void check_max(const PoolShape& s, bool special) {
  const std::int64_t in = s.n * s.c * s.h * s.w, out = s.n * s.c * s.p * s.q;
  const std::vector<T> x = values<T>(in, 1, special), dy = values<T>(out, 2, false),
                       g = values<T>(in, 3, false);
  const T poison = T(77);
  std::vector<T> y(static_cast<std::size_t>(out), poison), dx(static_cast<std::size_t>(in), poison),
      picked = y;
  std::vector<T> want_y = y, want_dx(static_cast<std::size_t>(in), T(0)), want_picked = y;
  for (std::int64_t plane = 0; plane < s.n * s.c; ++plane) {
    for (std::int64_t i = 0; i < s.p; ++i) {
      for (std::int64_t j = 0; j < s.q; ++j) {
        const std::int64_t best = argmax(s, x.data() + plane * s.h * s.w, i, j);
        const auto from = static_cast<std::size_t>(plane * s.h * s.w + best);
        const auto to = static_cast<std::size_t>((plane * s.p + i) * s.q + j);
        if (best < 0) {
          want_y[to] = -std::numeric_limits<T>::infinity();
          want_picked[to] = T(0);
          continue;
        }
        want_y[to] = x[from];
        want_dx[from] += dy[to];
        want_picked[to] = g[from];
      }
    }
  }
  max_pool2d(s, x.data(), y.data());
  max_pool2d_backward(s, x.data(), dy.data(), dx.data());
  max_pool2d_gather(s, x.data(), g.data(), picked.data());
  CHECK(same(y, want_y, T(0)));
  CHECK(same(dx, want_dx, T(0)));
  CHECK(same(picked, want_picked, T(0)));
}

template <class T>
void check_avg(const PoolShape& s) {
  const std::int64_t in = s.n * s.c * s.h * s.w, out = s.n * s.c * s.p * s.q;
  const std::vector<T> x = values<T>(in, 1, false), dy = values<T>(out, 2, false);
  std::vector<T> y(static_cast<std::size_t>(out), T(77)), dx(static_cast<std::size_t>(in), T(77));
  std::vector<T> want_y = y, want_dx(static_cast<std::size_t>(in), T(0));
  for (std::int64_t plane = 0; plane < s.n * s.c; ++plane) {
    for (std::int64_t i = 0; i < s.p; ++i) {
      for (std::int64_t j = 0; j < s.q; ++j) {
        const std::int64_t y0 = i * s.stride_h - s.pad_h, x0 = j * s.stride_w - s.pad_w;
        const std::int64_t y1 = std::min(y0 + s.kernel_h, s.h + s.pad_h),
                           x1 = std::min(x0 + s.kernel_w, s.w + s.pad_w);
        std::int64_t count = 0;
        T sum = T(0);
        for (int pass = 0; pass < 2; ++pass) {
          const auto to = static_cast<std::size_t>((plane * s.p + i) * s.q + j);
          const T divisor = static_cast<T>(s.count_include_pad ? (y1 - y0) * (x1 - x0) : count);
          if (pass == 1) want_y[to] = sum / divisor;
          for (std::int64_t a = std::max<std::int64_t>(y0, 0); a < std::min(y1, s.h); ++a) {
            for (std::int64_t b = std::max<std::int64_t>(x0, 0); b < std::min(x1, s.w); ++b) {
              const auto at = static_cast<std::size_t>((plane * s.h + a) * s.w + b);
              if (pass == 1) want_dx[at] += dy[to] / divisor;
              if (pass == 0) sum += x[at];
              if (pass == 0) ++count;
            }
          }
        }
      }
    }
  }
  avg_pool2d(s, x.data(), y.data());
  avg_pool2d_backward(s, dy.data(), dx.data());
  CHECK(same(y, want_y, T(1e-5)));
  CHECK(same(dx, want_dx, T(1e-5)));
}

void capture_and(const PoolShape& s, Isa isa, void (*check)(const PoolShape&)) {
  const IsaLimit limit(isa);
  CAPTURE(name(isa));
  CAPTURE(s.h);
  CAPTURE(s.w);
  CAPTURE(s.kernel_h);
  CAPTURE(s.stride_h);
  CAPTURE(s.pad_h);
  check(s);
}

}  // namespace

TEST_CASE("max_pool2d: forward, backward and gather follow the first largest, or the last NaN") {
  for (const Isa isa : instruction_sets()) {
    for (const PoolShape& s : shapes(true)) {
      capture_and(s, isa, [](const PoolShape& shape) {
        check_max<float>(shape, false);
        check_max<float>(shape, true);
        check_max<double>(shape, true);
      });
    }
  }
}

TEST_CASE("avg_pool2d: forward and backward with and without counting the padding") {
  for (const Isa isa : instruction_sets()) {
    for (PoolShape s : shapes(false)) {
      for (const bool count : {true, false}) {
        s.count_include_pad = count;
        capture_and(s, isa, [](const PoolShape& shape) {
          check_avg<float>(shape);
          check_avg<double>(shape);
        });
      }
    }
  }
}
