// A dataset of large samples, for tests of how many are read at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include <tenon/data.h>

/// 50 samples with inputs of 4 MiB, which get() does not write.
class LargeSamples : public tenon::data::Dataset {
 public:
  using Targets = std::function<void(std::span<const std::int64_t> indices, void* targets)>;
  /// `info` describes the targets.
  LargeSamples(tenon::data::DatasetInfo info, Targets targets)
      : Dataset(with_inputs(std::move(info))), targets_(std::move(targets)) {}
  std::int64_t size() const override { return 50; }
  void get(std::span<const std::int64_t> indices, void* /*inputs*/, void* targets) const override {
    most_ = std::max(most_, indices.size() << 22);
    targets_(indices, targets);
  }
  /// The most bytes of inputs that were read at once.
  std::size_t most() const { return most_; }

 private:
  static tenon::data::DatasetInfo with_inputs(tenon::data::DatasetInfo info) {
    info.input_shape = {1 << 20};
    info.in_memory = true;
    return info;
  }
  Targets targets_;
  mutable std::size_t most_ = 0;
};

/// Classes 0 and 1 in turn.
inline LargeSamples large_samples_of_two_classes() {
  return {{.classes = 2}, [](std::span<const std::int64_t> indices, void* targets) {
            for (auto* target = static_cast<std::int64_t*>(targets); const std::int64_t k : indices)
              *target++ = k % 2;
          }};
}
