// NumPy's array files: a magic string, a version, a Python dictionary as text, then the values.
#pragma once

#include <string>
#include <string_view>

#include <tenon/tensor.h>

namespace tenon::io {

/// Parses the bytes of a .npy file. `name` is for messages.
Tensor parse_npy(std::string_view bytes, const std::string& name);

/// The bytes before the values of an array in C order (version 1.0, padded to 64).
std::string npy_header(const Shape& shape, DType dtype);

}  // namespace tenon::io
