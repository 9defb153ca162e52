// Names of precisions, and scopes that set the precision.
#include "graph/precision.h"

#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "graph/context.h"

namespace tenon {
namespace {

constexpr const char* kNames[] = {"fp32", "tf32", "bf16", "fp16"};

}  // namespace

const char* name(Precision value) { return kNames[static_cast<int>(value)]; }

Precision precision_from_name(const std::string& text) {
  constexpr const char* kLong[] = {"float32", "tfloat32", "bfloat16", "float16"};
  for (int k = 0; k < 4; ++k)
    if (text == kNames[k] || text == kLong[k]) return static_cast<Precision>(k);
  throw make_error<ValueError>("precision '", text, "' is unknown: use fp32, tf32, bf16 or fp16");
}

PrecisionScope::PrecisionScope(Precision precision) noexcept
    : outer_(std::exchange(this_context().precision, precision)) {}

PrecisionScope::~PrecisionScope() { this_context().precision = outer_; }

Precision current_precision() noexcept {
  const Context* const known = known_context();
  return known == nullptr ? Precision::Fp32 : known->precision;
}

}  // namespace tenon
