// Arrays in a workspace: aligned to cache lines, 16-bit ones cast to float32.
#pragma once

#include <cstddef>

#include <tenon/dtype.h>

#include "device/cpu_model.h"

namespace tenon::cpu {

/// Bytes, rounded up to cache lines.
constexpr std::size_t whole_lines(std::size_t bytes) {
  constexpr auto kLine = static_cast<std::size_t>(kCpu.line_bytes);
  return (bytes + kLine - 1) / kLine * kLine;
}

/// Dtypes that kernels read as float32.
constexpr bool is_short_float(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

}  // namespace tenon::cpu
