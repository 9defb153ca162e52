// Gradients: grad() follows the graph of an output backwards and builds the graph of the gradients.
// There is no tape; gradients can be differentiated again. docs/gradients.md says which tensors
// keep their graph, and for how long.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// The gradients of `output` with respect to the inputs, each of its input's shape and dtype.
/// `output` must be a scalar, unless `seed` (of the output's shape) gives the vector of a
/// vector-Jacobian product. Inputs that do not influence the output get zeros. Throws ShapeError,
/// DTypeError for integer tensors, NotSupported with the reason if an operation has no gradient,
/// and ValueError if a part of the graph between input and output is gone: a value that was
/// computed from an input, and from no variable, was evaluated, or a variable was assigned since.
/// PyTorch: `torch.autograd.grad`.
TENON_API std::vector<Tensor> grad(const Tensor& output, std::span<const Tensor> inputs,
                                   const Tensor& seed = {});
/// The gradient with respect to one input.
TENON_API Tensor grad(const Tensor& output, const Tensor& input, const Tensor& seed = {});

/// While it lives, the tensors that this thread builds are constants for grad(), whatever they are
/// computed from. They release their graph as soon as they are evaluated, so the memory of a loop
/// that carries state does not grow. Nests. PyTorch: `torch.no_grad()`.
class TENON_API NoGrad {
 public:
  NoGrad() noexcept;
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

}  // namespace tenon
