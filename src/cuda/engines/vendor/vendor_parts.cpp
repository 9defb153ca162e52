// Epilogues after a vendor library's call; epilogues that it fuses itself.
#include "cuda/engines/vendor/vendor_parts.h"

#include <algorithm>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/products/conversions.h"
#include "plan/program/strides.h"

namespace tenon::cuda {
const char* vendor_refusal(const Contraction& c, std::span<const Value> values) {
  if (!is_floating(c.compute()) || !is_floating(c.dtype))
    return "takes floating-point numbers only";
  for (const View* view : {&c.a, &c.b}) {
    const DType dtype = values[at(view->value)].dtype;
    if (!is_floating(dtype)) return "takes floating-point numbers only";
    if (dtype != c.compute() && !vendor_is_short(c.compute()))
      return "takes operands only of the type in which it computes";
  }
  const bool wide = c.compute() == DType::Float64;
  if (wide != (c.dtype == DType::Float64)) return "does not convert a result from or to float64";
  if (vendor_is_short(c.dtype) && c.dtype != c.compute())
    return "computes a 16-bit result of operands of the same type only";
  return nullptr;
}

VendorEpilogue::VendorEpilogue(const Target& target, const Region& region,
                               std::span<const Value> values, const Shape& space, DType product) {
  PrintedEpilogue printed = print_epilogue(region, values, target);
  arguments_ = std::move(printed.arguments);
  const bool is_double = region.contraction.dtype == DType::Float64;
  int width = is_double ? 2 : 4;
  while (space[2] % width != 0) width /= 2;
  args_.count = space.numel() / width;
  args_.groups = make_divisor(space[2] / width);
  args_.rows = make_divisor(space[1]);
  grid_ = grid_over(args_.count);
  const std::string function = vendor_is_short(product)
                                   ? cat("apply_epilogue_to<", element_name(product))
                                   : cat("apply_epilogue<", is_double ? "double" : "float");
  kernel_ = compile(
      target, {"tenon_epilogue",
               cat(printed.code, "\n", kConversionHeader,
                   flat_entry("tenon_epilogue", "const ProductArgs a, const Epilogue epilogue",
                              cat(function, ", ", width, ", ", truth(needs_wide(space.numel())),
                                  ">(a, epilogue)")))});
}

void VendorEpilogue::run(const Binding& binding, const std::byte* product) const {
  std::vector<std::uint64_t>& words = words_of_thread();
  arguments_.fill(words, binding);
  ProductArgs args = args_;
  args.product = product;
  void* params[] = {&args, words.data()};
  kernel_->launch(binding.stream, grid_, {kFlatThreads, 1, 1}, 0, params);
}

ValueId product_place(const Region& region, std::span<const Value> values, DType product) {
  const auto& reads = region.reads;
  for (const MapStore& store : region.map.stores) {
    const Value& value = values[at(store.view.value)];
    const bool is_whole = value.kind == Value::Kind::Arena && value.dtype == product &&
                          store.view.offset == 0 && is_contiguous(store.view, region.map.space) &&
                          value.shape.numel() == region.map.space.numel();
    if (is_whole && std::find(reads.begin(), reads.end(), store.view.value) == reads.end())
      return store.view.value;
  }
  return kNoValue;
}

namespace {

/// The axis along which the view is a contiguous vector; -1 for any other view.
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
      !map.reduces.empty() || !is_contiguous(map.stores[0].view, map.space))
    return {};
  SimpleEpilogue e;
  e.out = map.stores[0].view.value;
  // Walks back from the store to the result; other instructions are unused.
  const MapInstr* instr = &map.instrs[at(map.stores[0].source)];
  const auto steps_back = [&](Op op) {
    if (instr->code != MapCode::Compute || instr->op != op) return false;
    instr = &map.instrs[at(instr->args[0])];
    return true;
  };
  const DType stored = values[at(e.out)].dtype;
  if (stored != DType::Float32 &&
      (stored != c.compute() || !vendor_is_short(stored) || !steps_back(Op::Cast)))
    return {};
  e.relu = steps_back(Op::Relu);
  if (instr->code == MapCode::Compute && instr->op == Op::Add) {
    const MapInstr *product = &map.instrs[at(instr->args[0])],
                   *bias = &map.instrs[at(instr->args[1])];
    if (product->code != MapCode::Accumulator) std::swap(product, bias);
    if (bias->code != MapCode::Load || bias->dtype != DType::Float32) return {};
    e.bias = bias->view.value;
    e.bias_offset = bias->view.offset;
    e.bias_axis = only_axis(bias->view, map.space);
    if (e.bias_axis < 0) return {};
    instr = product;
  }
  if (instr->code != MapCode::Accumulator) return {};
  return e;
}

}  // namespace tenon::cuda
