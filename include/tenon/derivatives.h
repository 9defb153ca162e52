// Derivatives of functions: products with Jacobians, Jacobians, Hessians.
//
// docs/derivatives.md has examples. The functions build graphs from grad(): nothing runs before a
// value is read, and all results can be differentiated again. They work inside compile(), scan()
// and vmap(), and on both devices.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/export.h>
#include <tenon/function.h>
#include <tenon/tensor.h>

namespace tenon {

/// The results of a function, and the products that were asked for.
struct FunctionProducts {
  std::vector<Tensor> results;   ///< f(inputs).
  std::vector<Tensor> products;  ///< vjp() and hvp(): one for each input. jvp(): for each result.
};

/// The products of vectors with the Jacobian of `f`, in reverse mode: for each input the gradient
/// of sum(cotangents · f(inputs)). The cotangents have the shapes and dtypes of the results;
/// without any, the only result must have one element, and its cotangent is 1. An undefined
/// cotangent is zero. Tensors that `f` reads besides its arguments are constants. Costs about as
/// much as a forward and a backward pass. Throws as grad() does; ShapeError, DTypeError or
/// ValueError that names the input, the result or the cotangent that does not fit. PyTorch:
/// `torch.func.vjp`.
TENON_API FunctionProducts vjp(const TensorFunction& f, TensorList inputs,
                               TensorList cotangents = {});

/// The products of the Jacobian of `f` with vectors, in forward mode: for each result the
/// derivative of f(inputs + t · tangents) with respect to t, at 0. The tangents have the shapes and
/// dtypes of the inputs; an undefined tangent is zero. Works for every operation that grad()
/// differentiates: the forward mode is the gradient of the backward pass, which is linear in its
/// cotangents. The backward pass itself is not computed. So the cost is that of about two forward
/// passes, and no value is kept for a backward pass. Throws as vjp(). PyTorch: `torch.func.jvp`.
TENON_API FunctionProducts jvp(const TensorFunction& f, TensorList inputs, TensorList tangents);

/// The products of the Hessian of `f` with vectors, without the Hessian. The only result of `f` has
/// one element. The products are gradients of the inner product of the gradient and the vectors.
/// Throws as vjp(). PyTorch: `torch.autograd.functional.hvp`.
TENON_API FunctionProducts hvp(const TensorFunction& f, TensorList inputs, TensorList vectors);

/// How a Jacobian is computed.
enum class JacobianMode : std::uint8_t {
  Reverse,  ///< One backward pass for each element of the result: for few results, many inputs.
  Forward   ///< One forward pass for each element of the inputs: for few inputs, many results.
};

/// Options of jacobian() and hessian().
struct JacobianOptions {
  JacobianMode mode = JacobianMode::Reverse;  ///< How it is computed.
  std::int64_t chunk = 0;                     ///< Passes that run in one batch; 0: all.
};

/// The Jacobians of all results of `f` with respect to all inputs: [result][input], each of the
/// result's shape followed by the input's. The passes are batched as by vmap(): the memory for
/// intermediate values grows with the number of passes in one batch. Throws as vjp(), and
/// ValueError for a negative chunk. PyTorch: `torch.func.jacrev` and `jacfwd`.
TENON_API std::vector<std::vector<Tensor>> jacobian(const TensorFunction& f, TensorList inputs,
                                                    const JacobianOptions& options = {});
/// The Jacobian of the only result of `f` with respect to its only input.
TENON_API Tensor jacobian(const TensorFunction& f, const Tensor& input,
                          const JacobianOptions& options = {});

/// The second derivatives of a function whose only result has one element: [input][input], each of
/// the shapes of both inputs. It is the Jacobian of the gradient. PyTorch: `torch.func.hessian`.
TENON_API std::vector<std::vector<Tensor>> hessian(const TensorFunction& f, TensorList inputs,
                                                   const JacobianOptions& options = {});
/// The same for one input: the input's shape twice.
TENON_API Tensor hessian(const TensorFunction& f, const Tensor& input,
                         const JacobianOptions& options = {});

}  // namespace tenon
