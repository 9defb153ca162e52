// Parts of the opaque engine: turns an opaque region into a launch of a kernel of cuda/kernels.
//
// The source of a kernel is its header and a wrapper that names element type, geometry and pattern.
// Sizes are in the arguments, a struct that the header shares with the host.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/str.h"
#include "cuda/engines/launch/words.h"
#include "cuda/jit/jit.h"
#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// The values of one op.
struct OpaqueCall {
  const Target& target;
  const Opaque& op;
  std::span<const Value> values;

  DType dtype(std::size_t k) const { return values[static_cast<std::size_t>(op.inputs[k])].dtype; }
  const Value& out() const { return value(op.out()); }
  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
};

std::unique_ptr<Kernel> prepare_pool(const OpaqueCall& call);
std::unique_ptr<Kernel> prepare_response(const OpaqueCall& call);
std::unique_ptr<Kernel> prepare_movement(const OpaqueCall& call);
std::unique_ptr<Kernel> prepare_softmax(const OpaqueCall& call);
std::unique_ptr<Kernel> prepare_sort(const OpaqueCall& call);
std::unique_ptr<Kernel> prepare_attention(const OpaqueCall& call);
std::unique_ptr<Kernel> prepare_own(const OpaqueCall& call);
/// True if the attention op sums 64 rows at a time of the gradients that it writes as parts of one
/// value.
bool attention_sums_rows(const OpaqueCall& call);

/// One launch with a struct of arguments that holds the addresses of inputs and output; `taps` is
/// the address of a second result.
template <class Args>
class OpaqueKernel final : public Kernel {
 public:
  OpaqueKernel(const OpaqueCall& call, const Args& args, Grid grid)
      : args_(args), grid_(grid), inputs_(call.op.inputs), outs_(call.op.outs) {}

  /// Compiles `body`, a call that takes the arguments `a`, with a header, "FOLDER/FILE" of
  /// cuda/kernels.
  void compile_body(const Target& target, const std::string& entry, const char* header,
                    const char* args_name, const std::string& body) {
    kernel_ = compile(
        target, {entry, cat("#include \"cuda/kernels/", header,
                            "\"\n\nusing namespace tenon::cuda;\n\nextern \"C\" __global__ void "
                            "__launch_bounds__(",
                            kFlatThreads, ")\n", entry, "(const ", args_name, " a) {\n",
                            kAwaitKernels, "  ", body, ";\n}\n")});
  }

  void run(const Binding& binding) const override {
    if (kernel_ == nullptr) return;  // an empty result
    Args args = args_;
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      args.in[k] = binding.values[static_cast<std::size_t>(inputs_[k])];
    args.out = result(binding, 0);
    if constexpr (requires { args.taps; })
      if (outs_.size() > 1) args.taps = reinterpret_cast<unsigned char*>(result(binding, 1));
    void* params[] = {&args};
    kernel_->launch(binding.stream, grid_, {kFlatThreads, 1, 1}, 0, params);
  }

  std::string source() const override {
    return kernel_ == nullptr ? std::string() : kernel_->source().text;
  }

 private:
  std::byte* result(const Binding& binding, std::size_t k) const {
    return outs_[k] == kNoValue ? nullptr : binding.values[static_cast<std::size_t>(outs_[k])];
  }

  const Args args_;
  const Grid grid_;
  const std::vector<ValueId> inputs_, outs_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

}  // namespace tenon::cuda
