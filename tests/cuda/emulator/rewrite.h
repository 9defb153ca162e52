// Turning preprocessed CUDA C++ into C++: the few constructs that macros cannot express.
#pragma once

#include <string>
#include <vector>

namespace tenon_emulator {

/// `text` after the preprocessor (no comments, line markers kept, __global__ and
/// __launch_bounds__ untouched). Behind every extern "C" kernel stands its registration;
/// `expressions` names instances of kernel templates, registered under lowered_name(number).
/// Throws std::runtime_error.
std::string rewrite_kernels(const std::string& text, const std::vector<std::string>& expressions);

std::string lowered_name(std::size_t number);

}  // namespace tenon_emulator
