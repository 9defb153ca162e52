// Values are converted on the host, so that no engine takes part in judging itself.
#include "conformance/compare.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/str.h"

using namespace tenon;

namespace conformance {
namespace {

/// torch.testing's tolerances for a dtype: relative and absolute.
struct Tolerance {
  double relative, absolute, tiniest;
};

Tolerance tolerance(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return {1e-7, 1e-7, 1e-320};
    case DType::Float32:
      return {1.3e-6, 1e-5, 3e-45};
    case DType::Float16:
      return {1e-3, 1e-5, 1.2e-7};
    case DType::BFloat16:
      return {1.6e-2, 1e-5, 2e-40};
    default:
      return {0, 0, 0};
  }
}

double factor_of(What what) { return what == What::Value ? 2 : what == What::Gradient ? 4 : 10; }

double largest(DType dtype) {
  if (dtype == DType::Float16) return 65504;
  if (dtype == DType::Float64) return std::numeric_limits<double>::max();
  return static_cast<double>(std::numeric_limits<float>::max());
}

template <class T, class To>
std::vector<To> converted(const Tensor& t) {
  std::vector<To> out;
  const T* data = static_cast<const T*>(t.data());
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      out.push_back(static_cast<To>(static_cast<float>(data[i])));
    else
      out.push_back(static_cast<To>(data[i]));
  }
  return out;
}

std::vector<double> reals(const Tensor& t) {
  switch (t.dtype()) {
    case DType::Float16:
      return converted<float16, double>(t);
    case DType::BFloat16:
      return converted<bfloat16, double>(t);
    case DType::Float32:
      return converted<float, double>(t);
    default:
      return converted<double, double>(t);
  }
}

std::vector<std::int64_t> wholes(const Tensor& t) {
  switch (t.dtype()) {
    case DType::Int64:
      return converted<std::int64_t, std::int64_t>(t);
    case DType::Int32:
      return converted<std::int32_t, std::int64_t>(t);
    case DType::Int8:
      return converted<std::int8_t, std::int64_t>(t);
    default:
      return converted<std::uint8_t, std::int64_t>(t);
  }
}

std::string differs(std::size_t i, double got, double want) {
  return cat("element ", i, " is ", got, ", not ", want);
}

/// True if one is infinite and the other is at or near the dtype's limit.
bool at_the_end(double a, double b, double end) {
  return std::isinf(a) && std::fabs(b) >= 0.998 * end && std::signbit(a) == std::signbit(b);
}

struct Each {
  Tolerance t;
  double factor, end;
  bool signs;
  bool same(double a, double b) const {
    if (std::isnan(b)) return std::isnan(a);
    if (a == 0 && b == 0) return !signs || std::signbit(a) == std::signbit(b);
    return a == b || std::fabs(a - b) <= factor * (t.relative * std::fabs(b) + t.absolute) ||
           at_the_end(a, b, end) || at_the_end(b, a, end);
  }
};

/// Whether `got` is no further from the float64 result than PyTorch's.
bool no_worse(double got, double out, double truth) {
  return std::isfinite(got) && std::isfinite(truth) &&
         std::fabs(got - truth) <= std::fabs(out - truth);
}

/// Compares each element with PyTorch's result and with the float64 result.
std::string each(const Tensor& got, const Tensor& out, const Tensor& truth, What what) {
  Each rule{tolerance(got.dtype()), factor_of(what), largest(got.dtype()), what == What::Value};
  if (what == What::Value) rule.t.absolute = rule.t.tiniest;
  const std::vector<double> a = reals(got), b = reals(out), c = truth.defined() ? reals(truth) : b;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!rule.same(a[i], b[i]) &&
        !(truth.defined() && (rule.same(a[i], c[i]) || no_worse(a[i], b[i], c[i]))))
      return cat(differs(i, a[i], b[i]), truth.defined() ? cat(" (", c[i], " in float64)") : "");
  return "";
}

std::string by_norm(const std::vector<double>& got, const std::vector<double>& want, DType dtype,
                    double factor) {
  const Tolerance t = tolerance(dtype);
  const double end = largest(dtype);
  double difference = 0, norm = 0;
  std::size_t worst = 0;
  double worst_difference = -1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = got[i], b = want[i];
    if (std::isfinite(a) && std::isfinite(b)) {
      difference += (a - b) * (a - b);
      norm += b * b;
      if (std::fabs(a - b) > worst_difference) worst_difference = std::fabs(a - b), worst = i;
    } else if (!(std::isnan(a) && std::isnan(b)) && a != b && !at_the_end(a, b, end) &&
               !at_the_end(b, a, end)) {
      return differs(i, a, b);
    }
  }
  const double allowed = factor * (t.relative * std::sqrt(norm) +
                                   t.absolute * std::sqrt(static_cast<double>(got.size())));
  if (std::sqrt(difference) <= allowed) return "";
  return cat("off by ", std::sqrt(difference), " of ", std::sqrt(norm), "; ",
             differs(worst, got[worst], want[worst]));
}

/// Distance by norm over finite elements; infinite if other elements are finite than in the truth.
double distance(const Tensor& x, const Tensor& truth) {
  const std::vector<double> a = reals(x), b = reals(truth);
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]) != std::isfinite(b[i])) return INFINITY;
    if (std::isfinite(b[i])) sum += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return sum;
}

/// Whether `got` is no further from the float64 result than PyTorch's, by norm.
bool nearer(const Tensor& got, const Tensor& out, const Tensor& truth) {
  const double mine = distance(got, truth);
  return std::isfinite(mine) && mine <= distance(out, truth);
}

std::string exact(const Tensor& got, const Tensor& want) {
  const std::vector<std::int64_t> a = wholes(got), b = wholes(want);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return cat("element ", i, " is ", a[i], ", not ", b[i]);
  return "";
}

std::string agree(const Tensor& got, const Tensor& want, What what) {
  if (!is_floating(want.dtype())) return exact(got, want);
  return by_norm(reals(got), reals(want), got.dtype(), factor_of(what));
}

}  // namespace

const char* name(What what) {
  return what == What::Value ? "value" : what == What::Gradient ? "gradient" : "second";
}

std::string compare(const Tensor& got, const Tensor& out, const Tensor& truth, What what,
                    bool elementwise) {
  const Tensor& wanted = out.defined() ? out : truth;
  if (out.defined() && got.dtype() != out.dtype())
    return cat("dtype ", got.dtype(), ", not ", out.dtype());
  if (got.shape() != wanted.shape()) return cat("shape ", got.shape(), ", not ", wanted.shape());
  if (elementwise && is_floating(got.dtype())) return each(got, wanted, truth, what);
  const std::string first = agree(got, wanted, what);
  if (first.empty() || !truth.defined() || !out.defined()) return first;
  if (agree(got, truth, what).empty() || nearer(got, out, truth)) return "";
  return first;
}

}  // namespace conformance
