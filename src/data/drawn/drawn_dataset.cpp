// Images are generated once, by the first thread that requests them.
#include "data/drawn/drawn_dataset.h"

#include <atomic>
#include <cstring>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "data/drawn/digits.h"
#include "data/drawn/scenes.h"
#include "data/samples/drawn_parts.h"

namespace tenon::data {
namespace {

DatasetInfo info_of(const DrawnImageFiles& images, std::int64_t count) {
  return {
      .input_shape = images.image,
      .input_dtype = DType::UInt8,
      .classes = std::ssize(images.class_names),
      .class_names = images.class_names,
      .description = cat(count, " drawn ", images.kind, " (", drawn_seed_text(images.seed), ")")};
}

class DrawnDataset final : public DatasetWith<GeneratedSamples> {
 public:
  DrawnDataset(DrawnImageFiles images, std::int64_t count)
      : DatasetWith(info_of(images, count)),
        images_(std::move(images)),
        count_(count),
        bytes_(at(images_.image.numel())),
        pixels_(std::make_unique_for_overwrite<std::uint8_t[]>(at(count) * bytes_)),
        labels_(std::make_unique_for_overwrite<std::uint8_t[]>(at(count))),
        states_(std::make_unique<std::atomic<std::uint8_t>[]>(at(count))) {}

  std::int64_t size() const override { return count_; }
  bool all_generated() const override { return drawn_.load(std::memory_order_relaxed) == count_; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto* input = static_cast<std::uint8_t*>(inputs);
    auto* target = static_cast<char*>(targets);
    const auto fetch_range = [&](std::size_t from, std::size_t to) {
      for (std::size_t k = from; k < to; ++k) {
        const std::int64_t label = fetch(indices[k], input + k * bytes_);
        std::memcpy(target + k * sizeof label, &label, sizeof label);
      }
    };
    // One thread generates a batch, because a loader has several threads. To generate the whole set
    // all threads are used.
    constexpr std::size_t kBlock = 64, kManyBlocks = 64;
    const std::size_t blocks = (indices.size() + kBlock - 1) / kBlock;
    if (blocks < kManyBlocks || all_generated()) return fetch_range(0, indices.size());
    parallel_for(static_cast<std::int64_t>(blocks), [&](std::int64_t block, int) {
      const std::size_t from = at(block) * kBlock;
      fetch_range(from, std::min(from + kBlock, indices.size()));
    });
  }

 private:
  enum : std::uint8_t { kMissing, kBusy, kDrawn };

  // Copies an image out and returns its class. Threads never wait for each other: if another thread
  // is drawing the image, this thread draws it too.
  int fetch(std::int64_t index, std::uint8_t* out) const {
    const std::size_t place = at(index);
    const auto number = static_cast<std::uint64_t>(index);
    std::atomic<std::uint8_t>& state = states_[place];
    std::uint8_t* kept = &pixels_[place * bytes_];
    if (state.load(std::memory_order_acquire) == kDrawn) {
      std::memcpy(out, kept, bytes_);
      return labels_[place];
    }
    const int label = images_.label(images_.seed, number);
    images_.draw(images_.seed, number, out);
    std::uint8_t missing = kMissing;
    if (!state.compare_exchange_strong(missing, kBusy, std::memory_order_relaxed)) return label;
    std::memcpy(kept, out, bytes_);
    labels_[place] = static_cast<std::uint8_t>(label);
    state.store(kDrawn, std::memory_order_release);
    drawn_.fetch_add(1, std::memory_order_relaxed);
    return label;
  }

  DrawnImageFiles images_;
  std::int64_t count_;
  std::size_t bytes_;
  std::unique_ptr<std::uint8_t[]> pixels_, labels_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> states_;
  mutable std::atomic<std::int64_t> drawn_{0};
};

}  // namespace

std::shared_ptr<Dataset> drawn_dataset(DrawnImageFiles images, std::int64_t count) {
  constexpr std::int64_t most = 100'000'000;
  const std::string kind = images.kind;
  const std::int64_t bytes = images.image.numel();
  if (count < 1 || count > most)
    throw ValueError(cat("drawn ", kind, ": the number ", count, " is outside 1 to ", most));
  try {
    return std::make_shared<DrawnDataset>(std::move(images), count);
  } catch (const std::bad_alloc&) {
    throw MemoryError(cat("drawn ", kind, ": ", count, " of them take ", count * bytes,
                          " bytes, which the system refuses: ask for fewer"));
  }
}

std::shared_ptr<Dataset> drawn_digits(std::uint64_t seed, std::int64_t count) {
  return drawn_dataset({"digits",
                        {1, kDigitSide, kDigitSide},
                        {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
                        seed,
                        // Lambdas, not the functions: a function's type would be a symbol that the
                        // shared library exports.
                        [](std::uint64_t key, std::uint64_t k) { return digit_label(key, k); },
                        [](std::uint64_t key, std::uint64_t k, std::uint8_t* pixels) {
                          draw_digit(key, k, pixels);
                        }},
                       count);
}

std::shared_ptr<Dataset> drawn_scenes(std::uint64_t seed, std::int64_t count, std::int64_t side) {
  constexpr std::int64_t smallest = 16, largest = 1024;
  if (side < smallest || side > largest)
    throw ValueError(
        cat("drawn scenes: the side ", side, " is outside ", smallest, " to ", largest, " pixels"));
  const auto draw = [side](std::uint64_t key, std::uint64_t index, std::uint8_t* pixels) {
    draw_scene(key, index, static_cast<int>(side), pixels);
  };
  return drawn_dataset({"scenes",
                        {kSceneChannels, side, side},
                        {std::begin(kSceneNames), std::end(kSceneNames)},
                        seed,
                        [](std::uint64_t key, std::uint64_t k) { return scene_label(key, k); },
                        draw},
                       count);
}

}  // namespace tenon::data
