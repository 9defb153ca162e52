// Fuzzes the reader of saved programs: the record of a graph, with two tensors in the file. The
// container itself is fuzzed as safetensors.
#include <tenon/ops.h>

#include "fuzz/fuzz.h"
#include "programs/program_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto* const tensors = new tenon::io::TensorMap{
      {"w", tenon::zeros({3, 2}).compute()}, {"k", tenon::zeros({4, 1, 3, 3}).compute()}};
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    (void)tenon::program_of_graph(std::string(bytes), *tensors, "input");
  });
}
