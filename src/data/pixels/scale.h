// Converts bytes to floats: the scaling of images to network inputs.
#pragma once

#include <cstdint>
#include <span>

#include <tenon/shape.h>

namespace tenon::data {

/// Samples of bytes as network inputs: (in / 255 - mean) / deviation, in float32 and without fused
/// multiply-add: the same bits on every machine. With one mean and deviation all values share them.
/// Otherwise there is one for each channel, and the last three axes of `sample` are channels,
/// height and width.
void scale_samples(const std::uint8_t* in, std::int64_t count, const Shape& sample,
                   std::span<const double> mean, std::span<const double> deviation, float* out);

}  // namespace tenon::data
