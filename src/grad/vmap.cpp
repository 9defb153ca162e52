// vmap(): records a function of one sample, and maps its graph over the batch.
#include <tenon/vmap.h>

#include <tenon/error.h>
#include <tenon/joining.h>
#include <tenon/ops.h>
#include <tenon/shapes_only.h>

#include "base/index.h"
#include "base/make_error.h"
#include "grad/batching.h"
#include "graph/node.h"
#include "ops/infer.h"
#include "ops/traced_call.h"

namespace tenon {
namespace {

using Tensors = std::vector<Tensor>;

// The axis of each tensor, as the options give it.
std::vector<int> given_axes(const char* what, const std::vector<int>& axes, std::size_t tensors) {
  if (axes.empty()) return std::vector<int>(tensors, 0);
  if (axes.size() != tensors)
    throw make_error<ValueError>(where("vmap"), ": ", axes.size(), " ", what, " axes for ", tensors,
                                 " tensors");
  return axes;
}

// The arguments of one sample, and the stacks that they are samples of.
class Samples {
 public:
  Samples(const Tensors& arguments, const VmapOptions& options) {
    check_all_defined("vmap", "argument", arguments);
    const std::vector<int> axes = given_axes("in", options.in_axes, arguments.size());
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      each_.push_back(axes[k] == kNotMapped ? arguments[k] : sample_of(arguments[k], k, axes[k]));
    }
    if (batch_.samples.empty())
      throw make_error<ValueError>(where("vmap"),
                                   ": no argument is mapped: give at least one a batch axis");
  }

  const Tensors& each() const { return each_; }
  Batch& batch() { return batch_; }

 private:
  Tensor sample_of(const Tensor& x, std::size_t k, int axis) {
    if (x.rank() == 0)
      throw make_error<ShapeError>(where("vmap"), ": argument ", k,
                                   " is a scalar, it has no batch axis: map it with kNotMapped");
    const int a = normalize_axis(axis, x.rank(), where("vmap"));
    if (!batch_.samples.empty() && x.size(a) != batch_.size)
      throw make_error<ShapeError>(where("vmap"), ": argument ", k, " is ", x.shape(),
                                   ", a batch of ", x.size(a), "; the first batch has ",
                                   batch_.size, " samples");
    batch_.size = x.size(a);
    batch_.stacks.push_back(movedim(x, {a}, {0}));
    const Shape& stack = batch_.stacks.back().shape();
    batch_.samples.push_back(
        without_memory(Shape(stack.begin() + 1, stack.rank() - 1), x.dtype(), x.device()));
    return batch_.samples.back();
  }

  Tensors each_;
  Batch batch_;
};

}  // namespace

Tensors detail::vmap_lists(const TensorFunction& f, const Tensors& arguments,
                           const VmapOptions& options) {
  Samples samples(arguments, options);
  Batch& batch = samples.batch();
  batch.randomness = options.randomness;
  batch.since = advance_clock();
  Tensors results = mapped(traced_call("vmap", f, samples.each()), batch);
  const std::vector<int> axes = given_axes("out", options.out_axes, results.size());
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (axes[k] == kNotMapped)
      throw make_error<ValueError>(where("vmap"), ": result ", k,
                                   " has a batch axis, so its out axis cannot be kNotMapped");
    const int axis = normalize_axis(axes[k], results[k].rank(), where("vmap"));
    results[k] = movedim(results[k], {0}, {axis});
  }
  return results;
}

}  // namespace tenon
