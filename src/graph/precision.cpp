// Names of precisions, and scopes of them.
#include "graph/precision.h"

#include <tenon/dtype.h>
#include <tenon/error.h>

#include "base/str.h"
#include "graph/attrs.h"

namespace tenon {
namespace {

constexpr const char* kNames[] = {"fp32", "tf32", "bf16", "fp16"};

thread_local std::int64_t t_compute = 0;

}  // namespace

const char* name(Precision value) { return kNames[static_cast<int>(value)]; }

Precision precision_from_name(const std::string& text) {
  constexpr const char* kLong[] = {"float32", "tfloat32", "bfloat16", "float16"};
  for (int k = 0; k < 4; ++k)
    if (text == kNames[k] || text == kLong[k]) return static_cast<Precision>(k);
  throw ValueError(cat("precision '", text, "' is unknown: use fp32, tf32, bf16 or fp16"));
}

PrecisionScope::PrecisionScope(Precision precision) noexcept : outer_(t_compute) {
  constexpr std::int64_t kCodes[] = {compute_code(DType::Float32), kTf32Compute,
                                     compute_code(DType::BFloat16), compute_code(DType::Float16)};
  t_compute = kCodes[static_cast<int>(precision)];
}

PrecisionScope::~PrecisionScope() { t_compute = outer_; }

std::int64_t scoped_compute() noexcept { return t_compute; }

}  // namespace tenon
