// Interface of datasets whose images a device can decode and augment itself.
#pragma once

#include <cstdint>

#include "device/image_job.h"

namespace tenon::data {

class ImageJobs {
 public:
  virtual ~ImageJobs() = default;
  /// Whether a device should augment the images, and whether it should decode them.
  virtual bool for_device() const = 0;
  virtual bool device_decodes() const = 0;
  /// The augmented training image of a sample in an epoch, and its label. `decoded`: always as
  /// pixels. Thread-safe; throws like Dataset::get().
  virtual ImageJob job(std::int64_t index, std::uint64_t seed, std::int64_t epoch, bool decoded,
                       std::int64_t& label) const = 0;
};

}  // namespace tenon::data
