// Fuzzes the unpacking of gzip members. The limit keeps decompression bombs within the fuzzer's
// memory.
#include "fuzz/fuzz.h"
#include "io/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(
      data, size, [](std::string_view bytes) { tenon::io::gunzip(bytes, "input", 1u << 20); });
}
