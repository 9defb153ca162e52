// Fuzzes what resuming reads besides tensors: the checkpoint's state and the end of an incomplete
// log.
#include <string>

#include "fuzz/fuzz.h"
#include "train/runs/records.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    tenon::train::json_log_until(std::string(bytes), 100);
    tenon::train::progress_from_json(std::string(bytes), "input");
  });
}
