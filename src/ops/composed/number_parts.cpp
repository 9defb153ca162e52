// Signs, exponents and neighbours of floating-point numbers, and integer arithmetic: divisors and
// shifts. Composed from arithmetic, because tensors have no operations on bits.
#include <cmath>
#include <cstdint>
#include <utility>

#include <tenon/elementwise.h>
#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

void require_floats(const char* op, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where(op), ": takes floating tensors, not ", x.dtype(),
                                 ": cast it first");
}
void require_integers(const char* op, const Tensor& x) {
  if (is_floating(x.dtype()) || is_bool(x.dtype()))
    throw make_error<DTypeError>(where(op), ": takes integers, not ", x.dtype());
}

// The e with 2^e <= |x| < 2^(e + 1), for a finite x other than 0, in float64. The logarithm may be
// rounded to the wrong side of a whole number.
Tensor exponent_of(const Tensor& size) {
  const Tensor guess = floor(log2(size)), power = exp2(guess);
  return where(gt(power, size), guess - 1.0, where(le(power * 2.0, size), guess + 1.0, guess));
}

struct Layout {
  int digits, lowest;  // of the mantissa after the point; the exponent of the least normal number
};
Layout layout_of(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return {10, -14};
    case DType::BFloat16:
      return {7, -126};
    case DType::Float32:
      return {23, -126};
    default:
      return {52, -1022};
  }
}

std::int64_t bits_of(const Tensor& x) {
  return 8 * static_cast<std::int64_t>(item_size(x.dtype()));
}

Tensor powers_of_2(Device home) {
  std::int64_t powers[64];
  for (int k = 0; k < 64; ++k) powers[k] = static_cast<std::int64_t>(std::uint64_t{1} << k);
  return Tensor::from_data(powers, {64}, DType::Int64, home);
}

// 2^by for 0 <= by < 64, and whether by is in this range.
std::pair<Tensor, Tensor> power_of_2(const Tensor& by, std::int64_t bits) {
  const Tensor number = cast(by, DType::Int64), valid = ge(number, 0) & lt(number, bits);
  const Tensor flat = reshape(where(valid, number, 0), {by.numel()});
  return {reshape(index_select(powers_of_2(by.device()), 0, flat), to_ints(by.shape())), valid};
}

}  // namespace

Tensor signbit(const Tensor& x) {
  const Called called("signbit");
  require_defined("signbit", x);
  if (!is_floating(x.dtype())) return is_bool(x.dtype()) ? zeros(x.shape(), DType::Bool) : lt(x, 0);
  return lt(x, 0) | (eq(x, 0) & lt(reciprocal(x), 0));
}

Tensor copysign(const Tensor& x, const Tensor& sign) {
  const Called called("copysign");
  const auto [a, b] = aligned("copysign", x, sign);
  const Tensor size = abs(to_floating(a));
  return where(signbit(b), -size, size);
}

ValuesAndExponents frexp(const Tensor& x) {
  const Called called("frexp");
  require_defined("frexp", x);
  require_floats("frexp", x);
  const Tensor wide = cast(detach(x), DType::Float64), size = abs(wide);
  const Tensor finite = gt(size, 0) & isfinite(size);
  const Tensor exponent = where(finite, exponent_of(where(finite, size, 1.0)) + 1.0, 0.0);
  return {cast(cast(x, DType::Float64) * exp2(-exponent), x.dtype()), cast(exponent, DType::Int32)};
}

Tensor nextafter(const Tensor& x, const Tensor& towards) {
  const Called called("nextafter");
  const auto [a, b] = aligned("nextafter", x, towards);
  require_floats("nextafter", a);
  const Layout layout = layout_of(a.dtype());
  const Tensor from = cast(a, DType::Float64), to = cast(detach(b), DType::Float64);
  const Tensor size = abs(detach(from)), finite = gt(size, 0) & isfinite(size);
  const Tensor exponent = exponent_of(where(finite, size, 1.0));
  // A power of two is twice as far from the next larger number as from the next smaller one.
  const Tensor shrinks = ne(lt(from, to), gt(from, 0)) & ne(from, 0);
  const Tensor at_power = eq(exp2(exponent), size) & shrinks;
  const Tensor step = where(at_power, exponent - 1.0, exponent);
  const auto lowest = static_cast<double>(layout.lowest);
  const Tensor unit = exp2(where(finite, maximum(step, lowest), lowest) - layout.digits);
  const Tensor moved = where(lt(from, to), from + unit, from - unit);
  // Beyond the largest number comes infinity, and before infinity the largest number.
  const double largest = (2 - std::ldexp(1.0, -layout.digits)) *
                         std::ldexp(1.0, layout.lowest == -1022 ? 1023 : 1 - layout.lowest);
  const Tensor inward = where(isinf(from), sign(from) * largest, moved);
  const Tensor result = where(eq(from, to), to, inward);
  return cast(where(isnan(from) | isnan(to), from + to, result), a.dtype());
}

Tensor gcd(const Tensor& x, const Tensor& y) {
  const Called called("gcd");
  auto [a, b] = aligned("gcd", x, y);
  require_integers("gcd", a);
  // Euclid's algorithm takes the most steps for Fibonacci numbers: less than 1.45 for each bit.
  const auto steps = static_cast<int>(bits_of(a) * 29 / 20 + 1);
  a = abs(a), b = abs(b);
  for (int k = 0; k < steps; ++k) {
    const Tensor done = eq(b, 0), rest = remainder(a, where(done, 1, b));
    a = where(done, a, b), b = where(done, 0, rest);
  }
  return a;
}

Tensor lcm(const Tensor& x, const Tensor& y) {
  const Called called("lcm");
  const auto [a, b] = aligned("lcm", x, y);
  const Tensor divisor = gcd(a, b);
  return abs(floor_divide(a, where(eq(divisor, 0), 1, divisor)) * b);
}

Tensor bitwise_left_shift(const Tensor& x, const Tensor& by) {
  const Called called("bitwise_left_shift");
  const auto [a, b] = aligned("bitwise_left_shift", x, by);
  require_integers("bitwise_left_shift", a);
  const auto [power, valid] = power_of_2(b, bits_of(a));
  return cast(where(valid, cast(a, DType::Int64) * power, 0), a.dtype());
}

Tensor bitwise_right_shift(const Tensor& x, const Tensor& by) {
  const Called called("bitwise_right_shift");
  const auto [a, b] = aligned("bitwise_right_shift", x, by);
  require_integers("bitwise_right_shift", a);
  const auto [power, valid] = power_of_2(b, bits_of(a) - 1);
  const Tensor wide = cast(a, DType::Int64), gone = where(lt(wide, 0), -1, zeros_like(wide));
  return cast(where(valid, floor_divide(wide, power), gone), a.dtype());
}

}  // namespace tenon
