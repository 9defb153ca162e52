// Own operations: chooses the code for the device of a call, and joins it with the gradient.
#include <tenon/operation.h>

#include <optional>
#include <utility>

#include <tenon/error.h>

#include "graph/tracing/body.h"
#include "ops/infer.h"
#include "ops/own_kernel.h"

namespace tenon {

/// The parts of a call other than the gradient.
struct OperationParts {
  const char* name = nullptr;  // lives as long as the process
  TypeRule infer;
  HostCode cpu;
  std::shared_ptr<const OwnKernelCode> cuda;  // null: none

  std::vector<TensorType> types_for(TensorList inputs) const {
    std::vector<TensorType> types;
    for (const Tensor& input : inputs) types.push_back({input.dtype(), input.shape()});
    try {
      return infer.function(types);
    } catch (const Error& error) {
      rethrow_named(error, where(name));
    }
  }

  std::vector<Tensor> apply(const std::vector<Tensor>& inputs) const {
    const Called called(name);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (!inputs[k].defined()) refuse_undefined(name, k, inputs.size());
    std::vector<TensorType> types = types_for(inputs);
    const Device home = device_of_body(inputs);
    if (home.kind != Device::Kind::Cpu && cuda != nullptr)
      return own_kernel_call(name, inputs, home, std::move(types), cuda);
    if (!cpu)
      throw make_error<NotSupported>(
          where(name),
          ": it has no code for the CPU: give the Operation one, or move "
          "its inputs to a GPU with to()");
    return host_call(name, inputs, std::move(types), cpu);
  }
};

namespace {

void check_kernel(const char* name, const CudaKernel& kernel) {
  if (!is_identifier(kernel.entry))
    throw make_error<ValueError>(where(name), ": the entry of its CUDA source is called '",
                                 kernel.entry, "': give the name of its __global__ function");
  if (kernel.source.find(kernel.entry) == std::string::npos)
    throw make_error<ValueError>(where(name), ": its CUDA source does not contain the entry ",
                                 kernel.entry);
  if (kernel.launch == nullptr)
    throw make_error<ValueError>(where(name),
                                 ": its CUDA kernel has no launch rule: set CudaKernel::launch");
}

std::shared_ptr<const OperationParts> checked_parts(const std::string& name, OperationCode code) {
  auto parts = std::make_shared<OperationParts>();
  parts->name = label_text(intern_label(checked_operation_name(name))).c_str();
  if (!code.infer.function)
    throw make_error<ValueError>(
        where(parts->name), ": no rule for the types of its results: set OperationCode::infer");
  if (!code.cpu && code.cuda.source.empty())
    throw make_error<ValueError>(where(parts->name),
                                 ": it has neither code for the CPU nor a CUDA kernel");
  parts->infer = std::move(code.infer);
  parts->cpu = std::move(code.cpu);
  if (!code.cuda.source.empty()) {
    check_kernel(parts->name, code.cuda);
    parts->cuda = own_kernel_code(std::move(code.cuda));
  }
  return parts;
}

}  // namespace

struct Operation::Code {
  std::shared_ptr<const OperationParts> parts;
  std::optional<Function> with_gradient;
};

Operation::Operation(const std::string& name, OperationCode code) {
  GradientRule gradient = std::move(code.gradient);
  auto made = std::make_shared<Code>();
  made->parts = checked_parts(name, std::move(code));
  if (gradient.function.function) {
    const auto forward = [parts = made->parts](FunctionContext&, const std::vector<Tensor>& in) {
      return parts->apply(in);
    };
    made->with_gradient =
        Function(name, detail::OnList<FunctionContext&>(forward), std::move(gradient.function));
  }
  code_ = std::move(made);
}

std::vector<Tensor> Operation::apply(TensorList inputs) const {
  if (code_->with_gradient) return code_->with_gradient->apply(inputs);
  return code_->parts->apply({inputs.begin(), inputs.end()});
}

Tensor Operation::only_result(std::vector<Tensor> results) const {
  if (results.size() != 1)
    throw make_error<ValueError>(where(code_->parts->name), ": it has ", results.size(),
                                 " results: call apply()");
  return std::move(results[0]);
}

}  // namespace tenon
