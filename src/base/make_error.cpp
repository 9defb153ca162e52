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

// Notes the fields of an error while the parts of its message are joined. The first place, file and
// line of a message are the error's. A place that knows the operands lists all shapes.
class FieldNotes {
 public:
  explicit FieldNotes(ErrorFields* fields) : fields_(fields) {}

  const Shape& note(const Shape& shape) {
    if (fields_ != nullptr && !knows_operands_) fields_->shapes.push_back(shape);
    return shape;
  }
  const OpPlace& note(const OpPlace& place) {
    if (fields_ == nullptr || !fields_->operation.empty() || !fields_->layer.empty()) return place;
    fields_->operation = place.operation;
    fields_->layer = place.layer;
    fields_->shapes = place.operands;
    knows_operands_ = !place.operands.empty();
    return place;
  }
  std::string_view note_file(std::string_view file) {
    if (fields_ != nullptr && fields_->file.empty()) fields_->file = file;
    return file;
  }
  std::int64_t note_line(std::int64_t line) {
    if (fields_ != nullptr && fields_->line == 0) fields_->line = line;
    return line;
  }

 private:
  ErrorFields* fields_;  // null: the text is no error's
  bool knows_operands_ = false;
};

// The letters are those of TextPart. `fields` may be null.
std::string join(const char* kinds, std::va_list parts, ErrorFields* fields) {
  std::string out;
  FieldNotes notes(fields);
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
      case 'h':
        out += notes.note(*va_arg(parts, const Shape*)).str();
        break;
      case 'o':
        append(out, notes.note(*va_arg(parts, const OpPlace*)));
        break;
      case 'F':
        out += notes.note_file(va_arg(parts, const FileName*)->name);
        break;
      default:  // 'L'
        append_number(out, notes.note_line(va_arg(parts, std::int64_t)));
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
