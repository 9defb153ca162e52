// make_error(): joins the parts of a message as cat() does, and also stores typed parts as fields
// of the error: the operation and layer of an OpPlace, shapes, a file, a line.
#pragma once

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
inline void append_to(std::string& out, const OpPlace& place) {
  out += place.operation;
  if (!place.layer.empty()) out += (out.empty() ? "(" : " (") + place.layer + ")";
}

/// As the functions of shape.h, for the operation that is being built.
int normalize_axis(int axis, int rank, const OpPlace& what);
Shape broadcast_shapes(const Shape& a, const Shape& b, const OpPlace& what);

/// The file that a message is about.
struct FileName {
  std::string_view name;
};
inline void append_to(std::string& out, FileName file) { out += file.name; }

/// The line of the file that a message is about.
struct LineNumber {
  std::int64_t number;
};
inline void append_to(std::string& out, LineNumber line) { append_to(out, line.number); }

/// A message under construction, and the fields found in its parts so far.
struct Message {
  std::string text;
  ErrorFields fields;
  bool knows_operands = false;  // fields.shapes is complete
};
template <class T>
void append_to(Message& message, const T& part) {
  append_to(message.text, part);
}
void append_to(Message& message, const OpPlace& place);
void append_to(Message& message, const Shape& shape);
void append_to(Message& message, FileName file);
void append_to(Message& message, LineNumber line);
/// An error whose message is these parts, one after another:
/// `throw make_error<ShapeError>(where("dot"), ": vectors of ", a.shape(), " and ", b.shape());`.
template <class E, class... Parts>
E make_error(const Parts&... parts) {
  Message message;
  (append_to(message, parts), ...);
  return E(message.text, std::move(message.fields));
}

/// The same error with "FILE: " in front of its message, unless the message begins so.
template <class E>
E in_file(const std::string& file, const E& error) {
  ErrorFields fields = error.fields();
  if (fields.file.empty()) fields.file = file;
  const std::string_view what = error.what();
  return E(what.starts_with(file) ? std::string(what) : cat(file, ": ", what), std::move(fields));
}

}  // namespace tenon
