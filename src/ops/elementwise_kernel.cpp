// Own element-wise operations. A node holds the code for its device only: loops for the tile engine
// of the CPU, or a function for the generated kernels of a GPU.
//
// The key of a node is made from that code. Kernels that are made anew for each step therefore
// share plans, and on a GPU the key is the same in every process.
#include <tenon/elementwise_kernel.h>

#include <optional>
#include <utility>

#include <tenon/error.h>
#include <tenon/function.h>
#include <tenon/ops.h>

#include "base/digest.h"
#include "base/index.h"
#include "base/str.h"
#include "graph/element_code.h"
#include "graph/host_code.h"
#include "graph/tracing/body.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

/// The code for one device, and its key.
struct ElementSide {
  GraphKey key;
  std::shared_ptr<const ElementCode> code;  // null: none
};

/// Both sides of a kernel.
struct ElementSides {
  std::uint32_t label = 0;
  const char* name = nullptr;  // lives as long as the process
  std::size_t inputs = 0;
  ElementSide cpu, gpu;

  Tensor on(const ElementSide& side, TensorList inputs_there) const {
    ElementAttrs attrs;
    attrs.key = side.key;
    attrs.name = label;
    attrs.code = side.code;
    return build(Op::OwnElement, inputs_there, Attrs(attrs));
  }

  /// The node for inputs of one dtype and shape.
  Tensor apply(const std::vector<Tensor>& given) const {
    const Device home = device_of_body(given);
    if (home.kind != Device::Kind::Cpu && gpu.code == nullptr) return through_host(given, home);
    const ElementSide& side = home.kind == Device::Kind::Cpu ? cpu : gpu;
    if (side.code == nullptr)
      throw make_error<NotSupported>(where(name),
                                     ": its formula is for GPUs only: give it a function for the "
                                     "CPU, or move its inputs to a GPU with to()");
    std::vector<Tensor> there;
    there.reserve(given.size());
    for (const Tensor& input : given) there.push_back(placed_on(input, home));
    return on(side, there);
  }

  Tensor through_host(const std::vector<Tensor>& given, Device home) const {
    std::vector<Tensor> here;
    here.reserve(given.size());
    for (const Tensor& input : given) here.push_back(to(input, Device{}));
    return to(on(cpu, here), home);
  }
};

namespace {

constexpr std::size_t kMostOperands = 3;  // as MapInstr::args

void check_identifier(const char* name, const std::string& text) {
  if (!is_identifier(text) || text == "T")
    throw make_error<ValueError>(where(name), ": an input is called '", text,
                                 "': give it a C++ identifier other than T");
}

void check_parts(const char* name, const detail::ElementParts& parts) {
  const std::size_t count = parts.inputs.size();
  if (count < 1 || count > kMostOperands)
    throw make_error<ValueError>(where(name), ": ", count,
                                 " inputs: an element-wise kernel takes one to three");
  if (parts.f32 != nullptr && parts.arity != count)
    throw make_error<ValueError>(where(name), ": ", count, " inputs are named, the function takes ",
                                 parts.arity);
  for (const std::string& input : parts.inputs) check_identifier(name, input);
  if (parts.text.find('#') != std::string::npos)
    throw make_error<ValueError>(where(name),
                                 ": the CUDA text contains '#': it is one function "
                                 "without lines for the preprocessor");
  if (parts.f32 == nullptr && parts.text.empty())
    throw make_error<ValueError>(where(name),
                                 ": the formula is empty: give a function for CPUs, a "
                                 "text for GPUs, or both");
}

ElementSide cpu_side(const detail::ElementParts& parts) {
  if (parts.f32 == nullptr) return {};
  ElementCode code;
  code.f32 = parts.f32;
  code.f64 = parts.f64;
  ElementSide side;
  side.key.mix(reinterpret_cast<std::uintptr_t>(code.f32));
  side.key.mix(reinterpret_cast<std::uintptr_t>(code.f64));
  side.code = std::make_shared<const ElementCode>(std::move(code));
  return side;
}

std::string definition_of(const char* name, const detail::ElementParts& parts,
                          const std::string& function) {
  std::string parameters;
  for (const std::string& input : parts.inputs)
    parameters += cat(parameters.empty() ? "" : ", ", "T ", input);
  const bool is_body = parts.text.find(';') != std::string::npos;
  return cat("#ifndef TENON_", function, "\n#define TENON_", function, "\n", kOwnOperation, name,
             "\nnamespace tenon::scalar::own {\ntemplate <class T>\nTENON_SCALAR T ", function, "(",
             parameters, ") {\n", is_body ? "" : "return static_cast<T>(", parts.text,
             is_body ? "" : "\n);", "\n}\n}  // namespace tenon::scalar::own\n#endif\n",
             kDefinitionEnd, "\n");
}

ElementSide gpu_side(const char* name, const detail::ElementParts& parts) {
  if (parts.text.empty()) return {};
  Digester digester;
  digester.add(name);
  digester.add(parts.text);
  for (const std::string& input : parts.inputs) digester.add(input);
  const Digest digest = digester.result();
  ElementCode code;
  code.function = cat("own_", digest.hex());
  code.definition = definition_of(name, parts, code.function);
  ElementSide side;
  side.key.mix(digest.lo);
  side.key.mix(digest.hi);
  side.code = std::make_shared<const ElementCode>(std::move(code));
  return side;
}

std::vector<Tensor> gradients_of(const std::vector<ElementwiseKernel>& partials,
                                 const FunctionContext& context, const Tensor& g) {
  std::vector<Tensor> gradients;
  gradients.reserve(partials.size());
  for (const ElementwiseKernel& partial : partials)
    gradients.push_back(partial.apply(context.arguments()) * g);
  return gradients;
}

}  // namespace

struct ElementwiseKernel::Code {
  std::shared_ptr<const ElementSides> sides;
  std::optional<Function> with_gradient;
};

ElementwiseKernel::ElementwiseKernel(const std::string& name, const ElementFormula& formula,
                                     std::vector<ElementwiseKernel> partials) {
  auto sides = std::make_shared<ElementSides>();
  sides->label = intern_label(checked_operation_name(name));
  sides->name = label_text(sides->label).c_str();
  check_parts(sides->name, formula.parts());
  sides->inputs = formula.parts().inputs.size();
  sides->cpu = cpu_side(formula.parts());
  sides->gpu = gpu_side(sides->name, formula.parts());
  auto code = std::make_shared<Code>();
  code->sides = sides;
  if (!partials.empty()) {
    if (partials.size() != sides->inputs)
      throw make_error<ValueError>(where(sides->name), ": ", partials.size(),
                                   " partial derivatives for ", sides->inputs, " inputs");
    code->with_gradient.emplace(
        name, [sides](FunctionContext&, const std::vector<Tensor>& in) { return sides->apply(in); },
        [partials = std::move(partials)](const FunctionContext& context, const Tensor& g) {
          return gradients_of(partials, context, g);
        });
  }
  code_ = std::move(code);
}

Tensor ElementwiseKernel::apply(TensorList inputs) const {
  const ElementSides& sides = *code_->sides;
  const Called called(sides.name);
  if (inputs.size() != sides.inputs)
    throw make_error<ValueError>(where(sides.name), ": it takes ", sides.inputs,
                                 " inputs and was given ", inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (!inputs[k].defined()) refuse_undefined(sides.name, k, inputs.size());
  DType dtype = inputs[0].dtype();
  Shape shape = inputs[0].shape();
  for (const Tensor& input : inputs) {
    dtype = promote(dtype, input.dtype());
    shape = broadcast_shapes(shape, input.shape(), where(sides.name));
  }
  if (!is_floating(dtype))
    throw make_error<DTypeError>(where(sides.name), ": takes floating tensors, not ", dtype,
                                 ": cast one of them first");
  std::vector<Tensor> aligned_inputs;
  for (const Tensor& input : inputs)
    aligned_inputs.push_back(broadcast_to(cast(input, dtype), shape));
  if (code_->with_gradient) return code_->with_gradient->apply(aligned_inputs)[0];
  return sides.apply(aligned_inputs);
}

// ---- Rules --------------------------------------------------------------------------------------

Inferred infer_own_element(const Node& node) {
  require_floating(node, "cast it first");
  require_same_dtype(node);
  require_same_shape(node);
  return {node.input(0)->dtype, node.input(0)->shape};
}

Gradients vjp_own_element(const Tensor& out, const Tensor&) {
  throw make_error<NotSupported>(where(shown_name(out.node()->op, out.node()->attrs)),
                                 ": it has no gradient: give the kernel its partial derivatives, "
                                 "call it in a Function that has "
                                 "a backward function, or detach() its result");
}

}  // namespace tenon
