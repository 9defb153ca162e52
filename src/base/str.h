// cat(): builds messages out of strings and numbers, without the compile-time cost of a formatting
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tenon/dtype.h>
#include <tenon/number.h>
#include <tenon/shape.h>

namespace tenon {

/// How cat() passes a part of type T: a letter for the type, and the value or its address as a
/// variable argument.
template <class T>
struct TextPart;
template <class T, char Kind>
struct PartByAddress {
  static constexpr char kind = Kind;
  static const T* passed(const T& part) { return &part; }
};
template <class T, char Kind>
struct PartByValue {
  static constexpr char kind = Kind;
  static auto passed(T part) { return part; }
};
template <>
struct TextPart<const char*> : PartByValue<const char*, 's'> {};
template <>
struct TextPart<char*> : PartByValue<const char*, 's'> {};
template <std::size_t N>
struct TextPart<char[N]> : PartByValue<const char*, 's'> {};
template <>
struct TextPart<std::string> : PartByAddress<std::string, 'S'> {};
template <>
struct TextPart<std::string_view> : PartByAddress<std::string_view, 'v'> {};
template <>
struct TextPart<char> : PartByValue<int, 'c'> {};
template <class T>
requires(std::is_integral_v<T>) struct TextPart<T> {
  using Passed =
      std::conditional_t<sizeof(T) == 8,
                         std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                         std::conditional_t<sizeof(T) < 4 || std::is_signed_v<T>, int, unsigned>>;
  static constexpr char kind =
      sizeof(T) == 8 ? (std::is_signed_v<T> ? 'l' : 'm') : (std::is_signed_v<Passed> ? 'i' : 'u');
  static Passed passed(T value) { return static_cast<Passed>(value); }
};
template <>
struct TextPart<double> : PartByValue<double, 'd'> {};
template <>
struct TextPart<float> : PartByValue<float, 'f'> {};
template <>
struct TextPart<Scalar> : PartByAddress<Scalar, 'n'> {};
template <>
struct TextPart<Shape> : PartByAddress<Shape, 'h'> {};
template <>
struct TextPart<DType> {
  static constexpr char kind = 't';
  static int passed(DType dtype) { return static_cast<int>(dtype); }
};

// GCC exports variables that are templates, even with -fvisibility=hidden.
template <char... Kinds>
[[gnu::visibility("hidden")]] inline constexpr char kPartKinds[] = {Kinds..., '\0'};

/// cat() with the letters of the parts in front of them.
std::string join_parts(const char* kinds, ...);

/// Concatenates its arguments: strings, characters, integers, doubles (shortest form), scalars,
/// shapes, dtypes. A call takes half the code that appending one part after another would.
template <class... Args>
[[gnu::always_inline]] inline std::string cat(const Args&... args) {
  return join_parts(kPartKinds<TextPart<Args>::kind...>, TextPart<Args>::passed(args)...);
}

/// "1.5 GiB", "640 KiB", "12 bytes"
std::string size_text(std::int64_t bytes);

/// Whether the text is an identifier of C++: letters, digits and `_`, not beginning with a digit.
bool is_identifier(std::string_view text);

/// The candidate nearest to `word` by edit distance, ignoring case, or "" if none is near (for "did
/// you mean …?").
std::string nearest(std::string_view word, const std::string* candidates, int count);

}  // namespace tenon
