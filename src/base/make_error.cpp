// Joins the parts of texts and messages, and sets the fields of an error from typed parts.
#include "base/make_error.h"

#include <charconv>
#include <system_error>

namespace tenon {
namespace {

template <class T>
void append_number(std::string& out, T value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  out.append(text, end.ptr);
}

// Shortest form. A float is not printed as a double, whose shortest form is longer (0.1, not
// 0.10000000149011612).
template <class T>
void append_real(std::string& out, T value) {
  if (value != value) {  // a NaN has no meaningful sign
    out += "nan";
  } else {
    append_number(out, value);
  }
}

void append(std::string& out, const Scalar& value) {
  if (value.is_whole()) {
    append_number(out, value.whole());
  } else {
    append_real(out, value.real());
  }
}

void append(std::string& out, const OpPlace& place) {
  out += place.operation;
  if (!place.layer.empty()) out += (out.empty() ? "(" : " (") + place.layer + ")";
}

// Returns whether fields.shapes is complete.
bool record(ErrorFields& fields, const OpPlace& place) {
  if (!fields.operation.empty() || !fields.layer.empty()) return false;
  fields.operation = place.operation;
  fields.layer = place.layer;
  fields.shapes = place.operands;
  return !place.operands.empty();
}

// The letters are those of TextPart. `fields` may be null.
std::string join(const char* kinds, std::va_list parts, ErrorFields* fields) {
  std::string out;
  bool knows_operands = false;
  for (; *kinds != '\0'; ++kinds) {
    switch (*kinds) {
      case 's':
        out += va_arg(parts, const char*);
        break;
      case 'S':
        out += *va_arg(parts, const std::string*);
        break;
      case 'v':
        out += *va_arg(parts, const std::string_view*);
        break;
      case 'c':
        out += static_cast<char>(va_arg(parts, int));
        break;
      case 'i':
        append_number(out, va_arg(parts, int));
        break;
      case 'u':
        append_number(out, va_arg(parts, unsigned));
        break;
      case 'l':
        append_number(out, va_arg(parts, std::int64_t));
        break;
      case 'm':
        append_number(out, va_arg(parts, std::uint64_t));
        break;
      case 'd':
        append_real(out, va_arg(parts, double));
        break;
      case 'f':
        append_real(out, static_cast<float>(va_arg(parts, double)));
        break;
      case 'n':
        append(out, *va_arg(parts, const Scalar*));
        break;
      case 't':
        out += name(static_cast<DType>(va_arg(parts, int)));
        break;
      case 'h': {
        const Shape& shape = *va_arg(parts, const Shape*);
        out += shape.str();
        if (fields != nullptr && !knows_operands) fields->shapes.push_back(shape);
        break;
      }
      case 'o': {
        const OpPlace& place = *va_arg(parts, const OpPlace*);
        append(out, place);
        if (fields != nullptr) knows_operands |= record(*fields, place);
        break;
      }
      case 'F': {
        const std::string_view file = va_arg(parts, const FileName*)->name;
        out += file;
        if (fields != nullptr && fields->file.empty()) fields->file = file;
        break;
      }
      default: {  // 'L'
        const std::int64_t line = va_arg(parts, std::int64_t);
        append_number(out, line);
        if (fields != nullptr && fields->line == 0) fields->line = line;
      }
    }
  }
  return out;
}

}  // namespace

std::string join_parts(const char* kinds, ...) {
  std::va_list parts;
  va_start(parts, kinds);
  std::string out = join(kinds, parts, nullptr);
  va_end(parts);
  return out;
}

std::string join_message(ErrorFields& fields, const char* kinds, std::va_list parts) {
  return join(kinds, parts, &fields);
}

namespace {

// Throws an E with this message if the error is one.
template <class E>
void throw_as(const Error& error, const std::string& message, const ErrorFields& fields) {
  if (dynamic_cast<const E*>(&error) != nullptr) throw E(message, fields);
}

}  // namespace

void rethrow_named(const Error& error, const OpPlace& place) {
  if (!error.operation().empty()) throw;
  ErrorFields fields = error.fields();
  fields.operation = place.operation;
  fields.layer = place.layer;
  const std::string message = cat(place, ": ", error.what());
  throw_as<ShapeError>(error, message, fields);
  throw_as<DTypeError>(error, message, fields);
  throw_as<ValueError>(error, message, fields);
  throw_as<DeviceError>(error, message, fields);
  throw_as<MemoryError>(error, message, fields);
  throw_as<FormatError>(error, message, fields);
  throw_as<IoError>(error, message, fields);
  throw_as<NotSupported>(error, message, fields);
  throw_as<NumericError>(error, message, fields);
  throw_as<InternalError>(error, message, fields);
  throw Error(message, fields);
}

}  // namespace tenon
