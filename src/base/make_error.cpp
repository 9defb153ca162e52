// Sets the fields of an error from the parts of its message.
#include "base/make_error.h"

namespace tenon {

void append_to(Message& message, const OpPlace& place) {
  append_to(message.text, place);
  ErrorFields& fields = message.fields;
  if (!fields.operation.empty() || !fields.layer.empty()) return;
  fields.operation = place.operation;
  fields.layer = place.layer;
  fields.shapes = place.operands;
  message.knows_operands = !place.operands.empty();
}

void append_to(Message& message, const Shape& shape) {
  append_to(message.text, shape);
  if (!message.knows_operands) message.fields.shapes.push_back(shape);
}

void append_to(Message& message, FileName file) {
  append_to(message.text, file);
  if (message.fields.file.empty()) message.fields.file = file.name;
}

void append_to(Message& message, LineNumber line) {
  append_to(message.text, line);
  if (message.fields.line == 0) message.fields.line = line.number;
}

}  // namespace tenon
