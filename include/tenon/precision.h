// Precision of matrix products and convolutions of float32 tensors. It is fixed when the product is
// built: by the thread's context (set_precision() in compute.h), by a PrecisionScope, or by a layer
// (nn::ModuleBase::set_precision()).
#pragma once

#include <string>

#include <tenon/export.h>

namespace tenon {

/// How matrix products and convolutions of float32 tensors compute. Operands are used as they are
/// or rounded; sums and results stay float32. The CPU has no TF32 and no fast float16: these two
/// compute in float32 there, which is more accurate.
enum class Precision : std::uint8_t {
  Fp32,  ///< float32 throughout.
  Tf32,  ///< Operands rounded to TF32 (10 bits of mantissa).
  Bf16,  ///< Operands rounded to bfloat16.
  Fp16   ///< Operands rounded to float16.
};
/// The name: "fp32", "tf32", "bf16" or "fp16".
TENON_API const char* name(Precision precision);
/// The precision with this name. Throws ValueError for an unknown name.
TENON_API Precision precision_from_name(const std::string& text);

/// Sets the precision of products and convolutions that this thread builds while the scope lives.
/// Their gradients have the same precision, whenever they are built. The scope overrides the
/// context; scopes nest, and the innermost one applies. PyTorch: `torch.autocast`.
class TENON_API PrecisionScope {
 public:
  /// Begins the scope.
  explicit PrecisionScope(Precision precision) noexcept;
  ~PrecisionScope();                                          ///< Ends the scope.
  PrecisionScope(const PrecisionScope&) = delete;             ///< Not copyable.
  PrecisionScope& operator=(const PrecisionScope&) = delete;  ///< Not copyable.

 private:
  Precision outer_;
};

}  // namespace tenon
