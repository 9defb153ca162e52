// Gradient clipping as graph operations.
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include "base/make_error.h"
#include "base/system/option_ranges.h"
#include "optim/row_gradient.h"

namespace tenon::optim {
namespace {

void require_gradients(const char* name, TensorList grads) {
  for (std::size_t k = 0; k < grads.size(); ++k)
    if (!grads[k].defined())
      throw make_error<ValueError>(name, ": gradient ", k, " has no value: it was never assigned");
}

// The dtype of the common norm: precise enough for all gradients.
DType dtype_of_norm(TensorList grads) {
  for (const Tensor& g : grads)
    if (g.dtype() == DType::Float64) return DType::Float64;
  return DType::Float32;
}

constexpr OptionRange<Clip> kClipRanges[] = {
    {"norm", &Clip::norm, at_least(0)},
    {"value", &Clip::value, at_least(0)},
};

}  // namespace

ClippedGrads clip_grad_norm(TensorList grads, double max_norm) {
  if (!(max_norm > 0))
    throw make_error<ValueError>("clip_grad_norm: the norm is ", max_norm, ", must be above 0");
  if (grads.empty()) throw ValueError("clip_grad_norm: there are no gradients");
  require_gradients("clip_grad_norm", grads);
  Scope scope("clip_grad_norm");
  const DType dtype = dtype_of_norm(grads);
  Tensor squares;
  std::vector<GradientElements> elements;
  for (const Tensor& g : grads) {
    const Tensor s = cast(sum(square(elements.emplace_back(g).values())), dtype);
    squares = squares.defined() ? squares + s : s;
  }
  ClippedGrads out;
  out.norm = sqrt(squares);
  // The small term is PyTorch's: it keeps a zero norm from dividing by zero.
  const Tensor factor = minimum(max_norm / (out.norm + 1e-6), 1.0);
  for (const GradientElements& each : elements) {
    const Tensor& g = each.values();
    out.grads.push_back(each.with(g * (g.dtype() == dtype ? factor : cast(factor, g.dtype()))));
  }
  return out;
}

std::vector<Tensor> clip_grad_value(TensorList grads, double limit) {
  if (!(limit > 0))
    throw make_error<ValueError>("clip_grad_value: the limit is ", limit, ", must be above 0");
  require_gradients("clip_grad_value", grads);
  Scope scope("clip_grad_value");
  std::vector<Tensor> out;
  out.reserve(grads.size());
  for (const Tensor& g : grads) {
    const GradientElements elements(g);
    out.push_back(elements.with(clamp(elements.values(), -limit, limit)));
  }
  return out;
}

std::vector<Tensor> clipped(TensorList grads, const Clip& clip) {
  check_options("clip", clip, kClipRanges);
  std::vector<Tensor> out(grads.begin(), grads.end());
  if (clip.value > 0) out = clip_grad_value(out, clip.value);
  if (clip.norm > 0) out = clip_grad_norm(out, clip.norm).grads;
  return out;
}

}  // namespace tenon::optim
