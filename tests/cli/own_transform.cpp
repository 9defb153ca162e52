// A command with a user's transform: linked with the objects of bin/tenon for
// test_own_transform.py, as -DTENON_COMMAND_SOURCES links such a file into the command.
#include <cstdint>
#include <vector>

#include <tenon/images.h>
#include <tenon/sample_random.h>

namespace {

using namespace tenon;

const bool registered = [] {
  data::register_transform(
      {.name = "speckle",
       .about = "set COUNT random pixels to white with probability CHANCE",
       .parameters = {{.name = "COUNT", .usual = 20, .low = 0, .high = 1000},
                      {.name = "CHANCE", .usual = 1, .low = 0, .high = 1}},
       .make = [](const std::vector<double>& values) -> data::ImageFunction {
         return [values](io::Image image, data::SampleRandom& random) {
           if (!random.chance(values[1])) return image;
           for (int k = 0; k < static_cast<int>(values[0]); ++k)
             image.pixels[static_cast<std::size_t>(random.below(std::ssize(image.pixels)))] = 255;
           return image;
         };
       }});
  return true;
}();

}  // namespace
