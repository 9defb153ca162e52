// The order of samples in an epoch: a permutation that depends on (seed, epoch, size) alone.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::data {

/// Permutation of 0 … size-1 by Fisher-Yates with Philox numbers: the same on every machine.
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t size);

}  // namespace tenon::data
