// How reductions are printed: accumulator types, neutral elements, conversions.
#pragma once

#include <string>

#include "cuda/engines/maps/print_code.h"

namespace tenon::cuda {

/// A reduction of numbers of one dtype into one result.
struct Reduction {
  Op op = Op::Sum;
  DType from = DType::Float32, to = DType::Float32;
  bool deviations = false;  // a Sum: of squared deviations from the mean; floating

  /// The accumulator: float or double for floating-point numbers (the wider of the two), otherwise
  /// long long.
  DType gathered() const;
  /// "float", or "Placed<float>" for the index of an extremum, "Moments<float>" for deviations.
  std::string type() const;
  /// Bytes of an accumulator's number.
  std::int64_t size() const;
  /// The function of cuda/kernels/maps/map_reduce.cuh: "SumOf".
  std::string function() const;
  std::string neutral() const;
  /// An element converted to the accumulator's type; `place` counts along the row.
  std::string element(const std::string& expression, const std::string& place) const;
  /// The accumulator converted to the result, in the compute type of `to`.
  std::string result(const std::string& gathered) const;
  bool is_arg() const { return op == Op::ArgMax || op == Op::ArgMin; }
};

}  // namespace tenon::cuda
