// Random tensors. Every number is a function of (seed, counter, element index): Philox4x32-10 keyed
// with the seed.
//
// Element e of the draw with counter c reads word e % 4 of the block philox(key = seed, lo = e / 4,
// hi = c + offset). Kinds:
//   uniform   float32 uniform01(word): the word's upper 24 bits / 2^24, in [0, 1)
//   normal    float32, Box-Muller on the word pairs (0, 1) and (2, 3) of the block: u1 = 1 -
//   uniform01(first) in (0, 1],
//               u2 = uniform01(second), r = sqrt(-2 ln u1); the pair's first element is r cos(2 pi
//               u2), its second r sin(2 pi u2)
//   bits      int64, the word itself, in [0, 2^32)
// The node knows float32 and int64 only; other dtypes are conversions, so that engines need no
// more.
#include <cmath>

#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/random.h"
#include "ops/rules.h"

namespace tenon {
namespace {

Tensor draw(RandomKind kind, const Shape& shape, const OptionalGenerator& generator) {
  RandomAttrs attrs{kind};
  Generator source = generator.value_or(Generator::current());
  const Tensor state = source.next(&attrs.offset);
  const DType dtype = kind == RandomKind::Bits ? DType::Int64 : DType::Float32;
  return build_as(Op::Random, dtype, shape, {state}, attrs);
}

void require_floating_result(const char* op, DType dtype) {
  if (!is_floating(dtype))
    throw make_error<DTypeError>(where(op), ": gives floating numbers, not ", dtype,
                                 ": use randint");
}

void require_probability(const char* op, double p) {
  if (!(p >= 0 && p <= 1))
    throw make_error<ValueError>(where(op), ": the probability ", p, " is outside [0, 1]");
}

}  // namespace

Inferred infer_random(const Node& node) {
  const Node& state = *node.input(0);
  if (state.dtype != DType::Int64 || state.shape != Shape{2})
    throw make_error<ShapeError>(where(node), ": the state is int64[2] (seed, counter), not ",
                                 state.dtype, state.shape);
  const bool bits = node.attrs.as<RandomAttrs>().kind == RandomKind::Bits;
  if (node.dtype != (bits ? DType::Int64 : DType::Float32))
    throw make_error<DTypeError>(
        where(node), ": numbers are made as float32, bits as int64; cast the result to ",
        node.dtype);
  return {node.dtype, node.shape};
}

Tensor random_words(const Shape& shape, const OptionalGenerator& generator) {
  return draw(RandomKind::Bits, shape, generator);
}

Tensor rand(const Shape& shape, DType dtype, const OptionalGenerator& generator) {
  require_floating_result("rand", dtype);
  const Tensor u = draw(RandomKind::Uniform, shape, generator);
  // Rounding to a 16-bit type could yield 1, so only as many leading bits are kept as the type
  // represents exactly.
  if (dtype == DType::Float16) return cast(floor(u * 2048.0) * 0x1p-11, dtype);
  if (dtype == DType::BFloat16) return cast(floor(u * 256.0) * 0x1p-8, dtype);
  return cast(u, dtype);
}

Tensor randn(const Shape& shape, DType dtype, const OptionalGenerator& generator) {
  require_floating_result("randn", dtype);
  return cast(draw(RandomKind::Normal, shape, generator), dtype);
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
               const OptionalGenerator& generator) {
  if (high <= low)
    throw make_error<ValueError>(where("randint"), ": the range [", low, ", ", high, ") is empty");
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  // The product of a 32-bit word and the range stays within int64; its bias is below range / 2^32.
  if (range > (std::uint64_t{1} << 31))
    throw make_error<ValueError>(where("randint"), ": the range [", low, ", ", high,
                                 ") has more than 2^31 numbers");
  const Tensor product =
      draw(RandomKind::Bits, shape, generator) * static_cast<std::int64_t>(range);
  const Tensor picked = build(Op::Div, {product, constant(shape, 0x1p32, DType::Int64)});
  return cast(low == 0 ? picked : picked + low, dtype);
}

Tensor bernoulli(const Shape& shape, double p, DType dtype, const OptionalGenerator& generator) {
  require_probability("bernoulli", p);
  return cast(lt(draw(RandomKind::Uniform, shape, generator), p), dtype);
}

Tensor dropout(const Tensor& x, double p, bool training, const OptionalGenerator& generator) {
  require_defined("dropout", x);
  require_probability("dropout", p);
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where("dropout"), ": takes a floating tensor, not ", x.dtype());
  if (!training || p == 0) return x;
  if (p == 1) return where(zeros(x.shape(), DType::Bool), x, 0.0);
  const Tensor keep = ge(draw(RandomKind::Uniform, x.shape(), generator), p);
  return where(keep, x * (1 / (1 - p)), 0.0);
}

}  // namespace tenon
