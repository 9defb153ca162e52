// Tensor's methods and compound operators: each calls the function of the same name.
//
// Methods have no rules of their own.
#include <tenon/error.h>
#include <tenon/functional.h>

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

Tensor& rebind(Tensor& x, const Tensor& value, char symbol) {
  const std::string op = cat("operator", symbol, "="), instead = cat("x = x ", symbol, " y");
  if (is_variable(x)) {
    const std::string& name = label_text(x.node()->label);
    throw ValueError(cat(where(op.c_str()), ": ", name.empty() ? "it" : name,
                         " is a variable, and ", symbol,
                         "= would only give this handle another value: evaluate assign(x, x ",
                         symbol, " y), or call set_value(x, x ", symbol, " y)"));
  }
  if (value.shape() != x.shape())
    throw ShapeError(cat(where(op.c_str()), ": the result is ", value.shape(),
                         ", but the tensor is ", x.shape(), ": write ", instead));
  if (is_floating(value.dtype()) != is_floating(x.dtype()))
    throw DTypeError(cat(where(op.c_str()), ": the result is ", value.dtype(),
                         ", but the tensor is ", x.dtype(), ": write ", instead));
  return x = value.dtype() == x.dtype() ? value : cast(value, x.dtype());
}

Tensor operator&(const Tensor& a, const Tensor& b) {
  return logical_and(mask("operator&", a), mask("operator&", b));
}
Tensor operator|(const Tensor& a, const Tensor& b) {
  return logical_or(mask("operator|", a), mask("operator|", b));
}
Tensor operator^(const Tensor& a, const Tensor& b) {
  return logical_xor(mask("operator^", a), mask("operator^", b));
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
TENON_REDUCTION(logsumexp)
#undef TENON_REDUCTION
Tensor Tensor::var(const Axes& axes, bool keepdim, double correction) const {
  return tenon::var(*this, axes, keepdim, correction);
}
Tensor Tensor::stddev(const Axes& axes, bool keepdim, double correction) const {
  return tenon::stddev(*this, axes, keepdim, correction);
}
Tensor Tensor::max() const { return tenon::amax(*this); }
Tensor Tensor::min() const { return tenon::amin(*this); }
ValuesAndIndices Tensor::max(int axis, bool keepdim) const {
  return tenon::max(*this, axis, keepdim);
}
ValuesAndIndices Tensor::min(int axis, bool keepdim) const {
  return tenon::min(*this, axis, keepdim);
}
Tensor Tensor::argmax(int axis, bool keepdim) const { return tenon::argmax(*this, axis, keepdim); }
Tensor Tensor::argmin(int axis, bool keepdim) const { return tenon::argmin(*this, axis, keepdim); }
ValuesAndIndices Tensor::sort(int axis, bool descending) const {
  return tenon::sort(*this, axis, descending);
}
Tensor Tensor::argsort(int axis, bool descending) const {
  return tenon::argsort(*this, axis, descending);
}
ValuesAndIndices Tensor::topk(std::int64_t k, int axis, bool largest) const {
  return tenon::topk(*this, k, axis, largest);
}
Tensor Tensor::cumsum(int axis) const { return tenon::cumsum(*this, axis); }
Tensor Tensor::cumprod(int axis) const { return tenon::cumprod(*this, axis); }
Tensor Tensor::softmax(int axis) const { return tenon::softmax(*this, axis); }
Tensor Tensor::log_softmax(int axis) const { return tenon::log_softmax(*this, axis); }

Tensor Tensor::reshape(const Ints& sizes) const { return tenon::reshape(*this, sizes); }
Tensor Tensor::view(const Ints& sizes) const { return tenon::reshape(*this, sizes); }
Tensor Tensor::flatten(int start_axis, int end_axis) const {
  return tenon::flatten(*this, start_axis, end_axis);
}
Tensor Tensor::permute(const Ints& axes) const { return tenon::permute(*this, axes); }
Tensor Tensor::transpose(int a, int b) const { return tenon::transpose(*this, a, b); }
Tensor Tensor::expand(const Ints& sizes) const { return tenon::expand(*this, sizes); }
Tensor Tensor::squeeze() const { return tenon::squeeze(*this); }
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
Tensor Tensor::flip(const Axes& axes) const { return tenon::flip(*this, axes); }
Tensor Tensor::roll(const Ints& shifts, const Ints& axes) const {
  return tenon::roll(*this, shifts, axes);
}
Tensor Tensor::repeat(const Ints& counts) const { return tenon::repeat(*this, counts); }
Tensor Tensor::repeat_interleave(std::int64_t count, int axis) const {
  return tenon::repeat_interleave(*this, count, axis);
}
Tensor Tensor::tril(std::int64_t diagonal) const { return tenon::tril(*this, diagonal); }
Tensor Tensor::triu(std::int64_t diagonal) const { return tenon::triu(*this, diagonal); }
std::vector<Tensor> Tensor::split(std::int64_t size, int axis) const {
  return tenon::split(*this, size, axis);
}
std::vector<Tensor> Tensor::split(const Ints& sizes, int axis) const {
  return tenon::split(*this, sizes, axis);
}
std::vector<Tensor> Tensor::chunk(std::int64_t count, int axis) const {
  return tenon::chunk(*this, count, axis);
}
std::vector<Tensor> Tensor::unbind(int axis) const { return tenon::unbind(*this, axis); }
Tensor Tensor::gather(int axis, const Tensor& index) const {
  return tenon::gather(*this, axis, index);
}
Tensor Tensor::index_select(int axis, const Tensor& index) const {
  return tenon::index_select(*this, axis, index);
}
Tensor Tensor::index_add(int axis, const Tensor& index, const Tensor& updates) const {
  return tenon::index_add(*this, axis, index, updates);
}
Tensor Tensor::scatter(int axis, const Tensor& index, const Tensor& updates) const {
  return tenon::scatter(*this, axis, index, updates);
}
Tensor Tensor::scatter(int axis, const Tensor& index, Scalar value) const {
  return tenon::scatter(*this, axis, index, value);
}
Tensor Tensor::scatter_add(int axis, const Tensor& index, const Tensor& updates) const {
  return tenon::scatter_add(*this, axis, index, updates);
}
Tensor Tensor::masked_fill(const Tensor& mask, Scalar value) const {
  return tenon::masked_fill(*this, mask, value);
}
Tensor Tensor::matmul(const Tensor& other) const { return tenon::matmul(*this, other); }

#define TENON_UNARY(name) \
  Tensor Tensor::name() const { return tenon::name(*this); }
TENON_UNARY(neg)
TENON_UNARY(abs)
TENON_UNARY(sign)
TENON_UNARY(exp)
TENON_UNARY(expm1)
TENON_UNARY(log)
TENON_UNARY(log1p)
TENON_UNARY(log2)
TENON_UNARY(sqrt)
TENON_UNARY(rsqrt)
TENON_UNARY(reciprocal)
TENON_UNARY(square)
TENON_UNARY(sin)
TENON_UNARY(cos)
TENON_UNARY(tanh)
TENON_UNARY(erf)
TENON_UNARY(sigmoid)
TENON_UNARY(relu)
TENON_UNARY(floor)
TENON_UNARY(ceil)
TENON_UNARY(round)
TENON_UNARY(trunc)
TENON_UNARY(isnan)
TENON_UNARY(isinf)
TENON_UNARY(isfinite)
#undef TENON_UNARY
Tensor Tensor::pow(const Tensor& exponent) const { return tenon::pow(*this, exponent); }
Tensor Tensor::pow(Scalar exponent) const { return tenon::pow(*this, exponent); }
Tensor Tensor::clamp(Scalar low, Scalar high) const { return tenon::clamp(*this, low, high); }
bool Tensor::equal(const Tensor& other) const { return tenon::equal(*this, other); }
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return tenon::allclose(*this, other, rtol, atol, equal_nan);
}

}  // namespace tenon
