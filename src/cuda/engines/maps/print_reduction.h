// How reductions are printed: the type that they are gathered in, neutral elements, conversions.
#pragma once

#include <string>

#include "cuda/engines/maps/print_code.h"

namespace tenon::cuda {

/// A reduction of numbers of one dtype into one result.
struct Reduction {
  Op op = Op::Sum;
  DType from = DType::Float32, to = DType::Float32;
  bool deviations = false;  // a Sum: of squared deviations from the mean; floating

  /// float or double for floating numbers (the wider of the two), long long for others.
  DType gathered() const;
  /// "float", or "Placed<float>" for the index of an extremum, "Moments<float>" for deviations.
  std::string type() const;
  /// Of a number of what is gathered, in bytes.
  std::int64_t size() const;
  /// Of kernels/map_reduce.cuh: "SumOf".
  std::string function() const;
  std::string neutral() const;
  /// An element as what is gathered; `place` counts along the row.
  std::string element(const std::string& expression, const std::string& place) const;
  /// What was gathered as the result, in the compute type of `to`.
  std::string result(const std::string& gathered) const;
  bool is_arg() const { return op == Op::ArgMax || op == Op::ArgMin; }
};

}  // namespace tenon::cuda
