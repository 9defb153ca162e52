// Elements of the types that the fake libraries take, by CUDA's data types.
#pragma once

#include <cstdint>

#include "scalar/convert.h"

namespace tenon_fake {

enum class Type { F32, F64, F16, BF16 };

inline double load(const void* p, Type type, std::int64_t i) {
  namespace scalar = tenon::scalar;
  switch (type) {
    case Type::F64:
      return static_cast<const double*>(p)[i];
    case Type::F16:
      return static_cast<double>(scalar::from_float16(static_cast<const std::uint16_t*>(p)[i]));
    case Type::BF16:
      return static_cast<double>(scalar::from_bfloat16(static_cast<const std::uint16_t*>(p)[i]));
    default:
      return static_cast<double>(static_cast<const float*>(p)[i]);
  }
}

inline void store(void* p, Type type, std::int64_t i, double value) {
  namespace scalar = tenon::scalar;
  const auto half = static_cast<float>(value);
  switch (type) {
    case Type::F64:
      static_cast<double*>(p)[i] = value;
      break;
    case Type::F16:
      static_cast<std::uint16_t*>(p)[i] = static_cast<std::uint16_t>(scalar::float16_of(half));
      break;
    case Type::BF16:
      static_cast<std::uint16_t*>(p)[i] = static_cast<std::uint16_t>(scalar::bfloat16_of(half));
      break;
    default:
      static_cast<float*>(p)[i] = half;
  }
}

}  // namespace tenon_fake
