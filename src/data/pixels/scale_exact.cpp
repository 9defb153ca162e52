// One loop that the compiler vectorises, in a file of its own because of its compile flags.
#include "data/pixels/scale.h"

namespace tenon::data {

void scale_bytes(const std::uint8_t* __restrict in, std::int64_t count, float factor, float offset,
                 float* __restrict out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]) * factor + offset;
}

}  // namespace tenon::data
