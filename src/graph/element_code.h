// The code of an own element-wise operation (tenon/elementwise_kernel.h), for the device of its
// node.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/dtype.h>

namespace tenon {

struct ElementCode {
  using Loop = void (*)(std::int64_t n, void* out, const void* a, const void* b, const void* c);
  // On a CPU: out[i] = f(a[i], …) in float32 and in float64. `out` may be an argument.
  Loop f32 = nullptr, f64 = nullptr;
  // On a GPU: the name of a function template of one type, and its definition.
  std::string function, definition;
};

/// The last line of each ElementCode::definition.
inline constexpr char kDefinitionEnd[] = "// end of the own operation";

/// The start of a line with which a source announces code of the program that uses the library. The
/// operation's name follows.
inline constexpr char kOwnOperation[] = "// own operation: ";

}  // namespace tenon
