// A training set in GPU memory. Batches are gathered there by sample number, so a step copies only
// the numbers from the host.
#pragma once

#include <optional>
#include <vector>

#include <tenon/data.h>

namespace tenon::train {

/// Scales bytes on the device: factor * x + offset, like the loader on the host.
struct PixelScale {
  std::vector<float> factor,
      offset;  // one for all channels, one per channel of [N, C, H, W], or none
  Tensor operator()(const Tensor& stored) const;
};
/// None if the loader does not scale.
PixelScale pixel_scale(const data::Loader& loader);

struct ResidentSet {
  Tensor inputs, targets;  // as the dataset stores them: [N, …]
  PixelScale scale;

  /// The samples with these numbers (int64[B]), as network inputs.
  Tensor input(const Tensor& numbers) const;
  Tensor target(const Tensor& numbers) const;
};

/// The shape of `count` samples or targets.
Shape with_count(std::int64_t count, const Shape& shape);

/// The loader's dataset on the default device. None on the CPU, for datasets that are not in
/// memory, and for datasets that would take too much GPU memory.
std::optional<ResidentSet> resident_set(const data::Loader& loader);

}  // namespace tenon::train
