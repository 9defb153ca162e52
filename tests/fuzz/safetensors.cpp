// Fuzzes the readers of safetensors files: as Tenon's own files, and as weight files with unknown
// element types.
#include "io/tensors/safetensors.h"
#include "fuzz/fuzz.h"
#include "io/tensors/weight_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    const tenon::io::WeightTable table = tenon::io::table_of_safetensors(bytes, "input");
    for (const auto& value : table.values) value();
  });
  return tenon::fuzz::refuse_or_read(
      data, size, [](std::string_view bytes) { tenon::io::parse_safetensors(bytes, "input"); });
}
