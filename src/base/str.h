// cat(): builds messages out of strings and numbers, without the compile-time cost of a formatting
// library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tenon/dtype.h>
#include <tenon/number.h>
#include <tenon/shape.h>

namespace tenon {

inline void append_to(std::string& out, std::string_view text) { out.append(text); }
inline void append_to(std::string& out, const std::string& text) { out.append(text); }
inline void append_to(std::string& out, const char* text) { out.append(text); }
inline void append_to(std::string& out, char c) { out.push_back(c); }
inline void append_to(std::string& out, const Shape& shape) { out.append(shape.str()); }
inline void append_to(std::string& out, DType dtype) { out.append(name(dtype)); }
void append_to(std::string& out, double value);
void append_to(std::string& out, float value);
void append_to(std::string& out, const Scalar& value);
template <class T>
requires(std::is_integral_v<T>) void append_to(std::string& out, T value) {
  out.append(std::to_string(value));
}

/// Concatenates its arguments: strings, characters, integers, doubles (shortest form), scalars,
/// shapes, dtypes.
template <class... Args>
std::string cat(const Args&... args) {
  std::string out;
  (append_to(out, args), ...);
  return out;
}

/// "1.5 GiB", "640 KiB", "12 bytes"
std::string size_text(std::int64_t bytes);

/// The candidate nearest to `word` by edit distance, ignoring case, or "" if none is near (for "did
/// you mean …?").
std::string nearest(std::string_view word, const std::string* candidates, int count);

}  // namespace tenon
