// Turning preprocessed CUDA C++ into C++: the few constructs that macros cannot express.
#pragma once

#include <string>
#include <vector>

namespace tenon_emulator {

/// Rewrites `text`, which the preprocessor has read (no comments, line markers kept, __global__ and
/// __launch_bounds__ untouched). Adds a registration after every extern "C" kernel. `expressions`
/// names instances of kernel templates, which are registered under lowered_name(number). Throws
/// std::runtime_error.
std::string rewrite_kernels(const std::string& text, const std::vector<std::string>& expressions);

std::string lowered_name(std::size_t number);

}  // namespace tenon_emulator
