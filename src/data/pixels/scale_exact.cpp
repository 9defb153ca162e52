// One loop that the compiler vectorises, in a file of its own because of its compile flags.
#include "data/pixels/scale.h"

#include "base/index.h"

namespace tenon::data {
namespace {

void scale_bytes(const std::uint8_t* __restrict in, std::int64_t count, float factor, float offset,
                 float* __restrict out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]) * factor + offset;
}

}  // namespace

void scale_samples(const std::uint8_t* in, std::int64_t count, const Shape& sample,
                   std::span<const double> mean, std::span<const double> deviation, float* out) {
  const std::int64_t channels = std::ssize(mean), numbers = count * sample.numel();
  if (numbers == 0) return;
  const std::int64_t plane =
      channels == 1 ? numbers : sample[sample.rank() - 1] * sample[sample.rank() - 2];
  for (std::int64_t k = 0; k < numbers / plane; ++k) {
    const std::size_t c = at(k % channels);
    scale_bytes(in + k * plane, plane, static_cast<float>(1.0 / (255.0 * deviation[c])),
                static_cast<float>(-mean[c] / deviation[c]), out + k * plane);
  }
}

}  // namespace tenon::data
