// Function: operations with a gradient of their own.
//
// docs/functions.md has examples: a gradient in closed form, a straight-through estimator, and host
// code (host_call.h) with a gradient.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/export.h>
#include <tenon/signature.h>
#include <tenon/tensor.h>

namespace tenon {

struct FunctionRule;

/// What the forward function of a Function leaves for its backward function.
class TENON_API FunctionContext {
 public:
  /// In the forward function: keeps tensors for saved(). Arguments and results need not be saved.
  /// PyTorch: `ctx.save_for_backward`.
  void save(TensorList tensors);
  /// In the forward function: result `k` gets no gradient, and passes none on. PyTorch:
  /// `ctx.mark_non_differentiable`.
  void mark_non_differentiable(std::size_t k);

  /// In the backward function: the arguments of the call.
  const std::vector<Tensor>& arguments() const noexcept { return arguments_; }
  /// In the backward function: the results of the call.
  const std::vector<Tensor>& results() const noexcept { return results_; }
  /// In the backward function: the tensors given to save(), in order. PyTorch:
  /// `ctx.saved_tensors`.
  const std::vector<Tensor>& saved() const noexcept { return saved_; }

 private:
  friend class Function;
  friend struct FunctionRule;
  std::vector<Tensor> arguments_, results_, saved_;
  std::vector<std::size_t> non_differentiable_;
};

/// Implementation.
namespace detail {

inline std::vector<Tensor> as_list(Tensor result) { return {std::move(result)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> results) { return results; }
template <class... T>
std::vector<Tensor> as_list(std::tuple<T...> results) {
  return std::apply([](auto&... result) { return std::vector<Tensor>{result...}; }, results);
}

/// A function of a context, if there is one, and a list of tensors.
template <class... Context>
struct OnList {
  std::function<std::vector<Tensor>(Context..., const std::vector<Tensor>&)> function;
  int count = -1;  // the length of the list; -1: any

  OnList() = default;
  template <class F>
  explicit OnList(F f) {
    if constexpr (std::is_invocable_v<F, Context..., const std::vector<Tensor>&>) {
      function = [f = std::move(f)](Context... context, const std::vector<Tensor>& in) {
        return as_list(f(context..., in));
      };
    } else {
      constexpr std::size_t kCount =
          std::tuple_size_v<typename Signature<std::decay_t<F>>::Arguments> - sizeof...(Context);
      count = static_cast<int>(kCount);
      function = [f = std::move(f)](Context... context, const std::vector<Tensor>& in) {
        return [&]<std::size_t... k>(std::index_sequence<k...>) {
          return as_list(f(context..., in[k]...));
        }
        (std::make_index_sequence<kCount>());
      };
    }
  }
};

}  // namespace detail

/// A function of tensors, as vjp(), jacobian(), checkpoint() and others take it. Its parameters are
/// tensors, or one std::vector of tensors; their types must be written out. It returns a tensor, or
/// a tuple or a vector of tensors.
class TensorFunction {
 public:
  /// Any such function.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TensorFunction>) TensorFunction(F f)
      : list_(std::move(f)) {}  // NOLINT: implicit by design
  /// The results for these arguments.
  std::vector<Tensor> operator()(const std::vector<Tensor>& arguments) const {
    return list_.function(arguments);
  }
  /// The number of parameters; -1: one vector.
  int arguments() const noexcept { return list_.count; }

 private:
  detail::OnList<> list_;
};

/// An operation with a forward and a backward function. Both build their results from tensor
/// operations, host code (host_call()) included. They run when the graph is built, not when it is
/// evaluated. Numbers and other arguments that are not tensors are captured by the functions.
/// PyTorch: `torch.autograd.Function`.
///
/// The backward function is an ordinary computation, so it can be differentiated too: second and
/// higher derivatives need no further code. Arguments, results and saved tensors keep their
/// gradients in it.
class TENON_API Function {
 public:
  /// An operation that errors call `name`.
  ///
  /// `forward` takes a FunctionContext& and the arguments, each as a Tensor or all as one
  /// std::vector<Tensor>. It returns the results: a Tensor, or a tuple or a vector of tensors.
  ///
  /// `backward` takes a const FunctionContext& and the gradients of the results, in the same way.
  /// It returns the gradients with respect to the arguments. An undefined tensor is a gradient of
  /// zero, as an integer argument has it. The gradient of a result that does not influence the
  /// output is a tensor of zeros. Without a backward function, grad() throws NotSupported where it
  /// meets a result.
  /// @{
  template <class F>
  Function(std::string name, F forward)
      : Function(std::move(name), detail::OnList<FunctionContext&>(std::move(forward)), {}) {}
  template <class F, class B>
  Function(std::string name, F forward, B backward)
      : Function(std::move(name), detail::OnList<FunctionContext&>(std::move(forward)),
                 detail::OnList<const FunctionContext&>(std::move(backward))) {}
  /// @}

  /// The results for these arguments, all with a value. Throws ValueError for a wrong number of
  /// arguments, and if the forward function returns no tensor.
  ///
  /// Gradients flow to the arguments only: grad() throws ValueError if it is asked for a gradient
  /// that leads through another tensor that the forward function reads. It throws ValueError if the
  /// backward function does not return one gradient for each argument, and ShapeError or DTypeError
  /// if a gradient does not have its argument's shape or is not floating point. Floating-point
  /// gradients are cast to their argument's dtype.
  std::vector<Tensor> apply(TensorList arguments) const;
  /// apply() for an operation with one result. Throws ValueError if there are several.
  template <class... T>
  Tensor operator()(const T&... arguments) const {
    return only_result(apply({Tensor(arguments)...}));
  }

 private:
  friend class Operation;
  Function(std::string name, detail::OnList<FunctionContext&> forward,
           detail::OnList<const FunctionContext&> backward);
  Tensor only_result(std::vector<Tensor> results) const;

  detail::OnList<FunctionContext&> forward_;
  std::shared_ptr<const FunctionRule> rule_;
};

/// f(inputs), whose intermediate values are not kept for the gradient: the backward pass computes
/// them again from the inputs, when it needs them. Random draws, such as dropout masks, are the
/// same in both computations. On the CPU the results and all gradients have the same bits as
/// without checkpoint(); on a GPU the last digits may differ where another kernel is chosen.
/// Memory: the inputs and results of `f` instead of all that it computes. Time: about one more
/// forward pass of `f`. Gradients flow to the inputs and to all tensors that `f` reads, such as the
/// parameters of a layer. Assignments that the values carry, such as running statistics, are
/// carried out once. Throws ValueError if `f` evaluates a tensor that it computes or if it reads
/// and returns more than 255 tensors together, and NotSupported if it reads a variable that it also
/// assigns. PyTorch: `torch.utils.checkpoint.checkpoint`. Paper: Chen et al., "Training deep nets
/// with sublinear memory cost", 2016.
/// @{
TENON_API std::vector<Tensor> checkpoint(const TensorFunction& f, TensorList inputs);
TENON_API Tensor checkpoint(const TensorFunction& f, const Tensor& input);
/// @}

}  // namespace tenon
