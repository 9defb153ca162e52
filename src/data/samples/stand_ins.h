// Interface of datasets with samples that may turn out to be unreadable: broken images.
#pragma once

namespace tenon::data {

class StandIns {
 public:
  virtual ~StandIns() = default;
  /// True: the next sample that can be read stands in for one that Provenance::broken() names.
  /// False: such a sample has the target kIgnoredTarget.
  virtual bool replaces_broken() const = 0;
};

}  // namespace tenon::data
