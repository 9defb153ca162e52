// Augmentation of in-memory training images, per sample and epoch.
#pragma once

#include <cstdint>
#include <span>

#include <tenon/data.h>

namespace tenon::data {

/// Changes images [C, H, W] of bytes that lie one after another, in place. What is drawn depends
/// on (seed, epoch, number of the sample) alone. `blank` fills what cutout takes out.
void augment(const Augmentation& how, std::uint64_t seed, std::int64_t epoch,
             std::span<const std::int64_t> numbers, const Shape& image, std::uint8_t blank,
             std::uint8_t* images);

}  // namespace tenon::data
