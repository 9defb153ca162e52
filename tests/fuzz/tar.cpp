// Fuzzes the reader of tar archives, plain and gzip-compressed.
#include "io/archives/tar.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    const std::string name = "input";
    for (tenon::io::TarReader reader(bytes, name); reader.next();)
      if (reader.path() != "skipped") reader.read(1u << 24);
  });
}
