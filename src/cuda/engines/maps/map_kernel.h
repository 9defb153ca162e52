// Whole kernels of map regions: assembles parts into CUDA C++ source and describes their launches.
// Nothing here needs a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuda/engines/maps/launch_text.h"
#include "cuda/engines/maps/loop_nests.h"
#include "cuda/engines/maps/print_map.h"
#include "cuda/jit/jit.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

struct PrintedMap {
  std::vector<PrintedLaunch> launches;  // in order; none for a region without elements
  std::int64_t workspace_bytes = 0;     // of the temporaries
};

/// Words of arguments that a launch on such a GPU may take.
inline std::size_t launch_words(const Target& target) {
  constexpr int kSpareBytes = 96;
  return static_cast<std::size_t>(target.launch_bytes - kSpareBytes) / 8;
}

/// `most_shared`: bytes of shared memory that a block may use.
PrintedMap print_map(const Region& region, std::span<const Value> values, std::size_t most_words,
                     std::int64_t most_shared);

/// Computes the region's needs in a shared launch. Null, or the reason why it cannot share one.
const char* share_of(const Region& region, std::span<const Value> values, LaunchShare& share);
/// Joins regions into one launch: next to one another within a phase (Region::phase), phases in
/// sequence where no block has to wait (PhaseSizes::never_waits). Without phases, as few launches
/// as can take all arguments.
PrintedMap print_together(std::span<const Region> regions, std::span<const Value> values,
                          std::size_t most_words);

/// A summary of regions in phases.
struct PhaseSizes {
  int phases = 0;                    // number of phases with work
  bool repeats_first_phase = false;  // every block computes the first phase, one row, for itself
  bool ends_last = false;            // one block, the last to end, does the last phase
  bool never_waits = true;           // whether in one launch no block waits for another
  bool fits = true;                  // whether one launch can take all arguments
};
PhaseSizes sizes_of(std::span<const LaunchPart> parts, std::size_t most_words);

}  // namespace tenon::cuda
