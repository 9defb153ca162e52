// Tensor's methods and compound operators: each is the function of its name.
//
// No rule stands here; a method that would need one is no method.
#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/str.h"
#include "ops/infer.h"

namespace tenon {
namespace {

const Tensor& mask(const char* op, const Tensor& x) {
  if (x.dtype() != DType::Bool)
    throw DTypeError(
        cat(where(op), ": takes masks of bool, not ", x.dtype(), ": compare first, as in x != 0"));
  return x;
}

}  // namespace

Tensor& rebind(Tensor& x, const Tensor& value) {
  if (is_variable(x))
    throw ValueError(cat(where("operator+="), ": ", label_text(x.node()->label),
                         " is a variable, and += would only give this handle another value: "
                         "evaluate assign(x, x + y), or call set_value(x, x + y)"));
  if (value.shape() != x.shape())
    throw ShapeError(cat(where("operator+="), ": the result is ", value.shape(),
                         ", which a tensor of ", x.shape(), " cannot hold: write x = x + y"));
  if (is_floating(value.dtype()) != is_floating(x.dtype()))
    throw DTypeError(cat(where("operator+="), ": the result is ", value.dtype(),
                         ", which a tensor of ", x.dtype(), " cannot hold: write x = x + y"));
  return x = value.dtype() == x.dtype() ? value : cast(value, x.dtype());
}

Tensor operator&(const Tensor& a, const Tensor& b) {
  return logical_and(mask("operator&", a), mask("operator&", b));
}
Tensor operator|(const Tensor& a, const Tensor& b) {
  return logical_or(mask("operator|", a), mask("operator|", b));
}
Tensor operator~(const Tensor& x) { return logical_not(mask("operator~", x)); }

Tensor Tensor::to(DType dtype) const { return cast(*this, dtype); }
Tensor Tensor::to(Device device) const { return tenon::to(*this, device); }
Tensor Tensor::detach() const { return tenon::detach(*this); }

#define TENON_REDUCTION(name)                                           \
  Tensor Tensor::name(const Axes& axes, bool keepdim) const {           \
    return tenon::name(*this, static_cast<const Ints&>(axes), keepdim); \
  }
TENON_REDUCTION(sum)
TENON_REDUCTION(prod)
TENON_REDUCTION(mean)
TENON_REDUCTION(amax)
TENON_REDUCTION(amin)
TENON_REDUCTION(all)
TENON_REDUCTION(any)
TENON_REDUCTION(norm)
#undef TENON_REDUCTION
Tensor Tensor::var(const Axes& axes, bool keepdim, double correction) const {
  return tenon::var(*this, axes, keepdim, correction);
}
Tensor Tensor::argmax(int axis, bool keepdim) const { return tenon::argmax(*this, axis, keepdim); }
Tensor Tensor::argmin(int axis, bool keepdim) const { return tenon::argmin(*this, axis, keepdim); }
Tensor Tensor::softmax(int axis) const { return tenon::softmax(*this, axis); }
Tensor Tensor::log_softmax(int axis) const { return tenon::log_softmax(*this, axis); }

Tensor Tensor::reshape(const Ints& sizes) const { return tenon::reshape(*this, sizes); }
Tensor Tensor::flatten(int start_axis, int end_axis) const {
  return tenon::flatten(*this, start_axis, end_axis);
}
Tensor Tensor::permute(const Ints& axes) const { return tenon::permute(*this, axes); }
Tensor Tensor::transpose(int a, int b) const { return tenon::transpose(*this, a, b); }
Tensor Tensor::expand(const Ints& sizes) const { return tenon::expand(*this, sizes); }
Tensor Tensor::squeeze(int axis) const { return tenon::squeeze(*this, axis); }
Tensor Tensor::unsqueeze(int axis) const { return tenon::unsqueeze(*this, axis); }
Tensor Tensor::select(int axis, std::int64_t index) const {
  return tenon::select(*this, axis, index);
}
Tensor Tensor::slice(int axis, std::int64_t start, std::int64_t end, std::int64_t step) const {
  return tenon::slice(*this, axis, start, end, step);
}
Tensor Tensor::narrow(int axis, std::int64_t start, std::int64_t length) const {
  return tenon::narrow(*this, axis, start, length);
}
Tensor Tensor::matmul(const Tensor& other) const { return tenon::matmul(*this, other); }

Tensor Tensor::abs() const { return tenon::abs(*this); }
Tensor Tensor::exp() const { return tenon::exp(*this); }
Tensor Tensor::log() const { return tenon::log(*this); }
Tensor Tensor::sqrt() const { return tenon::sqrt(*this); }
Tensor Tensor::square() const { return tenon::square(*this); }
Tensor Tensor::tanh() const { return tenon::tanh(*this); }
Tensor Tensor::sigmoid() const { return tenon::sigmoid(*this); }
Tensor Tensor::relu() const { return tenon::relu(*this); }
Tensor Tensor::pow(const Tensor& exponent) const { return tenon::pow(*this, exponent); }
Tensor Tensor::pow(Scalar exponent) const { return tenon::pow(*this, exponent); }
Tensor Tensor::clamp(Scalar low, Scalar high) const { return tenon::clamp(*this, low, high); }

}  // namespace tenon
