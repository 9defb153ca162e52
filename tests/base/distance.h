// The distance of results from expected values: by norm, relative to the expected values, in
// float64 whatever their dtype.
#pragma once

#include <tenon/compute.h>
#include <tenon/ops.h>
#include <tenon/tensor.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace tenon::test {

/// |a - b| / |b|; |a| if b is all zeros; infinite if sizes differ or an element of a is not finite.
template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double apart = 0, norm = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double x = a[k], y = b[k];
    apart += (x - y) * (x - y);
    norm += y * y;
  }
  const double result = norm > 0 ? std::sqrt(apart / norm) : std::sqrt(apart);
  return std::isfinite(result) ? result : std::numeric_limits<double>::infinity();
}

/// The same for tensors; infinite if shapes differ.
inline double distance(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  return distance(cast(a, DType::Float64).to_vector<double>(),
                  cast(b, DType::Float64).to_vector<double>());
}

/// The values of tensors, computed together.
inline std::vector<std::vector<double>> values(std::vector<Tensor> all) {
  for (Tensor& t : all) t = cast(t, DType::Float64);
  compute(all);
  std::vector<std::vector<double>> out;
  out.reserve(all.size());
  for (const Tensor& t : all) out.push_back(t.to_vector<double>());
  return out;
}

}  // namespace tenon::test
