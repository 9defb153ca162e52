// Paths of steps that run in bands of rows: each hands on what only the next one reads.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/merge/bands.h"
#include "plan/merge/merge.h"

namespace tenon {

struct BandPath {
  std::vector<int> steps;  // in order; empty: none, `why` says why where there is anything to say
  std::vector<Region> parts;   // of each step
  std::vector<ValueId> local;  // what they hand on
  std::int64_t entries = 0;    // images
  std::int64_t rows = 0;       // of the last one's result
  std::int64_t band = 0;       // of those at a time
  std::int64_t handed = 0;     // bytes of an image that are met again in cache
  std::string why;
};

/// The path through a large value whose bands save most, by the model of the host (CpuModel).
/// `is_free`: whether the step may become a member.
BandPath find_bands(Merger& merger, const Engine& chains, ValueId through,
                    const std::function<bool(int)>& is_free);

}  // namespace tenon
