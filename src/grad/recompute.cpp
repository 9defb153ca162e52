// The second computation of a checkpointed function must start late and must not be merged with the
// first one. So it reads its inputs through an operation that also reads the gradients that arrive:
// where(false, 0, x), with a condition that is false for every value and that no pass can fold. The
// operation costs nothing where it is fused into its readers, and otherwise a copy of x. Parameters
// are read directly: values that depend on parameters alone are shared by both computations.
#include "grad/recompute.h"

#include <algorithm>

#include <tenon/elementwise.h>
#include <tenon/ops.h>

#include "base/index.h"
#include "grad/scan.h"
#include "graph/constants_guard.h"
#include "ops/function_rule.h"
#include "ops/infer.h"

namespace tenon {
namespace {

bool can_be_awaited(const Tensor& x, Device device) {
  return x.defined() && is_floating(x.dtype()) && x.numel() > 0 && !is_constant(x) &&
         x.device() == device;
}

Tensor first_element(const Tensor& x) {
  Tensor element = x;
  for (int a = 0; a < x.rank(); ++a) element = slice(element, a, 0, 1);
  return reshape(element, {});
}

// A condition that is false once the tensors on the device are known; undefined if there are none.
Tensor false_after(std::span<const Tensor> tensors, Device device) {
  Tensor condition;
  for (const Tensor& x : tensors) {
    if (!can_be_awaited(x, device)) continue;
    const Tensor element = first_element(x),
                 never = logical_and(isnan(element), eq(element, element));
    condition = condition.defined() ? logical_or(condition, never) : never;
  }
  return condition;
}

// What the second computation waits for: the gradients that arrive, or the values if the gradients
// are numbers. Values that carry assignments are always awaited, so that evaluating the gradients
// alone carries out the assignments.
std::vector<Tensor> awaited(const Tensor& out, std::span<const Tensor> cotangents) {
  std::vector<Tensor> tensors(cotangents.begin(), cotangents.end());
  const bool are_numbers = std::none_of(tensors.begin(), tensors.end(), [](const Tensor& g) {
    return g.defined() && !is_constant(g);
  });
  if (are_numbers || rule_of_function(*out.node()).carries_updates)
    for (const Tensor& value : results_of(out)) tensors.push_back(value);
  return tensors;
}

// The arguments of the second computation. Parameters wait only if nothing else can, and the values
// carry assignments.
std::vector<Tensor> late_arguments(const Tensor& out, std::span<const Tensor> cotangents) {
  const std::vector<Tensor> first = awaited(out, cotangents);
  std::vector<Tensor> arguments;
  for (int k = static_cast<int>(cotangents.size()); k < out.node()->input_count; ++k)
    arguments.push_back(input_of(out, k));
  const bool all_wait = rule_of_function(*out.node()).carries_updates &&
                        std::all_of(arguments.begin(), arguments.end(), is_variable);
  for (Tensor& x : arguments) {
    const bool waits = all_wait || !is_variable(x);
    const Tensor never = waits ? false_after(first, x.device()) : Tensor();
    x = new_node_of(never.defined() ? where(never, zeros_like(x), x) : x);
  }
  return arguments;
}

}  // namespace

std::vector<Tensor> vjp_recomputed(const Tensor& out, std::span<const Tensor> cotangents) {
  const Body& body = *rule_of_function(*out.node()).recomputed;
  const ConstantsGuard off(false);
  const std::vector<Tensor> arguments = late_arguments(out, cotangents);
  Substitution instead;
  for (std::size_t k = 0; k < arguments.size(); ++k)
    instead.emplace(body.parameters[k].node(), arguments[k]);
  const std::vector<Tensor> values = substitute(body.results, instead);
  std::vector<Tensor> outputs, seeds;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!cotangents[k].defined()) continue;
    outputs.push_back(values[k]);
    seeds.push_back(cotangents[k]);
  }
  const std::vector<Tensor> found = grad_of_several(outputs, arguments, seeds);
  std::vector<Tensor> gradients(cotangents.size());
  gradients.insert(gradients.end(), found.begin(), found.end());
  return gradients;
}

}  // namespace tenon
