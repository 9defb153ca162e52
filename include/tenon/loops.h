// Loops and branches as graph nodes: scan() and cond().
//
// The body function is called once to record its graph, and the graph is planned once, independent
// of the number of steps. The body may use any tensors from outside (for example weights);
// gradients flow to all of them. The body must not assign variables: carry the value instead, and
// assign the result.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// Result of one step and of a scan.
struct ScanResult {
  std::vector<Tensor> carry;  ///< The values for the next step; of a scan, those of the last step.
  std::vector<Tensor> ys;  ///< This step's outputs; of a scan, all stacked along a new first axis.
};
/// One step: takes the carry and row t of each of `xs`; returns the next carry, of the same shapes
/// and dtypes, and the step's outputs.
using ScanStep =
    std::function<ScanResult(const std::vector<Tensor>& carry, const std::vector<Tensor>& x)>;

/// Options of scan().
struct ScanOptions {
  std::int64_t length = -1;  ///< Number of steps; -1: the size of the first axis of xs.
  bool reverse = false;      ///< Run from the last row to the first; ys keep the order of xs.
};

/// Runs `step` for each row of `xs` ([T, …] each; may be empty if a length is given). The body is
/// planned once, whatever T is, and the memory for its intermediates does not grow with T. The
/// gradient is a scan in reverse. The results of matrix products are stored for it; element-wise
/// results are recomputed. The gradient of a weight that a step multiplies by is one matrix product
/// over all steps. On a GPU the steps are launches of one CUDA graph. Throws ShapeError, DTypeError
/// or ValueError that names the carry, the row or the length that does not fit, and NotSupported
/// for an assignment in the body. JAX: `lax.scan`.
TENON_API ScanResult scan(const ScanStep& step, const std::vector<Tensor>& carry,
                          const std::vector<Tensor>& xs, const ScanOptions& options = {});

/// One step with one tensor each: (carry, x) to (carry, y).
using ScanStepOfOne =
    std::function<std::pair<Tensor, Tensor>(const Tensor& carry, const Tensor& x)>;
/// scan() with one tensor each: returns the last carry and the stacked outputs.
TENON_API std::pair<Tensor, Tensor> scan(const ScanStepOfOne& step, const Tensor& carry,
                                         const Tensor& xs, const ScanOptions& options = {});

/// One branch of cond().
using Branch = std::function<std::vector<Tensor>(const std::vector<Tensor>& operands)>;
/// `on_true(operands)` if `predicate` is true, else `on_false(operands)`. `predicate` is a bool
/// tensor of one element that may still have to be computed. Both branches must return the same
/// number of tensors with the same shapes and dtypes. Values that do not depend on the operands are
/// computed in both cases. On the CPU only one branch runs; on a GPU both run and one result is
/// selected. Throws ShapeError or DTypeError that names the result that differs. PyTorch:
/// `torch.cond`.
TENON_API std::vector<Tensor> cond(const Tensor& predicate, const Branch& on_true,
                                   const Branch& on_false, const std::vector<Tensor>& operands);

}  // namespace tenon
