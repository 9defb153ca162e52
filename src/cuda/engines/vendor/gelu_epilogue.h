// GELU by tanh and its gradient as epilogues of products, as cuBLASLt fuses them.
#pragma once

#include <optional>
#include <span>

#include "plan/region.h"

namespace tenon::cuda {

/// gelu(result + bias) in 16 bits, and result + bias as `input` where somebody reads it; or the
/// gradient: result times gelu's slope at `input`, which is read.
struct GeluEpilogue {
  bool gradient = false;
  View bias;  // float32, along the columns; of kNoValue: none
  ValueId out = kNoValue, input = kNoValue;
};
/// What an epilogue over [batch, rows, columns] computes, when it is one of these.
std::optional<GeluEpilogue> gelu_epilogue(const Region& region, std::span<const Value> values);

}  // namespace tenon::cuda
