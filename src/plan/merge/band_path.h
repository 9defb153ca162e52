// Paths of steps that run in bands of rows: each step's result is read by the next step only. Cost
// model only; the geometry of bands is in bands.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/merge/bands.h"
#include "plan/merge/merge.h"

namespace tenon {

struct BandPath {
  std::vector<int> steps;      // in order; empty: there is no path, and `why` may say the reason
  std::vector<Region> parts;   // one for each step
  std::vector<ValueId> local;  // intermediate values between the steps
  std::int64_t entries = 0;    // images
  std::int64_t rows = 0;       // rows of the last step's result
  std::int64_t band = 0;       // rows of that result computed at a time
  std::int64_t handed = 0;     // bytes per image that are read again from cache
  std::string why;
};

/// The path through a large value whose bands save most, by the model of the host (CpuModel).
/// `is_free`: whether a step may become a member.
BandPath find_bands(Merger& merger, const Engine& chains, ValueId through,
                    const std::function<bool(int)>& is_free);

}  // namespace tenon
