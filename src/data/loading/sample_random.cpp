// Random numbers per sample: Philox, keyed by seed, epoch and sample.
#include <tenon/sample_random.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <tenon/error.h>

#include "base/philox.h"
#include "base/str.h"
#include "data/samples/sample_pieces.h"

namespace tenon::data {
namespace {

// A separate stream from those of sample orders and in-memory augmentation, which use the same
// seed.
constexpr std::uint64_t kOwnStream = 0x53616D706C65;

// One number for (epoch, sample) under the seed. Each has 2^64 counters.
std::uint64_t key_of(std::uint64_t seed, std::int64_t epoch, std::int64_t sample,
                     std::uint64_t stream) {
  const Philox4 mixed = philox(seed ^ kOwnStream ^ stream << 48, static_cast<std::uint64_t>(epoch),
                               static_cast<std::uint64_t>(sample));
  return std::uint64_t{mixed.v[0]} << 32 | mixed.v[1];
}

}  // namespace

SampleRandom::SampleRandom(std::uint64_t seed, std::int64_t epoch, std::int64_t sample,
                           std::uint64_t stream)
    : seed_(seed), key_(key_of(seed, epoch, sample, stream)) {}

SampleRandom::result_type SampleRandom::operator()() {
  if (used_ == 4) {
    const Philox4 block = philox(seed_, counter_++, key_);
    std::copy(std::begin(block.v), std::end(block.v), std::begin(words_));
    used_ = 0;
  }
  return words_[used_++];
}

double SampleRandom::uniform() {
  const std::uint64_t high = (*this)() >> 5, low = (*this)() >> 6;  // 53 bits
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

double SampleRandom::uniform(double low, double high) { return low + (high - low) * uniform(); }

// Box and Muller's method. Only one of its two numbers is used, so the counter is the only state.
double SampleRandom::normal() {
  constexpr double kTurn = 6.283185307179586;
  const double length = std::sqrt(-2 * std::log(1 - uniform()));
  return length * std::cos(kTurn * uniform());
}

std::int64_t SampleRandom::below(std::int64_t count) {
  if (count < 1)
    throw ValueError(cat("SampleRandom: below(", count, "): there is no number from 0 to ", count,
                         " - 1; give at least 1"));
  // Words above the last whole multiple of `count` would favour small numbers.
  const auto range = static_cast<std::uint64_t>(count);
  const std::uint64_t most = ~std::uint64_t{0} - ~std::uint64_t{0} % range;
  for (;;) {
    const std::uint64_t high = (*this)(), word = high << 32 | (*this)();
    if (word < most) return static_cast<std::int64_t>(word % range);
  }
}

bool SampleRandom::chance(double probability) { return uniform() < probability; }

void RandomDataset::get(std::span<const std::int64_t> indices, void* inputs, void* targets) const {
  get_augmented(indices, 0, 0, inputs, targets);
}

void RandomDataset::get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed,
                                  std::int64_t epoch, void* inputs, void* targets) const {
  const std::size_t of_input = input_bytes(info()), of_target = target_bytes(info());
  auto *input = static_cast<std::byte*>(inputs), *target = static_cast<std::byte*>(targets);
  for (const std::int64_t index : indices) {
    SampleRandom random(seed, epoch, index);
    get_sample(index, random, input, target);
    input += of_input;
    target += of_target;
  }
}

}  // namespace tenon::data
