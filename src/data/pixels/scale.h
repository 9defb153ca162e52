// Converts bytes to floats: the scaling of images to network inputs.
#pragma once

#include <cstdint>

namespace tenon::data {

/// out[i] = in[i] * factor + offset, in float32 and without fused multiply-add: the same bits on
/// every machine.
void scale_bytes(const std::uint8_t* in, std::int64_t count, float factor, float offset,
                 float* out);

}  // namespace tenon::data
