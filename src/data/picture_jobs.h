// Sets whose pictures a device may decode and change by itself.
#pragma once

#include <cstdint>

#include "device/picture_job.h"

namespace tenon::data {

class PictureJobs {
 public:
  virtual ~PictureJobs() = default;
  /// Whether a device is to change them, and to decode them too.
  virtual bool for_device() const = 0;
  virtual bool device_decodes() const = 0;
  /// The picture of an example as training sees it in an epoch, and its label. `decoded`: as pixels
  /// in any case. Any thread may call it; throws as Dataset::get().
  virtual PictureJob job(std::int64_t index, std::uint64_t seed, std::int64_t epoch, bool decoded,
                         std::int64_t& label) const = 0;
};

}  // namespace tenon::data
