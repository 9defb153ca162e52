// Operation: an operation of the program that uses the library, with code for the CPU and for GPUs,
// and a gradient. docs/functions.md has examples.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/cuda_kernel.h>
#include <tenon/export.h>
#include <tenon/function.h>
#include <tenon/host_call.h>
#include <tenon/tensor.h>

namespace tenon {

/// A function from the types of an operation's inputs, as std::span<const TensorType>, to the types
/// of its results: one TensorType, or a vector of them. It may throw errors for inputs that do not
/// fit.
struct TypeRule {
  TypeRule() = default;
  /// The rule of a function.
  template <class F>
  requires std::is_invocable_v<const F&, std::span<const TensorType>> TypeRule(F f)  // NOLINT
      : function([f = std::move(f)](std::span<const TensorType> inputs) {
          if constexpr (std::is_same_v<std::decay_t<decltype(f(inputs))>, TensorType>)
            return std::vector<TensorType>{f(inputs)};
          else
            return std::vector<TensorType>(f(inputs));
        }) {}
  /// Implementation.
  std::function<std::vector<TensorType>(std::span<const TensorType>)> function;
};

/// The backward function of an operation, as Function takes it: from a const FunctionContext& and
/// the gradients of the results to the gradients of the inputs.
struct GradientRule {
  GradientRule() = default;
  /// The rule of a function.
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, GradientRule>) GradientRule(F f)  // NOLINT
      : function(std::move(f)) {}
  /// Implementation.
  detail::OnList<const FunctionContext&> function;
};

/// The parts of an operation. Either `cpu` or `cuda` may be left out.
struct OperationCode {
  TypeRule infer{};         ///< The results' dtypes and shapes.
  HostCode cpu{};           ///< The computation in C++, as host_call() takes it.
  CudaKernel cuda{};        ///< The computation on GPUs.
  GradientRule gradient{};  ///< The gradient; without it, grad() throws NotSupported at a result.
};

/// An operation made of own kernels. It runs wherever the library's operations run: in compiled
/// functions, in the bodies of scan() and cond(), in the Trainer, on several GPUs.
///
/// On a GPU, the kernel is a step of the plan. NVRTC compiles it once for each combination of
/// dtypes, and the result is cached on disk. Without `cuda`, the inputs of a call on a GPU are
/// copied to the host for `cpu`, and the results are copied back (host_call()). PyTorch:
/// `torch.library.custom_op`, `torch.cuda._compile_kernel`.
class TENON_API Operation {
 public:
  /// An operation that errors and plans call `name`. Throws ValueError without `infer`, if there is
  /// neither `cpu` nor `cuda`, and if `cuda` has no launch rule or does not contain its entry.
  Operation(const std::string& name, OperationCode code);

  /// The results for these inputs, which the code sees contiguous and in row-major order. The code
  /// must write every element of every result: the memory has no value before. Nothing is launched
  /// if all results are empty.
  ///
  /// Throws what `infer` throws, with the operation's name in front; ValueError for a launch that
  /// no GPU can do; and NotSupported on the CPU without `cpu`. When a result is computed, a source
  /// that does not compile throws ValueError with the compiler's messages.
  std::vector<Tensor> apply(TensorList inputs) const;
  /// apply() for an operation with one result. Throws ValueError if there are several.
  template <class... T>
  Tensor operator()(const T&... inputs) const {
    return only_result(apply({Tensor(inputs)...}));
  }

 private:
  struct Code;
  Tensor only_result(std::vector<Tensor> results) const;

  std::shared_ptr<const Code> code_;
};

}  // namespace tenon
