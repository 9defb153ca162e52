// Effects: what evaluation changes beside making values.
#include <tenon/error.h>

#include "base/str.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

Tensor assign(const Tensor& target, const Tensor& value) {
  return build(Op::Assign, {target, value});
}

Inferred infer_assign(const Node& node) {
  const Node &target = *node.input(0), &value = *node.input(1);
  if (target.op != Op::Variable)
    throw ValueError(cat(where(node), ": the target is the result of ", op_info(target.op).name,
                         ", not a variable"));
  if (target.shape != value.shape)
    throw ShapeError(cat(where(node), ": the variable", target.label == 0 ? "" : " ",
                         label_text(target.label), " is ", target.shape, ", the value ",
                         value.shape));
  if (target.dtype != value.dtype)
    throw DTypeError(cat(where(node), ": the variable", target.label == 0 ? "" : " ",
                         label_text(target.label), " is ", target.dtype, ", the value ",
                         value.dtype, ": cast it"));
  return {value.dtype, value.shape};
}

// The result is the value; what the variable held before plays no part.
Gradients vjp_assign(const Tensor&, const Tensor& g) { return {Tensor{}, g}; }

}  // namespace tenon
