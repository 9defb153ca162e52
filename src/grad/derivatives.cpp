// Derivatives of functions, from the backward walk of grad().
//
// Reverse mode is that walk. Forward mode is the gradient of the walk's result with respect to its
// cotangents: the walk is linear in them, so its gradient does not depend on their values. The
// cotangents are zeros that nothing reads in the end.
//
// Jacobians are all rows, or all columns, at once: the derivative of one of them, mapped over the
// rows of an identity matrix (grad/batching.h).
#include <tenon/derivatives.h>

#include <algorithm>
#include <functional>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/index.h"
#include "base/make_error.h"
#include "grad/batching.h"
#include "grad/scan.h"
#include "graph/constants_guard.h"
#include "graph/tracing/body.h"
#include "ops/infer.h"
#include "ops/traced_call.h"

namespace tenon {
namespace {

using Tensors = std::vector<Tensor>;
using Blocks = std::vector<Tensors>;

// Within a NoGrad, derivatives are computed as usual; what a transform returns is a constant.
class Differentiating {
 public:
  Differentiating() = default;
  Tensor returned(const Tensor& x) const { return returns_constants_ ? detach(x) : x; }
  Tensors returned(Tensors list) const {
    for (Tensor& x : list) x = returned(x);
    return list;
  }
  Blocks returned(Blocks blocks) const {
    for (Tensors& row : blocks) row = returned(row);
    return blocks;
  }

 private:
  const bool returns_constants_ = builds_constants();
  const ConstantsGuard off_{false};
};

// The values of the inputs as new nodes: a derivative with respect to them leads through the
// function's arguments only, not through other uses of the same tensors.
Tensors as_arguments(const char* op, TensorList inputs) {
  check_all_defined(op, "input", inputs);
  Tensors arguments;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& input = inputs[k];
    if (!is_floating(input.dtype()))
      throw make_error<DTypeError>(where(op), ": input ", k, " is ", input.dtype(), input.shape(),
                                   "; only floating tensors have derivatives: let the function "
                                   "capture it");
    arguments.push_back(new_node_of(input));
  }
  return arguments;
}

// A function, called: its arguments as new nodes, and its results.
struct Call {
  Call(const char* op, const TensorFunction& f, TensorList inputs)
      : arguments(as_arguments(op, inputs)), results(traced_call(op, f, arguments)) {
    for (std::size_t k = 0; k < results.size(); ++k)
      if (!is_floating(results[k].dtype()))
        throw make_error<DTypeError>(where(op), ": result ", k, " is ", results[k].dtype(),
                                     results[k].shape(),
                                     "; only floating tensors have derivatives: leave it out");
  }
  Tensors arguments, results;
};

// The vectors of a product, for tensors of the same shapes and dtypes; undefined ones are zero.
Tensors checked(const char* op, const char* vector, const char* of, TensorList vectors,
                const Tensors& tensors) {
  if (vectors.size() != tensors.size())
    throw make_error<ValueError>(where(op), ": there are ", vectors.size(), " ", vector, "s for ",
                                 tensors.size(), " ", of, "s");
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const Tensor &v = vectors[k], &x = tensors[k];
    if (v.defined() && (v.shape() != x.shape() || v.dtype() != x.dtype()))
      throw make_error<ShapeError>(where(op), ": ", vector, " ", k, " is ", v.dtype(), v.shape(),
                                   ", the ", of, " is ", x.dtype(), x.shape());
  }
  return Tensors(vectors.begin(), vectors.end());
}

void require_one_element(const char* op, const Tensors& results) {
  if (results.size() != 1)
    throw make_error<ValueError>(where(op), ": the function returns ", results.size(),
                                 " tensors, must be one");
  if (results[0].numel() != 1)
    throw make_error<ShapeError>(where(op), ": the function returns ", results[0].shape(),
                                 ", not a scalar: reduce it with sum or mean");
}

Tensor one(const Tensor& like) { return constant(like.shape(), 1, like.dtype()); }

// The gradients of several outputs together; undefined where none arrives. Outputs and seeds that
// are undefined count as zero.
Tensors gradients_of_defined(const Tensors& outputs, const Tensors& inputs, const Tensors& seeds) {
  Tensors given, with;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k].defined() || !seeds[k].defined()) continue;
    given.push_back(outputs[k]);
    with.push_back(seeds[k]);
  }
  return given.empty() ? Tensors(inputs.size()) : grad_of_several(given, inputs, with);
}

Tensors with_zeros(Tensors list, const Tensors& like) {
  for (std::size_t k = 0; k < list.size(); ++k)
    if (!list[k].defined()) list[k] = zeros_like(like[k]);
  return list;
}

Tensors reverse(const Call& call, const Tensors& cotangents) {
  return with_zeros(gradients_of_defined(call.results, call.arguments, cotangents), call.arguments);
}

// The backward pass of a call, and the cotangents that it is linear in.
struct Backward {
  explicit Backward(const Call& call) {
    for (const Tensor& y : call.results) cotangents.push_back(zeros_like(y));
    gradients = gradients_of_defined(call.results, call.arguments, cotangents);
  }
  Tensors cotangents, gradients;
};

Tensors forward(const Backward& backward, const Tensors& tangents) {
  return with_zeros(gradients_of_defined(backward.gradients, backward.cotangents, tangents),
                    backward.cotangents);
}

// Rows [first, last) of an identity matrix as tensors like `like`: row e is 1 at element e.
Tensor unit_vectors(const Tensor& like, std::int64_t first, std::int64_t last) {
  Ints sizes{last - first};
  for (const std::int64_t size : like.shape()) sizes.push_back(size);
  return reshape(slice(eye(like.numel(), {}, like.dtype()), 0, first, last), sizes);
}

// `product` of all vectors that are a unit vector of list[k] and zero elsewhere, stacked.
Tensors products_with_units(const Tensors& list, std::size_t k, std::int64_t chunk,
                            const std::function<Tensors(const Tensors&)>& product) {
  Tensors vectors(list.size());
  vectors[k] = placeholder_for(list[k], list[k].device());
  const Tensors products = product(vectors);
  const std::int64_t all = list[k].numel(),
                     step = chunk == 0 ? std::max<std::int64_t>(all, 1) : chunk;
  Blocks parts(products.size());
  for (std::int64_t first = 0; first == 0 || first < all; first += step) {
    const std::int64_t last = std::min(first + step, all);
    const Tensors rows =
        mapped(products, {{vectors[k]}, {unit_vectors(list[k], first, last)}, last - first});
    for (std::size_t p = 0; p < rows.size(); ++p) parts[p].push_back(rows[p]);
  }
  Tensors stacks;
  for (const Tensors& part : parts) stacks.push_back(part.size() == 1 ? part[0] : concat(part, 0));
  return stacks;
}

Shape joined(const Shape& a, const Shape& b) {
  if (a.rank() + b.rank() > kMaxRank)
    throw make_error<ShapeError>(where("jacobian"), ": a result ", a, " and an input ", b,
                                 " have more than ", kMaxRank, " axes together: flatten them");
  Shape all = a;
  for (const std::int64_t size : b) all.push_back(size);
  return all;
}

Tensor as_block(const Tensor& rows, const Tensor& result, const Tensor& input) {
  return reshape(rows, to_ints(joined(result.shape(), input.shape())));
}

Blocks reverse_blocks(const Call& call, std::int64_t chunk) {
  Blocks blocks;
  for (std::size_t r = 0; r < call.results.size(); ++r) {
    blocks.push_back(products_with_units(call.results, r, chunk, [&](const Tensors& cotangents) {
      return reverse(call, cotangents);
    }));
    for (std::size_t k = 0; k < call.arguments.size(); ++k)
      blocks[r][k] = as_block(blocks[r][k], call.results[r], call.arguments[k]);
  }
  return blocks;
}

// [inputs' elements, result…] to [result…, input…].
Tensor as_columns(const Tensor& columns, const Tensor& result, const Tensor& input) {
  const Tensor rows = transpose(reshape(columns, {input.numel(), result.numel()}));
  return as_block(rows, result, input);
}

Blocks forward_blocks(const Call& call, std::int64_t chunk) {
  const Backward backward(call);
  Blocks blocks(call.results.size(), Tensors(call.arguments.size()));
  for (std::size_t k = 0; k < call.arguments.size(); ++k) {
    const Tensors columns =
        products_with_units(call.arguments, k, chunk,
                            [&](const Tensors& tangents) { return forward(backward, tangents); });
    for (std::size_t r = 0; r < columns.size(); ++r)
      blocks[r][k] = as_columns(columns[r], call.results[r], call.arguments[k]);
  }
  return blocks;
}

Blocks blocks_of(const Call& call, const JacobianOptions& options) {
  if (options.chunk < 0)
    throw make_error<ValueError>(where("jacobian"), ": a chunk of ", options.chunk,
                                 " passes: give 1 or more, or 0 for all");
  return options.mode == JacobianMode::Forward ? forward_blocks(call, options.chunk)
                                               : reverse_blocks(call, options.chunk);
}

// The gradient of a function whose only result has one element.
TensorFunction gradient_of(const char* op, const TensorFunction& f) {
  return [op, &f](const Tensors& inputs) {
    const Call call(op, f, inputs);
    require_one_element(op, call.results);
    return reverse(call, {one(call.results[0])});
  };
}

void require_one_result(const char* op, const Blocks& blocks) {
  if (blocks.size() != 1)
    throw make_error<ValueError>(where(op), ": the function returns ", blocks.size(),
                                 " tensors: give a list of inputs");
}

}  // namespace

FunctionProducts vjp(const TensorFunction& f, TensorList inputs, TensorList cotangents) {
  const Differentiating here;
  const Call call("vjp", f, inputs);
  Tensors seeds;
  if (cotangents.empty()) {
    require_one_element("vjp", call.results);
    seeds = {one(call.results[0])};
  } else {
    seeds = checked("vjp", "cotangent", "result", cotangents, call.results);
  }
  return {here.returned(call.results), here.returned(reverse(call, seeds))};
}

FunctionProducts jvp(const TensorFunction& f, TensorList inputs, TensorList tangents) {
  const Differentiating here;
  const Call call("jvp", f, inputs);
  const Tensors given = checked("jvp", "tangent", "input", tangents, call.arguments);
  return {here.returned(call.results), here.returned(forward(Backward(call), given))};
}

FunctionProducts hvp(const TensorFunction& f, TensorList inputs, TensorList vectors) {
  const Differentiating here;
  const Call call("hvp", f, inputs);
  require_one_element("hvp", call.results);
  const Tensors seeds = checked("hvp", "vector", "input", vectors, call.arguments);
  const Tensors gradients =
      gradients_of_defined(call.results, call.arguments, {one(call.results[0])});
  const Tensors products = gradients_of_defined(gradients, call.arguments, seeds);
  return {here.returned(call.results), here.returned(with_zeros(products, call.arguments))};
}

Blocks jacobian(const TensorFunction& f, TensorList inputs, const JacobianOptions& options) {
  const Differentiating here;
  return here.returned(blocks_of(Call("jacobian", f, inputs), options));
}

Tensor jacobian(const TensorFunction& f, const Tensor& input, const JacobianOptions& options) {
  const Blocks blocks = jacobian(f, TensorList{input}, options);
  require_one_result("jacobian", blocks);
  return blocks[0][0];
}

Blocks hessian(const TensorFunction& f, TensorList inputs, const JacobianOptions& options) {
  const Differentiating here;
  return here.returned(blocks_of(Call("hessian", gradient_of("hessian", f), inputs), options));
}

Tensor hessian(const TensorFunction& f, const Tensor& input, const JacobianOptions& options) {
  return hessian(f, TensorList{input}, options)[0][0];
}

}  // namespace tenon
