// Launches of the conversion kernels of cuda/kernels/vendor.cuh.
#include "cuda/engines/products/conversions.h"

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/launch/words.h"

namespace tenon::cuda {

std::string flat_entry(const char* name, const std::string& parameters, const std::string& call) {
  return cat("extern \"C\" __global__ void __launch_bounds__(", kFlatThreads, ")\n", name, "(",
             parameters, ") {\n", kAwaitKernels, "  ", call, ";\n}\n");
}

double conversion_microseconds(const GpuModel& gpu, const MatrixRows& rows, std::size_t from,
                               std::size_t to) {
  const std::int64_t batch = rows.batch_stride == 0 ? 1 : rows.batch;
  const auto elements = static_cast<double>(batch * rows.outer * rows.inner);
  return microseconds(gpu, {.bytes = elements * static_cast<double>(from + to)});
}

RowConversion::RowConversion(const MatrixRows& rows, std::int64_t item)
    : result_(rows), in_offset_bytes_(rows.offset * item) {
  const std::int64_t groups = divide_up(rows.inner, kCastWidth);
  result_.offset = 0;
  result_.outer_stride = groups * kCastWidth;
  args_.groups = make_divisor(groups);
  args_.inner = rows.inner;
  args_.in_outer = rows.outer_stride;
  args_.out_outer = result_.outer_stride;
}

void RowConversion::run(void* stream, const std::byte* in, std::byte* out) const {
  CastArgs args = args_;
  args.in = in + in_offset_bytes_;
  args.out = out;
  void* params[] = {&args};
  kernel_->launch(stream, grid_, {kFlatThreads, 1, 1}, 0, params);
}

RowCast::RowCast(const Target& target, const MatrixRows& rows, DType from, DType to)
    : RowConversion(rows, static_cast<std::int64_t>(item_size(from))) {
  const auto item = static_cast<std::int64_t>(item_size(from));
  const std::int64_t batch = rows.batch_stride == 0 ? 1 : rows.batch;
  result_.batch_stride = batch == 1 ? 0 : rows.outer * result_.outer_stride;
  bytes_ = conversion_room(at(batch * rows.outer * result_.outer_stride) * item_size(to));
  args_.count = batch * rows.outer * result_.outer_stride / kCastWidth;
  args_.outers = make_divisor(rows.outer);
  args_.in_batch = rows.batch_stride, args_.out_batch = result_.batch_stride;
  grid_ = grid_over(args_.count);
  const bool aligned = rows.inner % kCastWidth == 0 && in_offset_bytes_ % 16 == 0 &&
                       rows.outer_stride * item % 16 == 0 && rows.batch_stride * item % 16 == 0;
  kernel_ = compile(
      target,
      {"tenon_cast", cat(kConversionHeader,
                         flat_entry("tenon_cast", "const CastArgs a",
                                    cat("cast_rows<", element_name(from), ", ", element_name(to),
                                        ", ", truth(aligned), ", ",
                                        truth(needs_wide(args_.count * kCastWidth)), ">(a)")))});
}

RowParts::RowParts(const Target& target, const MatrixRows& rows) : RowConversion(rows, 4) {
  result_.batch = 3;
  result_.batch_stride = rows.outer * result_.outer_stride;
  bytes_ = conversion_room(at(3 * result_.batch_stride) * 2);
  args_.count = result_.batch_stride / kCastWidth;
  args_.out_batch = result_.batch_stride;
  grid_ = grid_over(args_.count);
  const bool aligned =
      rows.inner % kCastWidth == 0 && rows.offset % 4 == 0 && rows.outer_stride % 4 == 0;
  kernel_ = compile(
      target,
      {"tenon_split", cat(kConversionHeader,
                          flat_entry("tenon_split", "const CastArgs a",
                                     cat("split_rows<", truth(aligned), ", ",
                                         truth(needs_wide(args_.count * kCastWidth)), ">(a)")))});
}

PlaneTranspose::PlaneTranspose(const Target& target, const Shape& planes, DType from, DType to)
    : bytes_(conversion_room(at(planes.numel()) * item_size(to))) {
  args_.rows = static_cast<int>(planes[1]), args_.columns = static_cast<int>(planes[2]);
  const std::int64_t across = divide_up(planes[2], kPlaneSide),
                     down = divide_up(planes[1], kPlaneSide);
  args_.across = make_divisor(across), args_.down = make_divisor(down);
  grid_ = {static_cast<std::uint32_t>(planes[0] * across * down), 1, 1};
  kernel_ = compile(
      target, {"tenon_planes",
               cat(kConversionHeader, flat_entry("tenon_planes", "const PlanesArgs a",
                                                 cat("transpose_planes<", element_name(from), ", ",
                                                     element_name(to), ">(a)")))});
}

void PlaneTranspose::run(void* stream, const std::byte* in, std::byte* out) const {
  PlanesArgs args = args_;
  args.in = in;
  args.out = out;
  void* params[] = {&args};
  kernel_->launch(stream, grid_, {kFlatThreads, 1, 1}, 0, params);
}

RowTranspose::RowTranspose(const Target& target, const MatrixRows& rows, bool tf32)
    : offset_(rows.offset) {
  result_.outer = rows.inner, result_.inner = rows.outer;
  result_.outer_stride = (rows.outer + 7) / 8 * 8;
  bytes_ = conversion_room(at(result_.outer * result_.outer_stride) * sizeof(float));
  args_.rows = rows.outer, args_.columns = rows.inner;
  args_.in_pitch = rows.outer_stride, args_.out_pitch = result_.outer_stride;
  const std::int64_t across = divide_up(rows.inner, kTransposeSide);
  args_.tiles = make_divisor(across);
  grid_ = {static_cast<std::uint32_t>(across * divide_up(rows.outer, kTransposeSide)), 1, 1};
  const bool aligned = rows.inner % 4 == 0 && rows.offset % 4 == 0 && rows.outer_stride % 4 == 0;
  kernel_ = compile(
      target, {"tenon_transpose",
               cat(kConversionHeader,
                   flat_entry("tenon_transpose", "const TransposeArgs a",
                              cat("transpose_rows<", truth(aligned), ", ", truth(tf32), ">(a)")))});
}

void RowTranspose::run(void* stream, const std::byte* in, std::byte* out) const {
  TransposeArgs args = args_;
  args.in = reinterpret_cast<const float*>(in) + offset_;
  args.out = reinterpret_cast<float*>(out);
  void* params[] = {&args};
  kernel_->launch(stream, grid_, {kFlatThreads, 1, 1}, 0, params);
}

}  // namespace tenon::cuda
