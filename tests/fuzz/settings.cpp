// Fuzzes the reader of a run's settings (TOML).
#include <string>

#include "fuzz/fuzz.h"
#include "train/settings/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    tenon::train::parse_settings(std::string(bytes), "input");
  });
}
