// Whole numbers of a saved program that depend on the batch size n: linear functions of it, written
// as text: "n", "4n", "4n-1". Real numbers may also be ratios: "1/4n", "4n/4n-1".
#pragma once

#include <array>
#include <cstdint>

#include "io/text/json.h"

namespace tenon {

/// The records of one function for three batch sizes as one record: numbers that differ become
/// linear functions of the batch size. Throws ShapeError naming the place in the record if they are
/// not linear, or if the records differ in anything else.
io::Json join_records(const std::array<io::Json, 3>& records,
                      const std::array<std::int64_t, 3>& sizes);

/// The value of a whole number, or of a linear function for the batch size `n`. Throws
/// Json::type_error for another value and Json::out_of_range beyond 2^62.
std::int64_t whole_at(const io::Json& value, std::int64_t n);
/// The value of a real number, an infinity, "nan", or a function of the batch size. Throws as
/// whole_at().
double real_at(const io::Json& value, std::int64_t n);

}  // namespace tenon
