// JSON values: access with checked kinds, and printing.
#include "io/text/json.h"

#include <charconv>
#include <cmath>

#include "base/str.h"
#include "io/text/encoding.h"

namespace tenon::io {

Json::Json(Array items) noexcept : value_(std::move(items)) {}
Json::Json(const std::map<std::string, std::string>& members) : value_(Object()) {
  auto& object = std::get<Object>(value_);
  object.reserve(members.size());
  for (const auto& [key, text] : members) object.emplace_back(key, text);
}
// The variant's own copy constructor is not used: if its allocation throws, libstdc++ 12 destroys
// an alternative that was never constructed.
Json::Json(const Json& other) {
  std::visit(
      [this](const auto& value) {
        auto copy = value;
        value_ = std::move(copy);
      },
      other.value_);
}
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json& other) { return *this = Json(other); }
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::array() { return Json(Array()); }
Json Json::object() {
  Json out;
  out.value_.emplace<Object>();
  return out;
}
Json Json::discarded() {
  Json out;
  out.value_.emplace<Discarded>();
  return out;
}

void Json::wrong_kind(const char* wanted) const {
  static constexpr const char* kinds[] = {"null",           "discarded",      "true or false",
                                          "a whole number", "a whole number", "a real number",
                                          "a string",       "an array",       "an object"};
  throw type_error(cat("JSON has ", kinds[value_.index()], " where ", wanted, " was expected"));
}

bool Json::truth() const {
  if (!is_boolean()) wrong_kind("true or false");
  return std::get<bool>(value_);
}

double Json::number() const {
  if (const auto* below = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*below);
  if (const auto* whole = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*whole);
  if (!is<double>()) wrong_kind("a number");
  return std::get<double>(value_);
}

// A value above 2^63 - 1 is returned as the bits of the unsigned number.
std::int64_t Json::whole(std::int64_t least, std::uint64_t most) const {
  if (!is_number_integer()) wrong_kind("a whole number");
  const auto* below = std::get_if<std::int64_t>(&value_);
  if (below != nullptr ? *below < least : std::get<std::uint64_t>(value_) > most)
    throw out_of_range("JSON has a whole number that is out of range");
  return below != nullptr ? *below : static_cast<std::int64_t>(std::get<std::uint64_t>(value_));
}

const std::string& Json::text() const {
  if (!is_string()) wrong_kind("a string");
  return std::get<std::string>(value_);
}

const Json::Array& Json::items() const {
  if (!is_array()) wrong_kind("an array");
  return std::get<Array>(value_);
}

const Json& Json::operator[](std::size_t place) const {
  const Array& array = items();
  if (place >= array.size()) throw out_of_range(cat("a JSON array has no item ", place));
  return array[place];
}

Json& Json::append(Json item) & {
  if (is_null()) value_.emplace<Array>();
  if (!is_array()) wrong_kind("an array");
  std::get<Array>(value_).push_back(std::move(item));
  return *this;
}

const Json::Object& Json::members() const {
  if (!is_object()) wrong_kind("an object");
  return std::get<Object>(value_);
}

Json::Object& Json::open_object() {
  if (is_null()) value_.emplace<Object>();
  if (!is_object()) wrong_kind("an object");
  return std::get<Object>(value_);
}

const Json* Json::find(std::string_view key) const noexcept {
  if (const auto* object = std::get_if<Object>(&value_))
    for (const Member& member : *object)
      if (member.first == key) return &member.second;
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  (void)members();
  const Json* found = find(key);
  if (found == nullptr) throw out_of_range(cat("a JSON object has no key '", key, "'"));
  return *found;
}

Json& Json::operator[](std::string_view key) {
  Object& object = open_object();
  for (Member& member : object)
    if (member.first == key) return member.second;
  return object.emplace_back(std::string(key), Json()).second;
}

Json& Json::add(std::string key, Json value) & {
  open_object().emplace_back(std::move(key), std::move(value));
  return *this;
}

std::size_t Json::size() const noexcept {
  if (const auto* array = std::get_if<Array>(&value_)) return array->size();
  if (const auto* object = std::get_if<Object>(&value_)) return object->size();
  return is_null() ? 0 : 1;
}

bool Json::equals(const Json& other) const {
  if (is_number() && other.is_number() && (is<double>() || other.is<double>())) {
    const auto real = [](const Json& json) {
      if (const auto* below = std::get_if<std::int64_t>(&json.value_))
        return static_cast<double>(*below);
      if (const auto* whole = std::get_if<std::uint64_t>(&json.value_))
        return static_cast<double>(*whole);
      return *std::get_if<double>(&json.value_);
    };
    return real(*this) == real(other);
  }
  return value_ == other.value_;
}

// ---- Text

class JsonPrinter {
 public:
  JsonPrinter(int indent, NoUtf8 bytes) : indent_(indent), bytes_(bytes) {}

  void print(const Json& json, int depth) {
    if (json.is_array()) {
      print_all('[', ']', json.items(), depth, [&](const Json& item) { print(item, depth + 1); });
    } else if (json.is_object()) {
      print_all('{', '}', json.members(), depth, [&](const Json::Member& member) {
        print_string(member.first);
        out_ += indent_ < 0 ? ":" : ": ";
        print(member.second, depth + 1);
      });
    } else if (json.is_string()) {
      print_string(json.text());
    } else if (json.is_boolean()) {
      out_ += json.get<bool>() ? "true" : "false";
    } else if (const auto* below = std::get_if<std::int64_t>(&json.value_)) {
      out_ += std::to_string(*below);
    } else if (const auto* whole = std::get_if<std::uint64_t>(&json.value_)) {
      out_ += std::to_string(*whole);
    } else if (const auto* real = std::get_if<double>(&json.value_)) {
      print_real(*real);
    } else {
      out_ += "null";
    }
  }
  std::string take() { return std::move(out_); }

 private:
  template <class Items, class Print>
  void print_all(char open, char close, const Items& items, int depth, const Print& print) {
    out_ += open;
    bool first = true;
    for (const auto& item : items) {
      if (!std::exchange(first, false)) out_ += ',';
      new_line(depth + 1);
      print(item);
    }
    if (!items.empty()) new_line(depth);
    out_ += close;
  }
  void new_line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_) * static_cast<std::size_t>(depth), ' ');
  }

  void print_string(std::string_view text) {
    out_ += '"';
    for (std::size_t wrong; (wrong = not_utf8(text)) != std::string_view::npos;) {
      if (bytes_ == NoUtf8::Throws) throw Json::type_error("a string for JSON is not valid UTF-8");
      print_valid(text.substr(0, wrong));
      out_ += "\xEF\xBF\xBD";
      text.remove_prefix(wrong + 1);
    }
    print_valid(text);
    out_ += '"';
  }
  void print_valid(std::string_view text) {
    static constexpr char digits[] = "0123456789abcdef";
    static constexpr std::string_view escaped = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    for (const char c : text) {
      if (const std::size_t k = escaped.find(c); k != std::string_view::npos)
        (out_ += '\\') += letters[k];
      else if (static_cast<unsigned char>(c) < 0x20)
        ((out_ += "\\u00") += digits[c >> 4]) += digits[c & 15];
      else
        out_ += c;
    }
  }

  // The shortest digits that read back as the same number, such as 1.0, 0.001, 1e-05 and 1.5e+20.
  void print_real(double value) {
    if (!std::isfinite(value)) {
      out_ += "null";
      return;
    }
    char buffer[40];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
    std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
    if (text.front() == '-') {
      out_ += '-';
      text.remove_prefix(1);
    }
    const std::size_t e = text.find('e');
    std::string figures(1, text[0]);
    if (e > 2) figures += text.substr(2, e - 2);
    int power = 0;  // power of ten of the first digit
    std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(),
                    power);
    const int count = static_cast<int>(figures.size()), point = power + 1;
    const auto split = static_cast<std::size_t>(point);
    if (point < -3 || point > 15) {
      ((out_ += figures[0]) += count > 1 ? "." : "") += figures.substr(1);
      out_ += text.substr(e);
    } else if (point <= 0) {
      ((out_ += "0.").append(static_cast<std::size_t>(-point), '0')) += figures;
    } else if (count <= point) {
      (out_ += figures).append(split - figures.size(), '0') += ".0";
    } else {
      ((out_ += figures.substr(0, split)) += '.') += figures.substr(split);
    }
  }

  int indent_;
  NoUtf8 bytes_;
  std::string out_;
};

std::string json_text(const Json& json, int indent, NoUtf8 bytes) {
  JsonPrinter printer(indent, bytes);
  printer.print(json, 0);
  return printer.take();
}

}  // namespace tenon::io
