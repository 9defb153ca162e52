// The list of known differences from PyTorch (differences.json), each with its reason.
//
// A listed difference that does not appear is an error, and so is an unlisted one that appears.
#pragma once

#include <string>
#include <vector>

#include "conformance/compare.h"

namespace conformance {

/// Empty fields match everything.
struct Difference {
  std::string what, where, device, reason;  // `where`: a part of the sample's id
  std::string shows;                        // a part of the printed difference or error
  std::vector<std::string> ops, dtypes;
  bool whole = false;       // appears only in the full set, not in the committed part
  int met = 0, failed = 0;  // matching results, and those that differed
};

class Differences {
 public:
  explicit Differences(const std::string& path);
  /// Records a result; `problem` is "" if it agrees. Returns true if its difference is listed.
  bool note(const std::string& op, const std::string& id, const std::string& dtype,
            const std::string& device, What what, const std::string& problem);
  /// Listed differences that never appeared, as text; unless `whole`, without those of the full
  /// set.
  std::vector<std::string> stale(bool whole) const;

 private:
  std::vector<Difference> list_;
};

}  // namespace conformance
