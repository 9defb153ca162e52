// Fuzzes the reader of NumPy array files.
#include "io/tensors/npy.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(
      data, size, [](std::string_view bytes) { tenon::io::parse_npy(bytes, "input"); });
}
