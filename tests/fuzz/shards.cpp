// Fuzzes tar shards of images: their index, and each image as a sample of 8 x 8 pixels.
#include <tenon/images.h>

#include <vector>

#include "fuzz/file.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::data;
  static const tenon::fuzz::File file("shard.tar");
  return tenon::fuzz::refuse_or_read(data, size, [&](std::string_view bytes) {
    file.write(bytes);
    ImageOptions how;
    how.input = {3, 8, 8};
    how.broken_left_out = true;
    const auto set =
        image_dataset(open_image_shards(file.path(), Split::Train, {.whole = true}), how);
    std::vector<std::uint8_t> input(3 * 8 * 8);
    for (std::int64_t k = 0; k < set->size(); ++k) {
      std::int64_t label = 0;
      set->get({&k, 1}, input.data(), &label);
      if (label >= set->classes()) __builtin_trap();
    }
  });
}
