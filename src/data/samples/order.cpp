// Shuffling with integer arithmetic only, so results are equal on all machines.
#include "data/samples/order.h"

#include <numeric>
#include <utility>

#include "base/philox.h"

namespace tenon::data {
namespace {

__extension__ using Wide = unsigned __int128;

// Maps 64 random bits to [0, count); the bias is below count / 2^64.
std::int64_t below(std::uint64_t word, std::int64_t count) {
  return static_cast<std::int64_t>(
      static_cast<std::uint64_t>((static_cast<Wide>(word) * static_cast<Wide>(count)) >> 64));
}

}  // namespace

std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t size) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  Philox4 block{};
  for (std::int64_t i = size - 1, drawn = 0; i > 0; --i, ++drawn) {
    if (drawn % 2 == 0)
      block =
          philox(seed, static_cast<std::uint64_t>(drawn / 2), static_cast<std::uint64_t>(epoch));
    const std::size_t half = drawn % 2 == 0 ? 0 : 2;
    const std::uint64_t word = static_cast<std::uint64_t>(block.v[half]) << 32 | block.v[half + 1];
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(below(word, i + 1))]);
  }
  return order;
}

}  // namespace tenon::data
