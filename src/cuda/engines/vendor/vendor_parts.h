// What the engines of vendor libraries share: an epilogue applied to a result of theirs by a kernel
// of our own, or fused by the library.
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
#include "plan/engine.h"

namespace tenon::cuda {

inline bool vendor_is_short(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}
/// Why the libraries do not take a contraction's dtypes, or null: they multiply floating numbers of
/// one type, give results of that type or float32, and we convert to 16 bits only.
const char* vendor_refusal(const Contraction& c, std::span<const Value> values);

/// A contraction's epilogue over its finished result.
class VendorEpilogue {
 public:
  /// `space` is [batch, rows, columns]; the product is of 16 bits, or of the region's dtype where
  /// that is wider, else float32.
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

/// A value of the arena where a product of this type may lie until its epilogue overwrites it
/// there, element by element; kNoValue where there is none.
ValueId product_place(const Region& region, std::span<const Value> values, DType product);

/// An epilogue that vendor libraries fuse: result + bias, then max(., 0), either of them, into one
/// contiguous value: float32, or rounded to what the operands are multiplied as, and then it may be
/// that alone.
struct SimpleEpilogue {
  bool relu = false;
  ValueId bias = kNoValue;  // float32
  std::int64_t bias_offset = 0;
  int bias_axis = -1;  // of [batch, rows, columns]
  ValueId out = kNoValue;
};
std::optional<SimpleEpilogue> simple_epilogue(const Region& region, std::span<const Value> values);

}  // namespace tenon::cuda
