// Interface of datasets whose images a device can decode and augment itself.
#pragma once

#include <cstdint>

#include "device/image_job.h"

namespace tenon::data {

class ImageJobs {
 public:
  virtual ~ImageJobs() = default;
  /// Whether a device is to change them, and to decode them too.
  virtual bool for_device() const = 0;
  virtual bool device_decodes() const = 0;
  /// The image of a sample as training sees it in an epoch, and its label. `decoded`: as pixels
  /// in any case. Any thread may call it; throws as Dataset::get().
  virtual ImageJob job(std::int64_t index, std::uint64_t seed, std::int64_t epoch, bool decoded,
                       std::int64_t& label) const = 0;
};

}  // namespace tenon::data
