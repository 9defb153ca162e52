// Converts or transposes operands into the workspace, for products that take operands in one layout
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuda/engines/products/matrix_shape.h"
#include "cuda/jit/jit.h"
#include "cuda/kernels/vendor_args.cuh"
#include "cuda/target.h"

namespace tenon::cuda {

/// Alignment of the pieces of workspace; the start of the workspace may be less aligned.
inline constexpr std::size_t kConversionAlignment = 256;
inline std::size_t conversion_room(std::size_t bytes) {
  return (bytes + kConversionAlignment - 1) / kConversionAlignment * kConversionAlignment;
}
inline std::byte* aligned_workspace(std::byte* workspace) {
  const auto start = reinterpret_cast<std::uintptr_t>(workspace);
  return workspace + (conversion_room(start) - start);
}

/// The header of the kernels here, and a kernel `name` of kFlatThreads threads that is one call.
inline constexpr char kConversionHeader[] =
    "#include \"cuda/kernels/vendor.cuh\"\n\nusing namespace tenon::cuda;\n\n";
std::string flat_entry(const char* name, const std::string& parameters, const std::string& call);

/// Time to convert or transpose the rows, from and to elements of so many bytes.
double conversion_microseconds(const GpuModel& gpu, const MatrixRows& rows, std::size_t from,
                               std::size_t to);

/// A launch that rewrites rows with a pitch that is a multiple of 8 elements.
class RowConversion {
 public:
  /// The layout of the written rows: offset 0, own strides.
  const MatrixRows& result() const { return result_; }
  std::size_t bytes() const { return bytes_; }
  void run(void* stream, const std::byte* in, std::byte* out) const;
  const std::string& source() const { return kernel_->source().text; }

 protected:
  /// `item`: bytes of an element that is read.
  RowConversion(const MatrixRows& rows, std::int64_t item);

  CastArgs args_;
  MatrixRows result_;
  std::int64_t in_offset_bytes_ = 0;
  std::size_t bytes_ = 0;
  Grid grid_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

/// Converts rows to a 16-bit type.
class RowCast : public RowConversion {
 public:
  RowCast(const Target& target, const MatrixRows& rows, DType from, DType to);
};

/// Splits float32 rows into planes of their three bfloat16 parts (cuda/kernels/bf16_parts.cuh): a
/// batch of three.
class RowParts : public RowConversion {
 public:
  RowParts(const Target& target, const MatrixRows& rows);
};

/// Exchanges rows and columns of contiguous planes [planes, rows, columns] and converts: between
/// NCHW and NHWC. Float32 or 16 bits.
class PlaneTranspose {
 public:
  PlaneTranspose(const Target& target, const Shape& planes, DType from, DType to);
  /// Bytes of the result.
  std::size_t bytes() const { return bytes_; }
  void run(void* stream, const std::byte* in, std::byte* out) const;
  const std::string& source() const { return kernel_->source().text; }

 private:
  PlanesArgs args_;
  std::size_t bytes_ = 0;
  Grid grid_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

/// Transposes a float32 matrix so that its other axis is contiguous; elements are rounded to tf32
/// or copied. The pitch of the rows is a multiple of 8 elements, with zeros up to it.
class RowTranspose {
 public:
  RowTranspose(const Target& target, const MatrixRows& rows, bool tf32);
  const MatrixRows& result() const { return result_; }
  std::size_t bytes() const { return bytes_; }
  void run(void* stream, const std::byte* in, std::byte* out) const;
  const std::string& source() const { return kernel_->source().text; }

 private:
  TransposeArgs args_;
  MatrixRows result_;
  std::int64_t offset_ = 0;
  std::size_t bytes_ = 0;
  Grid grid_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

}  // namespace tenon::cuda
