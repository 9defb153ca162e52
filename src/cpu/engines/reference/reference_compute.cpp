// Element-wise functions and reductions of the reference engine: they define every op.
//
// Floating-point arguments are computed in double and the result is rounded once; integers wrap.
// Every function propagates NaN, and NaN wins in maxima and minima, as in PyTorch.
#include <cmath>
#include <limits>

#include "base/index.h"
#include "base/str.h"
#include "cpu/engines/reference/reference.h"
#include "graph/element_code.h"
#include "scalar/arc.h"
#include "scalar/arithmetic.h"
#include "scalar/erf.h"
#include "scalar/exp.h"
#include "scalar/log.h"
#include "scalar/pow.h"
#include "scalar/trig.h"

#include <tenon/error.h>

namespace tenon::cpu::reference {

namespace {

[[noreturn]] void unknown(Op op, const char* what) {
  throw InternalError(cat("reference engine: ", op_row(op).name, " is not a ", what));
}

// The functions of src/scalar in double and int64; bools are 0 or 1.

double real_unary(Op op, double x) {
  switch (op) {
#define TENON_UNARY(Name, printed, domain, function, ...) \
  case Op::Name:                                          \
    return static_cast<double>(scalar::function(x));
#include "graph/op_table.inc"
    default:
      unknown(op, "function of one floating number");
  }
}

std::int64_t whole_unary(Op op, std::int64_t x) {
  switch (op) {
#define TENON_WHOLE_Any(Name, function) \
  case Op::Name:                        \
    return scalar::function(x);
#define TENON_WHOLE_Rounding(Name, function) \
  case Op::Name:                             \
    return x;
#define TENON_WHOLE_Floating(Name, function)
#define TENON_WHOLE_Periodic(Name, function)
#define TENON_UNARY(Name, printed, domain, function, ...) TENON_WHOLE_##domain(Name, function)
#include "graph/op_table.inc"
#undef TENON_WHOLE_Any
#undef TENON_WHOLE_Rounding
#undef TENON_WHOLE_Floating
#undef TENON_WHOLE_Periodic
    default:
      unknown(op, "function of one integer");
  }
}

double real_binary(Op op, double a, double b) {
  switch (op) {
#define TENON_BINARY(Name, printed, domain, function, ...) \
  case Op::Name:                                           \
    return static_cast<double>(scalar::function(a, b));
#include "graph/op_table.inc"
    default:
      unknown(op, "function of two floating numbers");
  }
}

std::int64_t whole_binary(Op op, std::int64_t a, std::int64_t b) {
  switch (op) {
#define TENON_WHOLE_Any(Name, function) \
  case Op::Name:                        \
    return scalar::function(a, b);
#define TENON_WHOLE_Paired(Name, function) TENON_WHOLE_Any(Name, function)
#define TENON_WHOLE_Floating(Name, function)
#define TENON_BINARY(Name, printed, domain, function, ...) TENON_WHOLE_##domain(Name, function)
#include "graph/op_table.inc"
#undef TENON_WHOLE_Any
#undef TENON_WHOLE_Paired
#undef TENON_WHOLE_Floating
    default:
      unknown(op, "function of two integers");
  }
}

/// One element of an op other than Cast and Where. All arguments have one dtype.
void compute_one(Op op, Array& out, std::int64_t i, const Array& a, std::int64_t ia, const Array* b,
                 std::int64_t ib) {
  if (!a.floating()) {
    const std::int64_t x = a.whole[at(ia)];
    out.set(i, b == nullptr ? whole_unary(op, x) : whole_binary(op, x, b->whole[at(ib)]));
    return;
  }
  const double x = a.real[at(ia)];
  const double y = b == nullptr ? real_unary(op, x) : real_binary(op, x, b->real[at(ib)]);
  if (has_trait(op, kTruth)) {
    out.set(i, static_cast<std::int64_t>(y));
  } else {
    out.set(i, y);
  }
}

std::int64_t wrapping(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

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

Array compute_own(const ElementCode& code, std::span<const Array* const> args, std::int64_t count) {
  Array out(DType::Float64, count);
  for (std::int64_t i = 0; i < count; ++i) {
    double x[3] = {}, y = 0;
    for (std::size_t k = 0; k < args.size(); ++k)
      x[k] = args[k]->real_at(i / (count / args[k]->size()));
    code.f64(1, &y, &x[0], &x[1], &x[2]);
    out.set(i, y);
  }
  return out;
}

Reducer::Reducer(Op op, DType dtype, std::int64_t results)
    : op_(op), dtype_(dtype), position_(at(results)), seen_(at(results)) {
  // The graph builder refuses a user's empty maximum or minimum; any other empty reduction gives
  // the neutral element.
  real_.assign(at(results), op_row(op).neutral.real);
  whole_.assign(at(results), op_row(op).neutral.whole);
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
