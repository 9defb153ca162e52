// Fuzzes the weight readers other than PyTorch's and safetensors'. The first byte chooses: GGUF, an
// archive of arrays, an archive around these bytes, an index of shards, config.json of one of the
// supported networks, or the model description in the metadata.
#include "fuzz/fuzz.h"
#include "io/archives/zip.h"
#include "io/tensors/weight_table.h"
#include "models/weights/published_config.h"
#include "train/runs/model_file.h"

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

// A name that contradicts the config is an error of the caller, not of the file.
void read_config(int network, const std::string& json) {
  constexpr const char* kNetworks[] = {"gpt2", "bert_classifier", "resnet18"};
  try {
    (void)tenon::models::parse_config(json, "input", kNetworks[network]);
  } catch (const tenon::ValueError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  return tenon::fuzz::refuse_or_read(data + 1, size - 1, [&](std::string_view bytes) {
    using namespace tenon::io;
    switch (data[0] % 8) {
      case 0:
        return read_values(read_gguf(bytes, "input"));
      case 1:
        return read_values(read_npz(bytes, "input"));
      case 2:
        return read_values(read_npz(archive_of(bytes), "input"));
      case 4:
      case 5:
      case 6:
        return read_config(data[0] % 8 - 4, std::string(bytes));
      case 7:
        (void)tenon::train::model_from_json(std::string(bytes), "input");
        return;
      default:
        try {
          read_weight_parts(bytes, "/nowhere/input",
                            [](std::string_view, const std::string&) { return WeightTable(); });
        } catch (const tenon::IoError&) {
        }
    }
  });
}
