// Fuzzes network files: the text, its expressions, and building the described network.
#include <tenon/models.h>

#include <string>

#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    (void)tenon::models::info(tenon::models::NetworkFile{"input", std::string(bytes)});
  });
}
