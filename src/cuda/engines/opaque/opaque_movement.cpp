// Prepares launches of concat, pad, gather, scatter and softmax. A kernel's source contains only
// what changes its code: dtype, word size, index width, layout of the axes. Sizes are arguments, so
// that another batch size needs no compilation.
#include <limits>

#include "base/axes.h"
#include "cuda/device/outside.h"
#include "cuda/engines/opaque/opaque_kernels.h"
#include "cuda/kernels/opaque/movement_args.cuh"
#include "graph/node.h"

namespace tenon::cuda {

namespace {

std::int64_t item_of(DType dtype) { return static_cast<std::int64_t>(item_size(dtype)); }

/// The widest word, in bytes, that divides `bytes`.
std::int64_t word_of(std::int64_t bytes) {
  std::int64_t word = 16;
  while (bytes % word != 0) word /= 2;
  return word;
}
const char* word_name(std::int64_t word) {
  return word == 16  ? "Word16"
         : word == 8 ? "unsigned long long"
         : word == 4 ? "unsigned"
         : word == 2 ? "unsigned short"
                     : "unsigned char";
}

std::unique_ptr<Kernel> concat(const OpaqueCall& call) {
  const int axis = static_cast<int>(call.op.attrs.as<AxisAttrs>().axis);
  const Shape& out = call.out().shape;
  const std::int64_t outer = outer_count(out, axis);
  const std::int64_t unit = inner_count(out, axis) * item_of(call.out().dtype);
  std::int64_t together = 16 * unit, longest = 0, before = 0;
  for (const Shape& shape : call.op.shapes)
    together |= shape[axis] * unit;  // the lowest bit set bounds the word
  const std::int64_t word = word_of(together);
  ConcatArgs args;
  args.outer = outer;
  args.pitch = out[axis] * unit / word;
  for (std::size_t k = 0; k < call.op.shapes.size(); ++k) {
    const std::int64_t run = call.op.shapes[k][axis] * unit / word;
    args.run[k] = run;
    args.before[k] = before;
    before += run;
    longest = std::max(longest, outer * run);
  }
  auto kernel = std::make_unique<OpaqueKernel<ConcatArgs>>(
      call, args, grid_over(longest, static_cast<std::uint32_t>(call.op.shapes.size())));
  if (longest > 0)
    kernel->compile_body(
        call.target, "tenon_concat", "opaque/movement.cuh", "ConcatArgs",
        cat("concat<", word_name(word), ", ", truth(needs_wide(outer * args.pitch)), ">(a)"));
  return kernel;
}

/// Axes, outermost first. An axis without padding is merged into the padded axis before it, whose
/// margins are multiplied by its size.
struct PadAxes {
  int rank = 0;
  std::int64_t in[kPadAxes], out[kPadAxes], before[kPadAxes];

  void add(std::int64_t in_size, std::int64_t out_size, std::int64_t margin) {
    if (rank > 0 && in_size == out_size && margin == 0) {
      in[rank - 1] *= in_size;
      out[rank - 1] *= in_size;
      before[rank - 1] *= in_size;
      return;
    }
    in[rank] = in_size, out[rank] = out_size, before[rank] = margin;
    ++rank;
  }
};

std::unique_ptr<Kernel> pad(const OpaqueCall& call) {
  const Shape &in = call.op.shapes[0], &out = call.out().shape;
  const std::int64_t item = item_of(call.out().dtype);
  PadAxes axes;
  const auto& margin = call.op.attrs.as<PadAttrs>();
  for (int d = 0; d < out.rank(); ++d) axes.add(in[d], out[d], margin.before[d]);
  if (axes.rank == 0) axes.add(1, 1, 0);
  const int last = axes.rank - 1;
  const std::int64_t word = word_of((axes.in[last] | axes.out[last] | axes.before[last]) * item);
  for (std::int64_t* sizes : {axes.in, axes.out, axes.before})
    sizes[last] = sizes[last] * item / word;
  PadArgs args;
  args.count = out.numel() * item / word;
  args.fill = repeated_bits(call.out().dtype, margin.value);
  std::int64_t stride = 1;
  for (int d = last; d >= 0; --d) {
    args.size[d] = make_divisor(axes.out[d]);
    args.before[d] = axes.before[d];
    args.in_size[d] = axes.in[d];
    args.in_stride[d] = stride;
    stride *= axes.in[d];
  }
  auto kernel = std::make_unique<OpaqueKernel<PadArgs>>(call, args, grid_over(args.count));
  if (args.count > 0)
    kernel->compile_body(
        call.target, "tenon_pad", "opaque/movement.cuh", "PadArgs",
        cat("pad<", word_name(word), ", ", axes.rank, ", ", truth(needs_wide(args.count)), ">(a)"));
  return kernel;
}

const char* index_name(DType dtype) { return dtype == DType::Int64 ? "long long" : "int"; }

/// True if an index of rank 1 applies to a whole row (and to all outer axes); otherwise the index
/// has an element for each element of the result.
bool is_vector(const Opaque& op) { return op.shapes[1].rank() == 1; }

/// Sets the record for indexes outside their axis, and the site to report; not in a kernel that is
/// only printed.
template <class Args>
void watch(Args& args, const OpaqueCall& call, int axis) {
  if (call.target.ordinal < 0) return;
  args.outside = outside_record(call.target.ordinal);
  args.site = outside_site(where(op_row(call.op.op).name), axis, args.size);
}

std::unique_ptr<Kernel> gather(const OpaqueCall& call) {
  const int axis = static_cast<int>(call.op.attrs.as<AxisAttrs>().axis);
  const Shape& out = call.out().shape;
  const std::int64_t item = item_of(call.out().dtype), inner = inner_count(out, axis);
  const bool shared = is_vector(call.op), rows = shared || inner == 1;
  const std::int64_t word = rows ? word_of(inner * item) : item;
  GatherArgs args;
  args.count = out.numel() * item / word;
  args.inner = make_divisor(inner * item / word);
  args.indices = make_divisor(out[axis]);
  args.size = call.op.shapes[0][axis];
  watch(args, call, axis);
  args.fill = is_floating(call.out().dtype)
                  ? repeated_bits(call.out().dtype, std::numeric_limits<double>::quiet_NaN())
                  : 0;
  auto kernel = std::make_unique<OpaqueKernel<GatherArgs>>(call, args, grid_over(args.count));
  if (args.count > 0)
    kernel->compile_body(
        call.target, "tenon_gather", "opaque/movement.cuh", "GatherArgs",
        cat("gather<", word_name(word), ", ", index_name(call.dtype(1)), ", ", truth(rows), ", ",
            truth(shared), ", ", truth(needs_wide(args.count)), ">(a)"));
  return kernel;
}

std::int64_t blocks_of(std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile; }

std::unique_ptr<Kernel> scatter_kernel(const OpaqueCall& call, const ScatterArgs& args,
                                       std::int64_t blocks, const char* function) {
  const bool adds = call.op.op == Op::ScatterAdd;
  const DType dtype = call.out().dtype;
  auto kernel = std::make_unique<OpaqueKernel<ScatterArgs>>(
      call, args, Grid{static_cast<std::uint32_t>(blocks), 1, 1});
  if (call.out().shape.numel() > 0 && blocks > 0)
    kernel->compile_body(call.target, adds ? "tenon_scatter_add" : "tenon_scatter",
                         "opaque/movement.cuh", "ScatterArgs",
                         cat(function, "<", element_name(is_bool(dtype) ? DType::UInt8 : dtype),
                             ", ", index_name(call.dtype(1)), ", ", truth(adds), ">(a)"));
  return kernel;
}

// Gradient of an embedding: a block scans all indices, so it should have many rows.
constexpr std::int64_t kLongUpdate = 128, kManyUpdated = 4096;

std::unique_ptr<Kernel> scatter_long(const OpaqueCall& call, ScatterArgs args, std::int64_t outer) {
  constexpr std::int64_t kBlocks = 512;
  args.rows = std::min<std::int64_t>(blocks_of(args.size * outer, kBlocks), kFlatThreads);
  const std::int64_t row_tiles = blocks_of(args.size, args.rows);
  args.row_tiles = make_divisor(row_tiles);
  return scatter_kernel(call, args, outer * row_tiles, "scatter_long_rows");
}

// In a scatter into its own base, a block for each row of updates scans all indices. Beyond these
// numbers, a pass over the whole table is faster.
constexpr std::int64_t kMostRows = 65536, kRowsPerUpdate = 4;

bool has_few_updates(const OpaqueCall& call, const ScatterArgs& args, std::int64_t outer) {
  return updates_rows(call.op, call.op.out()) && outer == 1 && args.indices <= kMostRows &&
         args.indices * kRowsPerUpdate <= args.size;
}

std::unique_ptr<Kernel> scatter(const OpaqueCall& call) {
  // Every block scans all indices, so few blocks mean little scanning.
  constexpr std::int64_t kBytes = 32768, kBlocks = 256;
  const bool is_float = is_floating(call.out().dtype) && call.out().dtype != DType::Float64;
  const std::int64_t tile = kBytes / (is_float ? 4 : 8);  // of elements as they are computed
  const int axis = static_cast<int>(call.op.attrs.as<AxisAttrs>().axis);
  const Shape &out = call.out().shape, &updates = call.op.shapes[2];
  const std::int64_t outer = outer_count(out, axis);
  ScatterArgs args;
  args.size = out[axis], args.indices = updates[axis], args.inner = inner_count(out, axis);
  watch(args, call, axis);
  const bool shared = is_vector(call.op), rows = shared || args.inner == 1;
  args.base_step = call.op.shapes[0].rank() == 0 ? 0 : 1;
  args.index_pitch = shared ? 0 : args.indices;
  if (rows && has_few_updates(call, args, outer))
    return scatter_kernel(call, args, args.indices, "scatter_in_place");
  if (rows && args.inner >= kLongUpdate && args.size * outer >= kManyUpdated)
    return scatter_long(call, args, outer);
  args.columns = std::clamp<std::int64_t>(args.inner, 1, kFlatThreads);
  const std::int64_t column_tiles = blocks_of(args.inner, args.columns);
  // As many rows as fit, unless there would be too few blocks to fill a GPU.
  const std::int64_t even = blocks_of(args.size * outer * column_tiles, kBlocks);
  const std::int64_t fitting = std::min(tile / args.columns, args.size);
  args.rows = std::max<std::int64_t>(1, std::min(fitting, even));
  args.rows_per_thread = blocks_of(args.rows, kFlatThreads / args.columns);
  const std::int64_t row_tiles = blocks_of(args.size, args.rows);
  args.row_tiles = make_divisor(row_tiles);
  args.column_tiles = make_divisor(column_tiles);
  return scatter_kernel(call, args, outer * row_tiles * column_tiles,
                        rows ? "scatter_rows" : "scatter_elements");
}

}  // namespace

std::unique_ptr<Kernel> prepare_movement(const OpaqueCall& call) {
  switch (call.op.op) {
    case Op::Concat:
      return concat(call);
    case Op::Pad:
      return pad(call);
    case Op::Gather:
      return gather(call);
    default:
      return scatter(call);
  }
}

std::unique_ptr<Kernel> prepare_softmax(const OpaqueCall& call) {
  const Shape& shape = call.out().shape;
  SoftmaxArgs args;
  args.length = shape[shape.rank() - 1];
  const std::int64_t rows = args.length == 0 ? 0 : shape.numel() / args.length;
  const Grid grid{static_cast<std::uint32_t>(rows), 1, 1};
  auto kernel = std::make_unique<OpaqueKernel<SoftmaxArgs>>(call, args, grid);
  if (rows > 0)
    kernel->compile_body(call.target, "tenon_softmax", "maps/softmax.cuh", "SoftmaxArgs",
                         cat("softmax<", element_name(call.out().dtype), ", ",
                             truth(call.op.op == Op::LogSoftmax), ">(a)"));
  return kernel;
}

}  // namespace tenon::cuda
