// Loops and branches whose steps are planned once: scan() and cond().
//
// A function given here is called once, to learn its graph; it is planned once, however often it
// runs. It may use any tensors from outside (weights, say), and gradients flow to all of them. It
// must not assign variables: carry the value, and assign what comes out.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// Of one step: what it hands to the next and what is kept of it. Of a scan: what the last step
/// handed on, and what was kept of all, stacked along a new first axis.
struct ScanResult {
  std::vector<Tensor> carry;
  std::vector<Tensor> ys;
};
/// One step: from the carry and row t of each of xs to the next carry, of the same shapes and
/// dtypes, and this step's ys.
using ScanStep =
    std::function<ScanResult(const std::vector<Tensor>& carry, const std::vector<Tensor>& x)>;

struct ScanOptions {
  std::int64_t length = -1;  ///< number of steps; -1: that of the first axis of xs
  bool reverse = false;      ///< from the last row to the first; ys stand in the order of xs
};

/// Runs `step` along the first axis of `xs` ([T, …] each; may be none where a length is given). The
/// body is planned once, whatever T is, and memory for its intermediates does not grow with T. The
/// gradient is a scan from the end to the beginning: results of products are kept for it, and what
/// is computed from them element by element is computed again. Gradients of weights that a step
/// multiplies by are one product over all steps. On a GPU the steps are launches of one captured
/// graph. Throws ShapeError, DTypeError and ValueError that name the carry, the row or the length
/// that does not fit, NotSupported for an assignment inside.
TENON_API ScanResult scan(const ScanStep& step, const std::vector<Tensor>& carry,
                          const std::vector<Tensor>& xs, const ScanOptions& options = {});

/// The same with one tensor each: (carry, x) to (carry, y).
using ScanStepOfOne =
    std::function<std::pair<Tensor, Tensor>(const Tensor& carry, const Tensor& x)>;
TENON_API std::pair<Tensor, Tensor> scan(const ScanStepOfOne& step, const Tensor& carry,
                                         const Tensor& xs, const ScanOptions& options = {});

/// on_true(operands) where `predicate` (a bool tensor of one element, which need not be known yet)
/// holds, else on_false(operands): the same number of tensors with the same shapes and dtypes. What
/// depends on no operand is computed in either case. On the CPU only one of the two runs; on a GPU
/// both do, and one is taken. Throws ShapeError and DTypeError naming the result that differs.
using Branch = std::function<std::vector<Tensor>(const std::vector<Tensor>& operands)>;
TENON_API std::vector<Tensor> cond(const Tensor& predicate, const Branch& on_true,
                                   const Branch& on_false, const std::vector<Tensor>& operands);

}  // namespace tenon
