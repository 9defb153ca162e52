// Fuzzes the reader of IDX files, plain and gzip-compressed.
#include "io/tensors/idx.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    tenon::io::parse_idx(bytes, "input", {1u << 24, bytes.size() % 2 == 0});
  });
}
