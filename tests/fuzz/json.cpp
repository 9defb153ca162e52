// Fuzzes the JSON parser and printer. The parser must accept the texts that nlohmann's accepts,
// with the same values, and the printed text must be read back as the same value.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "io/text/json.h"

namespace {

using tenon::io::Json;

struct Accepts final : tenon::io::JsonSax {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t value) override {
    if (value >= 0) std::abort();
    return true;
  }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double) override { return true; }
  bool string(std::string&) override { return true; }
  bool start_object() override { return true; }
  bool key(std::string&) override { return true; }
  bool end_object() override { return true; }
  bool start_array() override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const char*) override { return false; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    Accepts events;
    const bool is_json = tenon::io::sax_parse(bytes, events);
    // nlohmann's parser treats a zero byte as the end of the text.
    const bool comparable = bytes.find('\0') == std::string_view::npos;
    if (comparable && is_json != nlohmann::ordered_json::accept(bytes)) std::abort();
    const Json json = tenon::io::parse_json_or_discard(bytes);
    if (json.is_discarded()) return;  // not JSON, or too deep
    if (!is_json) std::abort();
    if (comparable && json != tenon::io::parse_json(nlohmann::ordered_json::parse(bytes).dump()))
      std::abort();
    for (const int indent : {-1, 1})
      if (json != tenon::io::parse_json(tenon::io::json_text(json, indent))) std::abort();
    const Json copy = json;
    if (copy != json) std::abort();
  });
}
