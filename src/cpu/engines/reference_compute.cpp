// Element-wise functions, reductions and random numbers of the reference engine, one switch each:
// the meaning of every op.
//
// Floating arguments are computed on in double and the result is rounded once; integers wrap
// around. NaN is kept by every function of it, and wins in maxima and minima, as in PyTorch.
#include <cmath>
#include <limits>

#include "base/index.h"
#include "base/str.h"
#include "cpu/engines/reference.h"

#include <tenon/error.h>

namespace tenon::cpu::reference {

namespace {

[[noreturn]] void unknown(Op op, const char* what) {
  throw InternalError(cat("reference engine: op ", static_cast<int>(op), " is no ", what));
}

double real_unary(Op op, double x) {
  switch (op) {
    case Op::Neg:
      return -x;
    case Op::Abs:
      return std::fabs(x);
    case Op::Sign:
      return static_cast<double>((x > 0) - (x < 0));
    case Op::Exp:
      return std::exp(x);
    case Op::Expm1:
      return std::expm1(x);
    case Op::Log:
      return std::log(x);
    case Op::Log1p:
      return std::log1p(x);
    case Op::Sqrt:
      return std::sqrt(x);
    case Op::Rsqrt:
      return 1 / std::sqrt(x);
    case Op::Reciprocal:
      return 1 / x;
    case Op::Square:
      return x * x;
    case Op::Sin:
      return std::sin(x);
    case Op::Cos:
      return std::cos(x);
    case Op::Tanh:
      return std::tanh(x);
    case Op::Sigmoid:
      return 1 / (1 + std::exp(-x));
    case Op::Relu:
      return x < 0 ? 0 : x;
    case Op::Erf:
      return std::erf(x);
    case Op::Floor:
      return std::floor(x);
    case Op::Ceil:
      return std::ceil(x);
    case Op::Round:
      return std::nearbyint(x);
    case Op::Trunc:
      return std::trunc(x);
    case Op::StopGradient:
      return x;
    default:
      unknown(op, "function of one floating number");
  }
}

std::int64_t wrapping(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::int64_t whole_unary(Op op, std::int64_t x) {
  switch (op) {
    case Op::Neg:
      return wrapping(0 - bits(x));
    case Op::Abs:
      return x < 0 ? wrapping(0 - bits(x)) : x;
    case Op::Sign:
      return (x > 0) - (x < 0);
    case Op::Square:
      return wrapping(bits(x) * bits(x));
    case Op::Relu:
      return x < 0 ? 0 : x;
    case Op::LogicalNot:
      return x == 0;
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::Trunc:
    case Op::StopGradient:
      return x;
    default:
      unknown(op, "function of one integer");
  }
}

double real_remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double real_binary(Op op, double a, double b) {
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::Pow:
      return std::pow(a, b);
    case Op::Maximum:
      return std::isnan(a) || a > b ? a : b;
    case Op::Minimum:
      return std::isnan(a) || a < b ? a : b;
    case Op::Remainder:
      return real_remainder(a, b);
    default:
      unknown(op, "function of two floating numbers");
  }
}

/// Truncating division. Nothing traps: x / 0 is 0, and the one quotient that does not fit wraps.
std::int64_t whole_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrapping(0 - bits(a)) : a / b;
}

std::int64_t whole_remainder(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

std::int64_t whole_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t result = 1, square = bits(base);
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= square;
    square *= square;
  }
  return wrapping(result);
}

std::int64_t whole_binary(Op op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case Op::Add:
      return wrapping(bits(a) + bits(b));
    case Op::Sub:
      return wrapping(bits(a) - bits(b));
    case Op::Mul:
      return wrapping(bits(a) * bits(b));
    case Op::Div:
      return whole_divide(a, b);
    case Op::Pow:
      return whole_power(a, b);
    case Op::Maximum:
      return a > b ? a : b;
    case Op::Minimum:
      return a < b ? a : b;
    case Op::Remainder:
      return whole_remainder(a, b);
    default:
      unknown(op, "function of two integers");
  }
}

/// Comparisons and logical functions of two numbers of one kind.
template <class T>
bool predicate(Op op, T a, T b) {
  switch (op) {
    case Op::Eq:
      return a == b;
    case Op::Ne:
      return a != b;
    case Op::Lt:
      return a < b;
    case Op::Le:
      return a <= b;
    case Op::Gt:
      return a > b;
    case Op::Ge:
      return a >= b;
    case Op::LogicalAnd:
      return a != 0 && b != 0;
    case Op::LogicalOr:
      return a != 0 || b != 0;
    case Op::LogicalXor:
      return (a != 0) != (b != 0);
    default:
      unknown(op, "comparison");
  }
}

bool is_predicate(Op op) { return op >= Op::Eq && op <= Op::LogicalXor; }

bool real_test(Op op, double x) {
  return op == Op::IsNan ? std::isnan(x) : op == Op::IsInf ? std::isinf(x) : x == 0;
}

/// One element of an op other than Cast and Where, whose arguments all have one dtype.
void compute_one(Op op, Array& out, std::int64_t i, const Array& a, std::int64_t ia, const Array* b,
                 std::int64_t ib) {
  const bool real = a.floating();
  if (b == nullptr) {
    if (op == Op::IsNan || op == Op::IsInf || (op == Op::LogicalNot && real)) {
      out.set(i, static_cast<std::int64_t>(real && real_test(op, a.real[at(ia)])));
    } else if (real) {
      out.set(i, real_unary(op, a.real[at(ia)]));
    } else {
      out.set(i, whole_unary(op, a.whole[at(ia)]));
    }
  } else if (is_predicate(op)) {
    const bool yes = real ? predicate(op, a.real[at(ia)], b->real[at(ib)])
                          : predicate(op, a.whole[at(ia)], b->whole[at(ib)]);
    out.set(i, static_cast<std::int64_t>(yes));
  } else if (real) {
    out.set(i, real_binary(op, a.real[at(ia)], b->real[at(ib)]));
  } else {
    out.set(i, whole_binary(op, a.whole[at(ia)], b->whole[at(ib)]));
  }
}

void copy_one(Array& out, std::int64_t i, const Array& from, std::int64_t j) {
  if (from.floating()) {
    out.set(i, from.real[at(j)]);
  } else {
    out.set(i, from.whole[at(j)]);
  }
}

}  // namespace

Array compute(Op op, DType dtype, std::span<const Array* const> args, std::int64_t count) {
  Array out(dtype, count);
  std::int64_t repeat[3] = {1, 1,
                            1};  // elements of the result that share one element of the argument
  for (std::size_t k = 0; k < args.size(); ++k)
    if (args[k]->size() != 0) repeat[k] = count / args[k]->size();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t ia = i / repeat[0], ib = i / repeat[1];
    if (op == Op::Cast) {
      copy_one(out, i, *args[0], ia);
    } else if (op == Op::Where) {
      const bool first = args[0]->real_at(ia) != 0;
      copy_one(out, i, first ? *args[1] : *args[2], first ? ib : i / repeat[2]);
    } else {
      compute_one(op, out, i, *args[0], ia, args.size() > 1 ? args[1] : nullptr, ib);
    }
  }
  return out;
}

Reducer::Reducer(Op op, DType dtype, std::int64_t results)
    : op_(op), dtype_(dtype), position_(at(results)), seen_(at(results)) {
  const bool product = op == Op::Prod;
  real_.assign(at(results), product ? 1.0 : 0.0);
  whole_.assign(at(results), product ? 1 : 0);
  // An empty maximum or minimum is refused by the builder where it is the user's; what is left is
  // the neutral element.
  if (op == Op::Max || op == Op::Min) {
    const double inf = std::numeric_limits<double>::infinity();
    using Limits = std::numeric_limits<std::int64_t>;
    real_.assign(at(results), op == Op::Max ? -inf : inf);
    whole_.assign(at(results), op == Op::Max ? Limits::min() : Limits::max());
  }
}

void Reducer::add_real(std::size_t r, double value, std::int64_t position) {
  if (op_ == Op::Sum) {
    real_[r] += value;
  } else if (op_ == Op::Prod) {
    real_[r] *= value;
  } else {
    const bool largest = op_ == Op::Max || op_ == Op::ArgMax;
    const double best = real_[r];
    const bool better =
        !std::isnan(best) && (std::isnan(value) || (largest ? value > best : value < best));
    if (seen_[r] && !better) return;
    real_[r] = value;
    position_[r] = position;
  }
}

void Reducer::add_whole(std::size_t r, std::int64_t value, std::int64_t position) {
  if (op_ == Op::Sum) {
    whole_[r] = wrapping(bits(whole_[r]) + bits(value));
  } else if (op_ == Op::Prod) {
    whole_[r] = wrapping(bits(whole_[r]) * bits(value));
  } else {
    const bool largest = op_ == Op::Max || op_ == Op::ArgMax;
    if (seen_[r] && !(largest ? value > whole_[r] : value < whole_[r])) return;
    whole_[r] = value;
    position_[r] = position;
  }
}

void Reducer::add(std::int64_t result, const Array& array, std::int64_t i, std::int64_t position) {
  const std::size_t r = at(result);
  if (array.floating()) {
    add_real(r, array.real[at(i)], position);
  } else {
    add_whole(r, array.whole[at(i)], position);
    real_[r] = static_cast<double>(whole_[r]);
  }
  seen_[r] = true;
}

Array Reducer::finish() const {
  const auto count = static_cast<std::int64_t>(real_.size());
  Array out(dtype_, count);
  for (std::int64_t r = 0; r < count; ++r) {
    if (op_ == Op::ArgMax || op_ == Op::ArgMin) {
      out.set(r, position_[at(r)]);
    } else if (is_floating(dtype_)) {
      out.set(r, real_[at(r)]);
    } else {
      out.set(r, whole_[at(r)]);
    }
  }
  return out;
}

}  // namespace tenon::cpu::reference
