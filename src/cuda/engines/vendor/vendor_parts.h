// Shared by the vendor engines: an epilogue that our own kernel applies to the library's result, or
// that the library fuses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cuda/engines/maps/print_map.h"
#include "cuda/jit/jit.h"
#include "cuda/kernels/vendor_args.cuh"
#include "plan/program/engine.h"

namespace tenon::cuda {

inline bool vendor_is_short(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}
/// Why the libraries cannot take a contraction's dtypes, or null. They multiply floating-point
/// numbers of one type and return that type or float32; we convert only to 16 bits.
const char* vendor_refusal(const Contraction& c, std::span<const Value> values);

/// A contraction's epilogue, applied to the finished result.
class VendorEpilogue {
 public:
  /// `space` is [batch, rows, columns]. The product is 16-bit, or has the region's dtype if that is
  /// wider, otherwise float32.
  VendorEpilogue(const Target& target, const Region& region, std::span<const Value> values,
                 const Shape& space, DType product);
  void run(const Binding& binding, const std::byte* product) const;
  const std::string& source() const { return kernel_->source().text; }

 private:
  ProductArgs args_;
  EpilogueArguments arguments_;
  Grid grid_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

/// A value of the arena that may hold a product of this type until the epilogue overwrites it in
/// place, element by element; kNoValue if there is none.
ValueId product_place(const Region& region, std::span<const Value> values, DType product);

/// An epilogue that vendor libraries fuse: result + bias, then max(., 0), or only one of both,
/// stored to one contiguous value. The value is float32 or rounded to the operands' product type.
/// An epilogue that only rounds has neither.
struct SimpleEpilogue {
  bool relu = false;
  ValueId bias = kNoValue;  // float32
  std::int64_t bias_offset = 0;
  int bias_axis = -1;  // of [batch, rows, columns]
  ValueId out = kNoValue;
};
std::optional<SimpleEpilogue> simple_epilogue(const Region& region, std::span<const Value> values);

}  // namespace tenon::cuda
