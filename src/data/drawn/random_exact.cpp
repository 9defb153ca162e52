// Random vectors and random classes, for benchmarks that need no real data. A sample depends on
// (seed, index, size, classes) only.
#include <cstring>
#include <span>

#include <tenon/data.h>
#include <tenon/error.h>

#include "base/str.h"
#include "data/drawn/exact_random.h"
#include "data/samples/drawn_parts.h"

namespace tenon::data {
namespace {

class RandomVectors final : public Dataset {
 public:
  RandomVectors(std::uint64_t seed, std::int64_t count, std::int64_t size, std::int64_t classes)
      : Dataset({.input_shape = {size},
                 .classes = classes,
                 .description = cat(count, " random vectors of ", size, " numbers (",
                                    drawn_seed_text(seed), ")")}),
        seed_(seed),
        count_(count),
        size_(size),
        classes_(classes) {}

  std::int64_t size() const override { return count_; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto* input = static_cast<float*>(inputs);
    auto* target = static_cast<char*>(targets);
    for (const std::int64_t index : indices) {
      Draws draws(seed_, static_cast<std::uint64_t>(index));
      const std::int64_t label = draws.below(static_cast<int>(classes_));
      std::memcpy(target, &label, sizeof label);
      target += sizeof label;
      for (std::int64_t k = 0; k < size_; ++k) *input++ = draws.normal();
    }
  }

 private:
  std::uint64_t seed_;
  std::int64_t count_, size_, classes_;
};

void require_count(const char* what, std::int64_t value) {
  constexpr std::int64_t most = 100'000'000;
  if (value < 1 || value > most)
    throw ValueError(
        cat("random vectors: the number of ", what, ", ", value, ", is outside 1 to ", most));
}

}  // namespace

std::shared_ptr<Dataset> random_vectors(std::uint64_t seed, std::int64_t count, std::int64_t size,
                                        std::int64_t classes) {
  require_count("samples", count);
  require_count("numbers", size);
  require_count("classes", classes);
  return std::make_shared<RandomVectors>(seed, count, size, classes);
}

}  // namespace tenon::data
