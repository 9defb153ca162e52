// Calls of host code and of own kernels. The engine that calls host code is
// cpu/engines/host_call_engine.cpp, the one that launches kernels is
// cuda/engines/opaque/own_kernel.cpp.
#include <tenon/error.h>
#include <tenon/host_call.h>
#include <tenon/ops.h>

#include "graph/host_code.h"
#include "graph/tracing/body.h"
#include "ops/infer.h"
#include "ops/own_kernel.h"
#include "ops/rules.h"

namespace tenon {
namespace {

const HostCallTypes& types_of(const Node& node) { return *node.attrs.as<HostCallAttrs>().types; }

void check_results(const char* name, const std::vector<TensorType>& results) {
  if (results.empty())
    throw make_error<ValueError>(where(name),
                                 ": code without results would never run: give it a result");
  for (const TensorType& type : results)
    for (const std::int64_t size : type.shape)
      if (size < 0) throw make_error<ShapeError>(where(name), ": a result of shape ", type.shape);
}

void check_call(const char* name, const std::vector<TensorType>& results, const HostCode& code,
                Device home) {
  if (!code) throw make_error<ValueError>(where(name), ": the host code is an empty function");
  check_results(name, results);
  if (is_tracing_body() && home.kind != Device::Kind::Cpu)
    throw make_error<NotSupported>(where(name),
                                   ": host code cannot run in the body of a loop or "
                                   "branch on ",
                                   home.str(), ": move the loop's tensors to the CPU with to()");
}

}  // namespace

std::vector<Tensor> host_call(const std::string& name, TensorList inputs,
                              std::vector<TensorType> results, HostCode code) {
  const std::uint32_t interned = intern_label(name);
  const char* const kept_name = label_text(interned).c_str();
  const Called called(kept_name);
  const std::vector<Tensor> given(inputs.begin(), inputs.end());
  for (std::size_t k = 0; k < given.size(); ++k)
    if (!given[k].defined()) refuse_undefined(kept_name, k, given.size());
  const Device home = device_of_body(given);
  check_call(kept_name, results, code, home);
  std::vector<Tensor> all{code_leaf(std::move(code))};
  for (const Tensor& input : given) all.push_back(to(input, Device{}));
  const Tensor node =
      build(Op::HostCall, all, Attrs(host_call_attrs(interned, {std::move(results)})));
  std::vector<Tensor> out = results_of(node);
  for (Tensor& result : out) result = to(result, home);
  return out;
}

Tensor host_call(const std::string& name, TensorList inputs, const TensorType& result,
                 HostCode code) {
  return host_call(name, inputs, std::vector<TensorType>{result}, std::move(code))[0];
}

// ---- Kernels on a GPU ---------------------------------------------------------------------------

void check_launch(const char* name, const CudaLaunch& launch) {
  constexpr std::int64_t kMostBlocks = 2147483647, kMostRows = 65535, kMostThreads = 1024,
                         kMostLayers = 64;
  const auto is_in = [](std::int64_t value, std::int64_t least, std::int64_t most) {
    return value >= least && value <= most;
  };
  const CudaSizes &grid = launch.grid, &block = launch.block;
  if (!is_in(grid.x, 0, kMostBlocks) || !is_in(grid.y, 0, kMostRows) ||
      !is_in(grid.z, 0, kMostRows))
    throw make_error<ValueError>(where(name), ": a grid of ", grid.x, " x ", grid.y, " x ", grid.z,
                                 " blocks: a GPU takes 2147483647 x 65535 x 65535 at most");
  if (!is_in(block.x, 1, kMostThreads) || !is_in(block.y, 1, kMostThreads) ||
      !is_in(block.z, 1, kMostLayers) || block.x * block.y * block.z > kMostThreads)
    throw make_error<ValueError>(where(name), ": a block of ", block.x, " x ", block.y, " x ",
                                 block.z, " threads: a GPU takes 1 to 1024 threads, 64 along z");
  if (launch.shared_bytes < 0)
    throw make_error<ValueError>(where(name), ": ", launch.shared_bytes, " bytes of shared memory");
}

std::vector<Tensor> own_kernel_call(const char* name, TensorList inputs, Device home,
                                    std::vector<TensorType> results,
                                    const std::shared_ptr<const OwnKernelCode>& code) {
  check_results(name, results);
  std::vector<TensorType> types;
  std::vector<Tensor> there;
  for (const Tensor& input : inputs) {
    types.push_back({input.dtype(), input.shape()});
    there.push_back(placed_on(input, home));
  }
  if (has_elements(results))
    check_launch(name, code->kernel.launch({types, results, code->kernel.numbers}));
  const Tensor node = build(Op::OwnKernel, there,
                            Attrs(host_call_attrs(intern_label(name), {std::move(results)}, code)));
  node.node()->placed = true;
  node.node()->device = home;
  return results_of(node);
}

void HostArray::check(DType dtype) const {
  if (dtype != dtype_)
    throw make_error<DTypeError>(where("host_call"), ": the code asks for an array of ", dtype,
                                 ", this one is ", dtype_, *shape_);
}

Inferred infer_host_call_result(const Node& node, std::int64_t k) {
  const TensorType& type = types_of(node).types.at(static_cast<std::size_t>(k));
  return {type.dtype, type.shape};
}

Inferred infer_host_call(const Node& node) { return infer_host_call_result(node, 0); }

std::int64_t count_host_call_results(const Node& node) { return std::ssize(types_of(node).types); }

Gradients vjp_host_call(const Tensor& out, std::span<const Tensor>) {
  throw make_error<NotSupported>(
      where(shown_name(out.node()->op, out.node()->attrs)),
      ": own code has no gradient: call it in the forward function of a Function that has a "
      "backward function, give an Operation its gradient, or detach() its results");
}

}  // namespace tenon
