// What the engines of vendor libraries share: operands converted into the workspace before the
// library's call, and an epilogue applied to its result by a kernel of our own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cuda/engines/print_map.h"
#include "cuda/jit/jit.h"
#include "cuda/kernels/vendor_args.cuh"
#include "plan/engine.h"

namespace tenon::cuda {

/// Workspace is handed out in pieces of this alignment; its own start may have a lower one.
inline constexpr std::size_t kVendorAlignment = 256;
inline std::size_t vendor_round_up(std::size_t bytes) {
  return (bytes + kVendorAlignment - 1) / kVendorAlignment * kVendorAlignment;
}
inline std::byte* vendor_align(std::byte* workspace) {
  const auto start = reinterpret_cast<std::uintptr_t>(workspace);
  return workspace + (vendor_round_up(start) - start);
}

inline bool vendor_is_short(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}
/// Why the libraries do not take a contraction's dtypes, or null: they multiply floating numbers of
/// one type, give results of that type or float32, and we convert to 16 bits only.
const char* vendor_refusal(const Contraction& c, std::span<const Value> values);

/// An array [batch, outer, inner] whose inner axis is contiguous; strides in elements.
struct VendorRows {
  std::int64_t offset = 0;
  std::int64_t batch = 1, outer = 1, inner = 1;
  std::int64_t batch_stride = 0, outer_stride = 0;
};

/// A conversion of rows to a 16-bit type, into rows whose pitch is a multiple of 8 elements.
class VendorCast {
 public:
  VendorCast(const Target& target, const VendorRows& rows, DType from, DType to);
  /// Where the converted rows lie: offset 0, strides of their own.
  const VendorRows& result() const { return result_; }
  std::size_t bytes() const { return bytes_; }
  void run(void* stream, const std::byte* in, std::byte* out) const;
  const std::string& source() const { return kernel_->source().text; }

 private:
  CastArgs args_;
  VendorRows result_;
  std::int64_t in_offset_bytes_ = 0;
  std::size_t bytes_ = 0;
  Grid grid_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

/// A float32 matrix with its other axis contiguous, rounded to tf32 or as it is; rows whose pitch
/// is a multiple of 8 elements, zero up to it.
class VendorTurn {
 public:
  VendorTurn(const Target& target, const VendorRows& rows, bool tf32);
  const VendorRows& result() const { return result_; }
  std::size_t bytes() const { return bytes_; }
  void run(void* stream, const std::byte* in, std::byte* out) const;
  const std::string& source() const { return kernel_->source().text; }

 private:
  TurnArgs args_;
  VendorRows result_;
  std::int64_t offset_ = 0;
  std::size_t bytes_ = 0;
  Grid grid_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

/// A contraction's epilogue over its finished result.
class VendorEpilogue {
 public:
  /// `space` is [batch, rows, columns]; the result is float32, or float64 when that is the region's
  /// dtype.
  VendorEpilogue(const Target& target, const Region& region, std::span<const Value> values,
                 const Shape& space);
  void run(const Binding& binding, const std::byte* product) const;
  const std::string& source() const { return kernel_->source().text; }

 private:
  ProductArgs args_;
  EpilogueArguments arguments_;
  Grid grid_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

/// An epilogue that vendor libraries fuse: result + bias, then max(., 0), either of them, into one
/// contiguous value of the accumulator's dtype.
struct SimpleEpilogue {
  bool relu = false;
  ValueId bias = kNoValue;  // float32
  std::int64_t bias_offset = 0;
  int bias_axis = -1;  // of [batch, rows, columns]
  ValueId out = kNoValue;
};
std::optional<SimpleEpilogue> simple_epilogue(const Region& region, std::span<const Value> values);

}  // namespace tenon::cuda
