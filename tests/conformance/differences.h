// The list of known differences from PyTorch (differences.json), each with its reason.
//
// A difference that is listed and does not show is as wrong as one that shows and is not listed.
#pragma once

#include <string>
#include <vector>

#include "conformance/compare.h"

namespace conformance {

/// Fields that are empty match everything.
struct Difference {
  std::string what, where, device, reason;  // `where`: a part of the sample's id
  std::string shows;                        // a part of what is printed, as of an error's text
  std::vector<std::string> ops, dtypes;
  bool whole = false;       // shows in the whole only, not in the committed part
  int met = 0, failed = 0;  // results that it speaks of, and those that differed
};

class Differences {
 public:
  explicit Differences(const std::string& path);
  /// Notes a result; `problem` is "" for one that agrees. True when its difference is listed.
  bool note(const std::string& op, const std::string& id, const std::string& dtype,
            const std::string& device, What what, const std::string& problem);
  /// Listed ones that were met and never differed, as text; unless `whole`, without those that show
  /// in the whole only.
  std::vector<std::string> stale(bool whole) const;

 private:
  std::vector<Difference> list_;
};

}  // namespace conformance
