// GELU (tanh form) and its gradient as epilogues of products, as cuBLASLt fuses them.
#pragma once

#include <optional>
#include <span>

#include "plan/program/region.h"

namespace tenon::cuda {

/// gelu(result + bias) in 16 bits, with result + bias stored as `input` if it is used; or the
/// gradient: result times gelu's derivative at the loaded `input`.
struct GeluEpilogue {
  bool gradient = false;
  View bias;  // float32, along the columns; of kNoValue: none
  ValueId out = kNoValue, input = kNoValue;
};
/// The GELU epilogue that the region's map over [batch, rows, columns] computes, if it is one.
std::optional<GeluEpilogue> gelu_epilogue(const Region& region, std::span<const Value> values);

}  // namespace tenon::cuda
