// Gradient clipping as graph operations.
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include "base/str.h"
#include "base/system/option_ranges.h"

namespace tenon::optim {
namespace {

void require_gradients(const char* name, const std::vector<Tensor>& grads) {
  for (std::size_t k = 0; k < grads.size(); ++k)
    if (!grads[k].defined())
      throw ValueError(cat(name, ": gradient ", k, " has no value: it was never assigned"));
}

// The dtype of the common norm: precise enough for all gradients.
DType dtype_of_norm(const std::vector<Tensor>& grads) {
  for (const Tensor& g : grads)
    if (g.dtype() == DType::Float64) return DType::Float64;
  return DType::Float32;
}

constexpr OptionRange<Clip> kClipRanges[] = {
    {"norm", &Clip::norm, at_least(0)},
    {"value", &Clip::value, at_least(0)},
};

}  // namespace

ClippedGrads clip_grad_norm(const std::vector<Tensor>& grads, double max_norm) {
  if (!(max_norm > 0))
    throw ValueError(cat("clip_grad_norm: the norm is ", max_norm, ", must be above 0"));
  if (grads.empty()) throw ValueError("clip_grad_norm: there are no gradients");
  require_gradients("clip_grad_norm", grads);
  Scope scope("clip_grad_norm");
  const DType dtype = dtype_of_norm(grads);
  Tensor squares;
  for (const Tensor& g : grads) {
    const Tensor s = cast(sum(square(g)), dtype);
    squares = squares.defined() ? squares + s : s;
  }
  ClippedGrads out;
  out.norm = sqrt(squares);
  // The small term is PyTorch's: it keeps a zero norm from dividing by zero.
  const Tensor factor = minimum(max_norm / (out.norm + 1e-6), 1.0);
  for (const Tensor& g : grads)
    out.grads.push_back(g * (g.dtype() == dtype ? factor : cast(factor, g.dtype())));
  return out;
}

std::vector<Tensor> clip_grad_value(const std::vector<Tensor>& grads, double limit) {
  if (!(limit > 0))
    throw ValueError(cat("clip_grad_value: the limit is ", limit, ", must be above 0"));
  require_gradients("clip_grad_value", grads);
  Scope scope("clip_grad_value");
  std::vector<Tensor> out;
  out.reserve(grads.size());
  for (const Tensor& g : grads) out.push_back(clamp(g, -limit, limit));
  return out;
}

std::vector<Tensor> clipped(const std::vector<Tensor>& grads, const Clip& clip) {
  check_options("clip", clip, kClipRanges);
  std::vector<Tensor> out = grads;
  if (clip.value > 0) out = clip_grad_value(out, clip.value);
  if (clip.norm > 0) out = clip_grad_norm(out, clip.norm).grads;
  return out;
}

}  // namespace tenon::optim
