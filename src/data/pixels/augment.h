// Augmentation of in-memory training images, per sample and epoch.
#pragma once

#include <cstdint>
#include <span>

#include <tenon/data.h>

namespace tenon::data {

/// Augments uint8 images [C, H, W], stored one after another, in place. The random parameters
/// depend on (seed, epoch, sample number) only. `blank` fills the cutout area.
void augment(const Augmentation& how, std::uint64_t seed, std::int64_t epoch,
             std::span<const std::int64_t> numbers, const Shape& image, std::uint8_t blank,
             std::uint8_t* images);

}  // namespace tenon::data
