// Epilogues after a vendor library's call; epilogues that it fuses itself.
#include "cuda/engines/vendor/vendor_parts.h"

#include <algorithm>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/products/conversions.h"
#include "plan/lower.h"

namespace tenon::cuda {
const char* vendor_refusal(const Contraction& c, std::span<const Value> values) {
  if (!is_floating(c.compute()) || !is_floating(c.dtype)) return "whole numbers";
  for (const View* view : {&c.a, &c.b}) {
    const DType dtype = values[at(view->value)].dtype;
    if (!is_floating(dtype)) return "whole numbers";
    if (dtype != c.compute() && !vendor_is_short(c.compute())) return "operands of several types";
  }
  const bool wide = c.compute() == DType::Float64;
  if (wide != (c.dtype == DType::Float64)) return "a result of another precision";
  if (vendor_is_short(c.dtype) && c.dtype != c.compute()) return "a result of another precision";
  return nullptr;
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
               cat(printed.code, "\n", kConversionHeader,
                   flat_entry("tenon_epilogue", "const ProductArgs a, const Epilogue epilogue",
                              cat("apply_epilogue<", is_double ? "double" : "float", ", ", width,
                                  ", ", truth(needs_wide(space.numel())), ">(a, epilogue)")))});
}

void VendorEpilogue::run(const Binding& binding, const std::byte* product) const {
  thread_local std::vector<std::uint64_t> words;  // keeps its memory: a settled step allocates none
  arguments_.fill(words, binding);
  ProductArgs args = args_;
  args.product = product;
  void* params[] = {&args, words.data()};
  kernel_->launch(binding.stream, grid_, {kFlatThreads, 1, 1}, 0, params);
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
