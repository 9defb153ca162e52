// The JSON parser (RFC 8259), and the tree built from its events.
//
// The parser does not recurse, so the event handler limits the depth. A byte order mark before the
// text is skipped. Strings must be UTF-8.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/digit.h"
#include "base/str.h"
#include "io/text/encoding.h"
#include "io/text/json.h"

namespace tenon::io {
namespace {

class JsonParser {
 public:
  JsonParser(std::string_view text, JsonSax& events) : text_(text), events_(events) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  bool run() {
    for (;;) {
      if (!value()) return false;
      if (opened_) continue;
      while (!open_.empty()) {
        const char next = peek_behind_space();
        if (next == ',') {
          ++at_;
          if (open_.back() == '}' && !key()) return false;
          break;
        }
        if (next != open_.back())
          return fail(open_.back() == '}' ? "',' or '}' is missing" : "',' or ']' is missing");
        if (!close()) return false;
      }
      if (!open_.empty()) continue;
      (void)peek_behind_space();
      return at_ == text_.size() || fail("text follows the value");
    }
  }

 private:
  bool fail(const char* why) { return events_.parse_error(at_ + 1, why) && false; }

  // '\0' at the end: it is not valid JSON outside strings, so it cannot be confused with text.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char peek_behind_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || (text_[at_] >= '\t' && text_[at_] <= '\r' &&
                                                        text_[at_] != '\v' && text_[at_] != '\f')))
      ++at_;
    return peek();
  }

  // Reads a scalar, or the start of an array or object; the latter sets opened_.
  bool value() {
    opened_ = false;
    const char first = peek_behind_space();
    switch (first) {
      case '{':
        if (!events_.start_object()) return false;
        return open('}') && (!opened_ || key());
      case '[':
        return events_.start_array() && open(']');
      case '"':
        return string() && events_.string(string_);
      case 't':
        return word("true") && events_.boolean(true);
      case 'f':
        return word("false") && events_.boolean(false);
      case 'n':
        return word("null") && events_.null();
      default:
        return first == '-' || is_digit(first) ? number() : fail("a value is missing");
    }
  }
  bool open(char end) {
    ++at_;
    open_.push_back(end);
    opened_ = peek_behind_space() != end;
    return opened_ || close();
  }
  bool close() {
    ++at_;
    const bool is_object = open_.back() == '}';
    open_.pop_back();
    return is_object ? events_.end_object() : events_.end_array();
  }
  bool key() {
    if (peek_behind_space() != '"') return fail("a key is missing");
    if (!string() || !events_.key(string_)) return false;
    if (peek_behind_space() != ':') return fail("':' is missing");
    ++at_;
    return true;
  }
  bool word(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return fail("a value is missing");
    at_ += wanted.size();
    return true;
  }

  // Reads a string into string_.
  bool string() {
    string_.clear();
    const std::size_t begin = ++at_;
    for (;;) {
      const std::size_t from = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20)
        ++at_;
      string_.append(text_, from, at_ - from);
      if (at_ == text_.size()) return fail("a string does not end");
      if (text_[at_] == '"') break;
      if (text_[at_] != '\\') return fail("a string contains a control character");
      ++at_;
      if (!escape()) return false;
    }
    if (not_utf8(string_) != std::string::npos) {
      at_ = begin;
      return fail("a string is not UTF-8");
    }
    ++at_;
    return true;
  }
  bool escape() {
    static constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const char letter = peek();
    if (const std::size_t k = letters.find(letter); k != std::string_view::npos) {
      ++at_;
      string_ += meant[k];
      return true;
    }
    std::uint32_t code = 0, low = 0;
    if (!unit(code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      if (text_.substr(at_, 1) != "\\") return fail("half of a surrogate pair is missing");
      ++at_;
      if (!unit(low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return fail("half of a surrogate pair is missing");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
      return fail("half of a surrogate pair is missing");
    }
    append(code);
    return true;
  }
  // Reads uXXXX.
  bool unit(std::uint32_t& code) {
    if (at_ + 5 > text_.size() || text_[at_] != 'u') return fail("an escape is unknown");
    const char* digits = text_.data() + at_ + 1;
    const auto end = std::from_chars(digits, digits + 4, code, 16);
    if (end.ptr != digits + 4) return fail("an escape is unknown");
    at_ += 5;
    return true;
  }
  void append(std::uint32_t code) {
    const auto more = [&](int shift) {
      string_ += static_cast<char>(0x80 | ((code >> shift) & 63));
    };
    if (code < 0x80) {
      string_ += static_cast<char>(code);
    } else if (code < 0x800) {
      string_ += static_cast<char>(0xC0 | (code >> 6));
      more(0);
    } else if (code < 0x10000) {
      string_ += static_cast<char>(0xE0 | (code >> 12));
      more(6), more(0);
    } else {
      string_ += static_cast<char>(0xF0 | (code >> 18));
      more(12), more(6), more(0);
    }
  }

  std::size_t digits() {
    const std::size_t from = at_;
    while (is_digit(peek())) ++at_;
    return at_ - from;
  }
  bool number() {
    const std::size_t from = at_;
    const bool negative = peek() == '-';
    if (negative) ++at_;
    const bool zero = peek() == '0';
    const std::size_t whole = digits();
    if (whole == 0 || (zero && whole > 1)) return fail("a number is malformed");
    bool real = false;
    std::int64_t power = zero ? 0 : static_cast<std::int64_t>(whole);
    if (peek() == '.') {
      real = true;
      ++at_;
      const std::size_t first = at_;
      if (digits() == 0) return fail("a number is malformed");
      if (zero)
        power = static_cast<std::int64_t>(first) -
                static_cast<std::int64_t>(std::min(text_.find_first_not_of('0', first), at_));
    }
    if (peek() == 'e' || peek() == 'E') {
      real = true;
      ++at_;
      const bool below = peek() == '-';
      if (below || peek() == '+') ++at_;
      const std::size_t first = at_;
      if (digits() == 0) return fail("a number is malformed");
      std::int64_t exponent = 0;
      if (std::from_chars(text_.data() + first, text_.data() + at_, exponent).ec != std::errc())
        exponent = std::int64_t{1} << 40;
      power += below ? -exponent : exponent;
    }
    const char *begin = text_.data() + from, *end = text_.data() + at_;
    std::int64_t below = 0;
    std::uint64_t natural = 0;
    if (!real && negative && std::from_chars(begin, end, below).ec == std::errc())
      return below < 0 ? events_.number_integer(below) : events_.number_unsigned(0);
    if (!real && !negative && std::from_chars(begin, end, natural).ec == std::errc())
      return events_.number_unsigned(natural);
    double value = 0;
    if (std::from_chars(begin, end, value).ec == std::errc()) return events_.number_float(value);
    // The value is about 10^power and out of range: too large for a double, or rounded to 0.
    return power > 0 ? fail("a number is too large") : events_.number_float(negative ? -0.0 : 0.0);
  }

  std::string_view text_;
  JsonSax& events_;
  std::size_t at_ = 0;
  bool opened_ = false;
  std::string open_;  // closing character of each open array or object
  std::string string_;
};

constexpr std::size_t kDeepestJson = 512;  // copying, comparing and destroying recurse

}  // namespace

class JsonBuilder final : public JsonSax {
 public:
  explicit JsonBuilder(Json& root) : root_(root) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool start_object() override { return open(Json::object()); }
  bool start_array() override { return open(Json::array()); }
  bool key(std::string& text) override {
    key_ = std::move(text);
    return true;
  }
  bool end_object() override {
    join_repeated(std::get<Json::Object>(open_.back()->value_));
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const char* why) override {
    throw Json::parse_error(cat("not JSON at byte ", position, ": ", why));
  }

 private:
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() == kDeepestJson) throw Json::parse_error("JSON nests deeper than 512");
    open_.push_back(place(std::move(value)));
    return true;
  }
  // The pointer stays valid until the enclosing value is closed.
  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (auto* items = std::get_if<Json::Array>(&parent.value_))
      return &items->emplace_back(std::move(value));
    auto& members = std::get<Json::Object>(parent.value_);
    return &members.emplace_back(std::move(key_), std::move(value)).second;
  }
  // If a key is repeated, the first member keeps its position and gets the last value. This is done
  // once, when the object ends: comparing each key with all earlier keys took eight minutes for an
  // object of 300,000 keys.
  static void join_repeated(Json::Object& members) {
    std::unordered_map<std::string_view, std::size_t> first;
    first.reserve(members.size());
    bool repeated = false;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto [known, is_new] = first.emplace(members[i].first, i);
      if (is_new) continue;
      repeated = true;
      members[known->second].second = std::move(members[i].second);
    }
    if (!repeated) return;
    Json::Object kept;
    kept.reserve(first.size());
    for (std::size_t i = 0; i < members.size(); ++i)
      if (first.at(members[i].first) == i)
        kept.emplace_back(members[i].first, std::move(members[i].second));
    members = std::move(kept);
  }

  Json& root_;
  std::vector<Json*> open_;
  std::string key_;
};

bool sax_parse(std::string_view text, JsonSax& events) { return JsonParser(text, events).run(); }

Json parse_json(std::string_view text) {
  Json out;
  JsonBuilder builder(out);
  sax_parse(text, builder);
  return out;
}

Json parse_json_or_discard(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const Json::exception&) {
    return Json::discarded();
  }
}

}  // namespace tenon::io
