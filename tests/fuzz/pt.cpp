// Fuzzes the readers of PyTorch's files and all their values. The first byte chooses: the bytes are
// a file, or the pickle of an archive with one storage.
#include "fuzz/fuzz.h"
#include "io/archives/zip.h"
#include "io/tensors/weight_table.h"

namespace {

void read_values(std::string_view bytes) {
  const tenon::io::WeightTable table = tenon::io::read_pt(bytes, "input");
  for (const auto& value : table.values) value();
}

std::string in_archive(std::string_view pickle) {
  const std::string storage(64, '\1');
  tenon::io::ZipWriter zip;
  zip.add("a/data.pkl", {pickle});
  zip.add("a/data/0", {storage});
  std::string out;
  for (const std::string_view piece : zip.finish()) out += piece;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  return tenon::fuzz::refuse_or_read(data + 1, size - 1, [&](std::string_view bytes) {
    if (data[0] % 2 == 0) return read_values(bytes);
    read_values(in_archive(bytes));
  });
}
