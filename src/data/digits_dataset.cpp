// Drawn digits as a set: each is drawn when first asked for and kept, so that a run starts at once
// and later epochs only copy.
#include <atomic>
#include <cstring>
#include <memory>

#include <tenon/data.h>
#include <tenon/error.h>

#include "base/str.h"
#include "data/digits.h"

namespace tenon::data {
namespace {

class DigitsDataset final : public Dataset {
 public:
  DigitsDataset(std::uint64_t seed, std::int64_t count)
      : seed_(seed),
        count_(count),
        pixels_(std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(count) *
                                                               kDigitPixels)),
        labels_(std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(count))),
        states_(std::make_unique<std::atomic<std::uint8_t>[]>(static_cast<std::size_t>(count))) {}

  std::int64_t size() const override { return count_; }
  Shape input_shape() const override { return {1, kDigitSide, kDigitSide}; }
  DType input_dtype() const override { return DType::UInt8; }
  std::int64_t classes() const override { return 10; }
  std::string describe() const override { return cat(count_, " drawn digits (seed ", seed_, ")"); }
  bool in_memory() const override { return drawn_.load(std::memory_order_relaxed) == count_; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto* input = static_cast<std::uint8_t*>(inputs);
    char* target = static_cast<char*>(targets);
    for (std::int64_t index : indices) {
      const std::int64_t label = fetch(index, input);
      std::memcpy(target, &label, sizeof label);
      input += kDigitPixels;
      target += sizeof label;
    }
  }

 private:
  enum : std::uint8_t { kMissing, kBusy, kDrawn };

  // Copies a digit out and returns its class. Threads never wait for each other: who finds a digit
  // in another's hands draws it for itself.
  int fetch(std::int64_t index, std::uint8_t* out) const {
    const auto at = static_cast<std::size_t>(index);
    std::atomic<std::uint8_t>& state = states_[at];
    std::uint8_t* kept = &pixels_[at * kDigitPixels];
    if (state.load(std::memory_order_acquire) == kDrawn) {
      std::memcpy(out, kept, kDigitPixels);
      return labels_[at];
    }
    const int label = digit_label(seed_, static_cast<std::uint64_t>(index));
    draw_digit(seed_, static_cast<std::uint64_t>(index), out);
    std::uint8_t missing = kMissing;
    if (!state.compare_exchange_strong(missing, kBusy, std::memory_order_relaxed)) return label;
    std::memcpy(kept, out, kDigitPixels);
    labels_[at] = static_cast<std::uint8_t>(label);
    state.store(kDrawn, std::memory_order_release);
    drawn_.fetch_add(1, std::memory_order_relaxed);
    return label;
  }

  std::uint64_t seed_;
  std::int64_t count_;
  std::unique_ptr<std::uint8_t[]> pixels_, labels_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> states_;
  mutable std::atomic<std::int64_t> drawn_{0};
};

}  // namespace

std::shared_ptr<Dataset> drawn_digits(std::uint64_t seed, std::int64_t count) {
  constexpr std::int64_t most = 100'000'000;
  if (count < 1 || count > most)
    throw ValueError(cat("drawn digits: the number ", count, " is outside 1 to ", most));
  try {
    return std::make_shared<DigitsDataset>(seed, count);
  } catch (const std::bad_alloc&) {
    throw MemoryError(cat("drawn digits: ", count, " of them take ", count * kDigitPixels,
                          " bytes, which the system refuses: ask for fewer"));
  }
}

}  // namespace tenon::data
