// Interface of datasets with samples that may turn out to be unreadable: broken images.
#pragma once

#include <cstdint>

namespace tenon::data {

class StandIns {
 public:
  virtual ~StandIns() = default;
  /// True: the next sample that can be read stands in for one that Provenance::broken() names.
  /// False: such a sample has the target kIgnoredTarget.
  virtual bool replaces_broken() const = 0;
  /// Whether Provenance::broken() names this sample. It may once the sample was read. Thread-safe.
  virtual bool is_broken(std::int64_t index) const = 0;
};

}  // namespace tenon::data
