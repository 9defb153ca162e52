// make_error(): joins the parts of a message as cat() does, and also stores typed parts as fields
// of the error: the operation and layer of an OpPlace, shapes, a file, a line.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon {

/// The operation that is being built and the path of the layer that builds it.
struct OpPlace {
  std::string operation, layer;
  std::vector<Shape> operands{};  ///< Shapes of the operation's inputs, where they are known.
};
/// "conv2d (block.3.conv1)", or "conv2d" outside of layers.
template <>
struct TextPart<OpPlace> : PartByAddress<OpPlace, 'o'> {};

/// As the functions of shape.h, for the operation that is being built.
int normalize_axis(int axis, int rank, const OpPlace& what);
Shape broadcast_shapes(const Shape& a, const Shape& b, const OpPlace& what);

/// The file that a message is about.
struct FileName {
  std::string_view name;
};
template <>
struct TextPart<FileName> : PartByAddress<FileName, 'F'> {};

/// The line of the file that a message is about.
struct LineNumber {
  std::int64_t number;
};
template <>
struct TextPart<LineNumber> {
  static constexpr char kind = 'L';
  static std::int64_t passed(LineNumber line) { return line.number; }
};

/// Joins parts as join_parts() does, and sets the fields that they tell.
std::string join_message(ErrorFields& fields, const char* kinds, std::va_list parts);

/// make_error() with the letters of the parts in front of them.
template <class E>
[[gnu::cold]] E make_error_of(const char* kinds, ...) {
  ErrorFields fields;
  std::va_list parts;
  va_start(parts, kinds);
  const std::string text = join_message(fields, kinds, parts);
  va_end(parts);
  return E(text, std::move(fields));
}

/// An error whose message is these parts, one after another:
/// `throw make_error<ShapeError>(where("dot"), ": vectors of ", a.shape(), " and ", b.shape());`.
template <class E, class... Parts>
[[gnu::always_inline]] inline E make_error(const Parts&... parts) {
  return make_error_of<E>(kPartKinds<TextPart<Parts>::kind...>, TextPart<Parts>::passed(parts)...);
}

/// In a handler: throws an error of the same type with "PLACE: " in front of its message, or the
/// error itself if it names an operation.
[[noreturn]] void rethrow_named(const Error& error, const OpPlace& place);

/// The same error with "FILE: " in front of its message, unless the message begins so.
template <class E>
E in_file(const std::string& file, const E& error) {
  ErrorFields fields = error.fields();
  if (fields.file.empty()) fields.file = file;
  const std::string_view what = error.what();
  return E(what.starts_with(file) ? std::string(what) : cat(file, ": ", what), std::move(fields));
}

}  // namespace tenon
