// How products of float32 multiply, decided when they are built: by the thread's precision
// (set_precision() of eval.h), by a scope, by a layer (nn::Module::set_precision()).
#pragma once

#include <string>

#include <tenon/export.h>

namespace tenon {

/// How products and convolutions of float32 compute: float32 throughout, or operands rounded to
/// TF32 (10 bits of mantissa), bfloat16 or float16. Sums and values stay float32. The CPU has no
/// TF32 and no fast float16: there those two compute in float32, which is more exact.
enum class Precision : std::uint8_t { Fp32, Tf32, Bf16, Fp16 };
TENON_API const char* name(Precision precision);
/// "fp32", "tf32", "bf16", "fp16"; throws ValueError for another text.
TENON_API Precision precision_from_name(const std::string& text);

/// Products and convolutions built by this thread while it lives, and their gradients whenever they
/// are built, compute in this precision, whatever the thread's context says. Scopes nest; the
/// innermost counts.
class TENON_API PrecisionScope {
 public:
  explicit PrecisionScope(Precision precision) noexcept;
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  Precision outer_;
};

}  // namespace tenon
