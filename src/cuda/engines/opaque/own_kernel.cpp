// Launches of own kernels (tenon/cuda_kernel.h): the types that a source may name, and the
// arguments.
#include <algorithm>
#include <bit>
#include <utility>

#include <tenon/error.h>

#include "base/index.h"
#include "cuda/engines/opaque/opaque_kernels.h"
#include "graph/element_code.h"
#include "graph/host_code.h"
#include "graph/node.h"

namespace tenon::cuda {
namespace {

constexpr std::size_t kUnreadAlignment = 256;  // of results that nothing reads

const char* own_type(DType dtype) {
  static constexpr const char* kNames[] = {
      "bool",      "unsigned char",        "signed char",           "int",
      "long long", "tenon::cuda::Float16", "tenon::cuda::BFloat16", "float",
      "double"};
  return kNames[static_cast<int>(dtype)];
}

const char* arithmetic_type(DType dtype) {
  if (dtype == DType::Float64) return "double";
  return is_floating(dtype) ? "float" : "long long";
}

std::string typed_source(const char* name, const CudaKernel& kernel, const KernelTypes& types) {
  const DType first = (types.inputs.empty() ? types.results : types.inputs)[0].dtype;
  std::string text =
      cat(kOwnOperation, name, "\n#include \"cuda/kernels/own.cuh\"\n\nusing T = ", own_type(first),
          ";\nusing Real = ", arithmetic_type(first), ";\n");
  for (std::size_t k = 0; k < types.inputs.size(); ++k)
    text += cat("using Input", k, " = ", own_type(types.inputs[k].dtype), ";\n");
  for (std::size_t k = 0; k < types.results.size(); ++k)
    text += cat("using Result", k, " = ", own_type(types.results[k].dtype), ";\n");
  return cat(text, "\n#line 1 \"", kernel.entry, ".cu\"\n", kernel.source, "\n");
}

std::uint32_t narrow(std::int64_t size) { return static_cast<std::uint32_t>(size); }
Grid sizes_of(const CudaSizes& sizes) {
  return {narrow(sizes.x), narrow(sizes.y), narrow(sizes.z)};
}

std::uint64_t argument_word(Scalar number) {
  return number.is_whole() ? static_cast<std::uint64_t>(number.whole())
                           : std::bit_cast<std::uint64_t>(number.real());
}

class OwnKernel final : public Kernel {
 public:
  explicit OwnKernel(const OpaqueCall& call) : inputs_(call.op.inputs), outs_(call.op.outs) {
    const auto& attrs = call.op.attrs.as<HostCallAttrs>();
    const std::vector<TensorType>& results = attrs.types->types;
    if (!has_elements(results)) return;
    std::vector<TensorType> inputs;
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      inputs.push_back({call.dtype(k), call.op.shapes[k]});
    const CudaKernel& kernel = attrs.kernel->kernel;
    const KernelTypes types{inputs, results, kernel.numbers};
    launch_ = kernel.launch(types);
    const char* const name = shown_name(call.op.op, call.op.attrs);
    if (launch_.shared_bytes > call.target.shared_bytes)
      throw make_error<ValueError>(where(name), ": a block asks for ", launch_.shared_bytes,
                                   " bytes of shared memory, the GPU has ",
                                   call.target.shared_bytes);
    for (std::size_t k = 0; k < outs_.size(); ++k) {
      unread_at_.push_back(workspace_bytes);
      if (outs_[k] == kNoValue) workspace_bytes += bytes_of(results[k]);
    }
    kernel_ = compile(call.target, {kernel.entry, typed_source(name, kernel, types)});
  }

  void run(const Binding& binding) const override {
    if (kernel_ == nullptr) return;  // empty results
    std::vector<std::uint64_t> words;
    const auto address = [&words](const void* p) {
      words.push_back(reinterpret_cast<std::uintptr_t>(p));
    };
    for (const ValueId in : inputs_) address(binding.values[at(in)]);
    for (std::size_t k = 0; k < outs_.size(); ++k)
      address(outs_[k] == kNoValue ? binding.workspace + unread_at_[k]
                                   : binding.values[at(outs_[k])]);
    for (const Scalar number : launch_.numbers) words.push_back(argument_word(number));
    std::vector<void*> params;
    params.reserve(words.size());
    for (std::uint64_t& word : words) params.push_back(&word);
    kernel_->launch(binding.stream, sizes_of(launch_.grid), sizes_of(launch_.block),
                    narrow(launch_.shared_bytes), params.data());
  }

  std::string source() const override {
    return kernel_ == nullptr ? std::string() : kernel_->source().text;
  }

 private:
  static std::size_t bytes_of(const TensorType& type) {
    const std::size_t bytes = at(type.shape.numel()) * item_size(type.dtype);
    return (bytes + kUnreadAlignment - 1) / kUnreadAlignment * kUnreadAlignment;
  }

  const std::vector<ValueId> inputs_, outs_;
  CudaLaunch launch_;
  std::vector<std::size_t> unread_at_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_own(const OpaqueCall& call) {
  return std::make_unique<OwnKernel>(call);
}

}  // namespace tenon::cuda
