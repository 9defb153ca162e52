// Prints reductions; cuda/kernels/maps/map_reduce.cuh has the device functions.
#include "cuda/engines/maps/print_reduction.h"

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::cuda {

DType Reduction::gathered() const {
  if (!is_floating(from)) return DType::Int64;
  const bool wide = from == DType::Float64 || (to == DType::Float64 && !is_arg());
  return wide ? DType::Float64 : DType::Float32;
}

std::string Reduction::type() const {
  const std::string number = compute_type(gathered());
  if (deviations) return cat("Moments<", number, ">");
  return is_arg() ? cat("Placed<", number, ">") : number;
}

std::int64_t Reduction::size() const {
  const auto number = static_cast<std::int64_t>(item_size(gathered()));
  return deviations ? 3 * number : is_arg() ? 2 * number : number;
}

std::string Reduction::function() const {
  if (deviations) return "MomentsOf";
  switch (op) {
    case Op::Sum:
      return "SumOf";
    case Op::Prod:
      return "ProdOf";
    case Op::Max:
      return "MaxOf";
    case Op::Min:
      return "MinOf";
    case Op::ArgMax:
      return "ArgMaxOf";
    case Op::ArgMin:
      return "ArgMinOf";
    default:
      throw InternalError(cat("op ", static_cast<int>(op), " is not a reduction"));
  }
}

std::string Reduction::neutral() const {
  if (deviations) return cat(type(), "{0, 0, 0}");
  const DType type = gathered();
  const bool largest = op == Op::Max || op == Op::ArgMax;
  std::string number = op == Op::Prod ? "1" : "0";
  if (op != Op::Sum && op != Op::Prod) {
    const char* bits = largest ? "0xff800000u" : "0x7f800000u";
    number = is_floating(type) ? cat("scalar::float_of(", bits, ")")
             : largest         ? "(-0x7fffffffffffffffll - 1)"
                               : "0x7fffffffffffffffll";
  }
  return is_arg() ? cat("{", number, ", kNoPlace}") : number;
}

std::string Reduction::element(const std::string& expression, const std::string& place) const {
  const std::string number = print_cast(expression, from, gathered());
  return is_arg() ? cat(this->type(), "{", number, ", ", place, "}") : number;
}

std::string Reduction::result(const std::string& x) const {
  if (deviations) return print_cast(cat(x, ".squares"), gathered(), to);
  if (is_arg()) return print_cast(cat("place_of(", x, ")"), DType::Int64, to);
  return is_floating(to) && gathered() == DType::Float32 ? x : print_cast(x, gathered(), to);
}

}  // namespace tenon::cuda
