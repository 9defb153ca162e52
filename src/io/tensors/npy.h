// NumPy's array files: a magic string, a version, a Python dictionary as text, then the values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/tensor.h>

namespace tenon::io {

/// The header of an array, checked against the bytes that follow.
struct NpyArray {
  DType dtype = DType::Float32;
  Shape shape;
  std::size_t values = 0;  ///< offset of the values
  bool swapped = false, by_columns = false;
};
constexpr std::size_t kMostNpyHeader = 65'536 + 12;

/// Reads the header of an array file of `size` bytes. `start` has all its bytes or the first
/// kMostNpyHeader. `name` is for messages.
NpyArray read_npy_header(std::string_view start, std::uint64_t size, const std::string& name);
/// Reads the array from all its bytes.
Tensor npy_values(const NpyArray& array, std::string_view bytes);
/// Reads header and array.
Tensor parse_npy(std::string_view bytes, const std::string& name);

/// The header bytes of an array in C order (version 1.0, padded to 64).
std::string npy_header(const Shape& shape, DType dtype);

}  // namespace tenon::io
