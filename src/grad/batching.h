// Maps a graph over a batch: the graph of one sample becomes the graph of all samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tenon/vmap.h>

namespace tenon {

/// Values for the placeholders of one sample.
struct Batch {
  std::vector<Tensor> samples;  // placeholders
  std::vector<Tensor> stacks;   // their values for all samples, along a new first axis
  std::int64_t size = 0;        // number of samples
  // How to map random draws. It applies to draws that were built after the time `since` of the
  // graph's clock.
  Randomness randomness = Randomness::Same;
  std::uint64_t since = 0;
};

/// The results, computed from placeholders for one sample, for all samples: along a new first axis.
/// Throws NotSupported for an operation that cannot be mapped.
std::vector<Tensor> mapped(std::span<const Tensor> results, const Batch& batch);

}  // namespace tenon
