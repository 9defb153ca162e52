// Power averages over windows: average pooling of powers (PyTorch's lp_pool).
#include <cmath>

#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/pool.h"

namespace tenon {
namespace {

// `pool` averages and `maxima` takes the maximum over windows of [N, C, axes…].
template <class Average, class Maxima>
Tensor power_pool(const char* op, const Tensor& x, int axes, double p, double window,
                  const Average& average, const Maxima& maxima) {
  require_defined(op, x);
  if (p == 0 || std::isnan(p))
    throw make_error<ValueError>(where(op), ": the power is ", p, ", must not be 0");
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where(op), ": the input is ", x.dtype(),
                                 ", cast it to a float first");
  if (x.rank() == axes + 1)
    return squeeze(power_pool(op, unsqueeze(x, 0), axes, p, window, average, maxima), 0);
  if (p == HUGE_VAL) return maxima(abs(x));
  if (p == -HUGE_VAL) return -maxima(-abs(x));
  const Tensor wide = item_size(x.dtype()) == 2 ? cast(x, DType::Float32) : x;
  const Tensor sums = average(pow(wide, p)) * window;
  if (p < 0) return cast(pow(sums, 1 / p), x.dtype());
  const Tensor none = eq(sums, 0);
  return cast(tenon::where(none, 0, pow(tenon::where(none, 1, sums), 1 / p)), x.dtype());
}

}  // namespace

Tensor lp_pool1d(const Tensor& x, double p, const Pool1dOptions& o) {
  constexpr const char* kName = "lp_pool1d";
  const Called called(kName);
  const Pool1dOptions w{.kernel = o.kernel, .stride = o.stride, .ceil_mode = o.ceil_mode};
  return power_pool(
      kName, x, 1, p, static_cast<double>(w.kernel),
      [&](const Tensor& t) { return avg_pool1d(t, w); },
      [&](const Tensor& t) { return max_pool1d(t, w); });
}

Tensor lp_pool2d(const Tensor& x, double p, const Pool2dOptions& o) {
  constexpr const char* kName = "lp_pool2d";
  const Called called(kName);
  const Pool2dOptions w{.kernel = o.kernel, .stride = o.stride, .ceil_mode = o.ceil_mode};
  return power_pool(
      kName, x, 2, p, static_cast<double>(w.kernel.h) * static_cast<double>(w.kernel.w),
      [&](const Tensor& t) { return avg_pool2d(t, w); },
      [&](const Tensor& t) { return max_pool2d(t, w); });
}

Tensor lp_pool3d(const Tensor& x, double p, const Pool3dOptions& o) {
  constexpr const char* kName = "lp_pool3d";
  const Called called(kName);
  const Pool3dOptions w{.kernel = o.kernel, .stride = o.stride, .ceil_mode = o.ceil_mode};
  const double window = static_cast<double>(w.kernel.d) * static_cast<double>(w.kernel.h) *
                        static_cast<double>(w.kernel.w);
  return power_pool(
      kName, x, 3, p, window, [&](const Tensor& t) { return avg_pool3d(t, w); },
      [&](const Tensor& t) { return max_pool3d(t, w); });
}

}  // namespace tenon
