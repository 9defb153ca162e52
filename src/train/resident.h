// A training set in GPU memory. Batches are gathered there by sample number, so a step copies only
// the numbers from the host.
#pragma once

#include <optional>
#include <vector>

#include <tenon/data.h>

namespace tenon::train {

/// Bytes that become factor * x + offset on the device, as the loader scales on the host.
struct PixelScale {
  std::vector<float> factor, offset;  // for all, or one for each channel of [N, C, H, W]; or none
  Tensor operator()(const Tensor& stored) const;
};
/// None where the loader does not scale.
PixelScale pixel_scale(const data::Loader& loader);

struct ResidentSet {
  Tensor inputs, targets;  // as the set stores them: [N, …]
  PixelScale scale;

  /// The samples with these numbers (int64[B]) as the network takes them.
  Tensor input(const Tensor& numbers) const;
  Tensor target(const Tensor& numbers) const;
};

/// The shape of so many samples or targets.
Shape with_count(std::int64_t count, const Shape& shape);

/// The loader's set on the default device; none on the CPU, and for sets that are not in memory or
/// would take too much of the GPU's.
std::optional<ResidentSet> resident_set(const data::Loader& loader);

}  // namespace tenon::train
