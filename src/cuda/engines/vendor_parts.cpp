// Conversions before and epilogues after a vendor library's call; epilogues that it fuses itself.
#include "cuda/engines/vendor_parts.h"

#include <algorithm>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/opaque_kernels.h"
#include "plan/lower.h"

namespace tenon::cuda {
namespace {

std::string entry_text(const char* name, const std::string& parameters, const std::string& call) {
  return cat("extern \"C\" __global__ void __launch_bounds__(", kOpaqueThreads, ")\n", name, "(",
             parameters, ") {\n", kAwaitKernels, "  ", call, ";\n}\n");
}

constexpr const char* kHeader =
    "#include \"cuda/kernels/vendor.cuh\"\n\nusing namespace tenon::cuda;\n\n";

}  // namespace

const char* vendor_refusal(const Contraction& c, std::span<const Value> values) {
  if (!is_floating(c.compute) || !is_floating(c.dtype)) return "whole numbers";
  for (const View* view : {&c.a, &c.b}) {
    const DType dtype = values[at(view->value)].dtype;
    if (!is_floating(dtype)) return "whole numbers";
    if (dtype != c.compute && !vendor_is_short(c.compute)) return "operands of several types";
  }
  const bool wide = c.compute == DType::Float64;
  if (wide != (c.dtype == DType::Float64)) return "a result of another precision";
  if (vendor_is_short(c.dtype) && c.dtype != c.compute) return "a result of another precision";
  return nullptr;
}

VendorCast::VendorCast(const Target& target, const VendorRows& rows, DType from, DType to)
    : result_(rows) {
  const std::int64_t groups = (rows.inner + kCastWidth - 1) / kCastWidth;
  const auto item = static_cast<std::int64_t>(item_size(from));
  const std::int64_t batch = rows.batch_stride == 0 ? 1 : rows.batch;
  result_.offset = 0;
  result_.outer_stride = groups * kCastWidth;
  result_.batch_stride = batch == 1 ? 0 : rows.outer * result_.outer_stride;
  bytes_ = vendor_round_up(at(batch * rows.outer * result_.outer_stride) * item_size(to));
  in_offset_bytes_ = rows.offset * item;
  args_.count = batch * rows.outer * groups;
  args_.groups = make_divisor(groups);
  args_.outers = make_divisor(rows.outer);
  args_.inner = rows.inner;
  args_.in_outer = rows.outer_stride, args_.in_batch = rows.batch_stride;
  args_.out_outer = result_.outer_stride, args_.out_batch = result_.batch_stride;
  grid_ = grid_over(args_.count);
  const bool aligned = rows.inner % kCastWidth == 0 && in_offset_bytes_ % 16 == 0 &&
                       rows.outer_stride * item % 16 == 0 && rows.batch_stride * item % 16 == 0;
  kernel_ = compile(
      target, {"tenon_cast",
               cat(kHeader, entry_text("tenon_cast", "const CastArgs a",
                                       cat("cast_rows<", element_name(from), ", ", element_name(to),
                                           ", ", truth(aligned), ", ",
                                           truth(needs_wide(args_.count * kCastWidth)), ">(a)")))});
}

void VendorCast::run(void* stream, const std::byte* in, std::byte* out) const {
  CastArgs args = args_;
  args.in = in + in_offset_bytes_;
  args.out = out;
  void* params[] = {&args};
  kernel_->launch(stream, grid_, {kOpaqueThreads, 1, 1}, 0, params);
}

VendorTurn::VendorTurn(const Target& target, const VendorRows& rows, bool tf32)
    : offset_(rows.offset) {
  result_.outer = rows.inner, result_.inner = rows.outer;
  result_.outer_stride = (rows.outer + 7) / 8 * 8;
  bytes_ = vendor_round_up(at(result_.outer * result_.outer_stride) * sizeof(float));
  args_.rows = rows.outer, args_.columns = rows.inner;
  args_.in_pitch = rows.outer_stride, args_.out_pitch = result_.outer_stride;
  const std::int64_t across = divide_up(rows.inner, kTurnSide);
  args_.tiles = make_divisor(across);
  grid_ = {static_cast<std::uint32_t>(across * divide_up(rows.outer, kTurnSide)), 1, 1};
  const bool aligned = rows.inner % 4 == 0 && rows.offset % 4 == 0 && rows.outer_stride % 4 == 0;
  kernel_ =
      compile(target, {"tenon_turn", cat(kHeader, entry_text("tenon_turn", "const TurnArgs a",
                                                             cat("turn_rows<", truth(aligned), ", ",
                                                                 truth(tf32), ">(a)")))});
}

void VendorTurn::run(void* stream, const std::byte* in, std::byte* out) const {
  TurnArgs args = args_;
  args.in = reinterpret_cast<const float*>(in) + offset_;
  args.out = reinterpret_cast<float*>(out);
  void* params[] = {&args};
  kernel_->launch(stream, grid_, {kOpaqueThreads, 1, 1}, 0, params);
}

VendorEpilogue::VendorEpilogue(const Target& target, const Region& region,
                               std::span<const Value> values, const Shape& space) {
  PrintedEpilogue printed = print_epilogue(region, values, target);
  arguments_ = std::move(printed.arguments);
  const bool is_double = region.contraction.dtype == DType::Float64;
  int width = is_double ? 2 : 4;
  while (space[2] % width != 0) width /= 2;
  args_.count = space.numel() / width;
  args_.groups = make_divisor(space[2] / width);
  args_.rows = make_divisor(space[1]);
  grid_ = grid_over(args_.count);
  kernel_ = compile(
      target, {"tenon_epilogue",
               cat(printed.code, "\n", kHeader,
                   entry_text("tenon_epilogue", "const ProductArgs a, const Epilogue epilogue",
                              cat("apply_epilogue<", is_double ? "double" : "float", ", ", width,
                                  ", ", truth(needs_wide(space.numel())), ">(a, epilogue)")))});
}

void VendorEpilogue::run(const Binding& binding, const std::byte* product) const {
  thread_local std::vector<std::uint64_t> words;  // keeps its memory: a settled step allocates none
  arguments_.fill(words, binding);
  ProductArgs args = args_;
  args.product = product;
  void* params[] = {&args, words.data()};
  kernel_->launch(binding.stream, grid_, {kOpaqueThreads, 1, 1}, 0, params);
}

namespace {

/// The one axis that a view moves along, by neighbours; -1 for any other view.
int only_axis(const View& view, const Shape& space) {
  int axis = -1;
  for (int d = 0; d < space.rank(); ++d) {
    if (space[d] == 1 || view.stride[d] == 0) continue;
    if (axis >= 0 || view.stride[d] != 1) return -1;
    axis = d;
  }
  return axis;
}

}  // namespace

std::optional<SimpleEpilogue> simple_epilogue(const Region& region, std::span<const Value> values) {
  const Contraction& c = region.contraction;
  const MapProgram& map = region.map;
  if (!c.has_epilogue || c.out != kNoValue || c.dtype != DType::Float32 || map.stores.size() != 1 ||
      !map.reduces.empty() || map.instrs.size() > 4)
    return {};
  SimpleEpilogue e;
  int product = -1, bias = -1;
  bool added = false;
  for (int i = 0; i < static_cast<int>(map.instrs.size()); ++i) {
    const MapInstr& instr = map.instrs[at(i)];
    if (instr.dtype != DType::Float32) return {};
    if (instr.code == MapCode::Accumulator && product < 0) {
      product = i;
    } else if (instr.code == MapCode::Load && e.bias == kNoValue) {
      bias = i;
      e.bias = instr.view.value;
      e.bias_offset = instr.view.offset;
      e.bias_axis = only_axis(instr.view, map.space);
      if (e.bias_axis < 0) return {};
    } else if (instr.code == MapCode::Compute && instr.op == Op::Add && !e.relu && !added &&
               std::minmax(instr.args[0], instr.args[1]) == std::minmax(product, bias)) {
      added = true;
      product = i;
    } else if (instr.code == MapCode::Compute && instr.op == Op::Relu && instr.args[0] == product &&
               !e.relu) {
      e.relu = true;
      product = i;
    } else {
      return {};
    }
  }
  const MapStore& store = map.stores[0];
  if (added != (bias >= 0) || store.source != product || !is_contiguous(store.view, map.space))
    return {};
  if (product != static_cast<int>(map.instrs.size()) - 1) return {};
  e.out = store.view.value;
  if (values[at(e.out)].dtype != DType::Float32) return {};
  return e;
}

}  // namespace tenon::cuda
