// Fuzzes what the first bytes of a file of weights may lead to beside PyTorch's and safetensors:
// the first byte chooses GGUF, an archive of arrays as it is, one around these bytes, or an index
// of parts, whose parts are these bytes' safetensors.
#include "fuzz/fuzz.h"
#include "io/weight_table.h"
#include "io/zip.h"

namespace {

void read_values(const tenon::io::WeightTable& table) {
  for (const auto& value : table.values) value();
}

std::string archive_of(std::string_view array) {
  tenon::io::ZipWriter zip;
  zip.add("w.npy", {array});
  std::string out;
  for (const std::string_view piece : zip.finish()) out += piece;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  return tenon::fuzz::refuse_or_read(data + 1, size - 1, [&](std::string_view bytes) {
    using namespace tenon::io;
    switch (data[0] % 4) {
      case 0:
        return read_values(read_gguf(bytes, "input"));
      case 1:
        return read_values(read_npz(bytes, "input"));
      case 2:
        return read_values(read_npz(archive_of(bytes), "input"));
      default:
        try {
          read_weight_parts(bytes, "/nowhere/input",
                            [](std::string_view, const std::string&) { return WeightTable(); });
        } catch (const tenon::IoError&) {
        }
    }
  });
}
