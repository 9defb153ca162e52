// Conversions between lists of numbers and tensors, so that a test can compare with ==.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

namespace cases {

using Floats = std::vector<float>;
using Longs = std::vector<std::int64_t>;

inline tenon::Tensor floats(const Floats& values, const tenon::Shape& shape) {
  return tenon::Tensor::from(values, shape);
}
inline tenon::Tensor floats(const Floats& values) {
  return floats(values, {static_cast<std::int64_t>(values.size())});
}
inline tenon::Tensor longs(const Longs& values, tenon::DType dtype = tenon::DType::Int64) {
  return tenon::cast(tenon::Tensor::from(values, {static_cast<std::int64_t>(values.size())}),
                     dtype);
}
inline Floats list(const tenon::Tensor& t) {
  return tenon::cast(t, tenon::DType::Float32).to_vector<float>();
}
inline Longs whole(const tenon::Tensor& t) {
  return tenon::cast(t, tenon::DType::Int64).to_vector<std::int64_t>();
}
inline Floats slope(const tenon::Tensor& y, const tenon::Tensor& x) {
  return list(tenon::grad(tenon::sum(y), x));
}

}  // namespace cases
