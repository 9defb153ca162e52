// The bytes of samples, and reading many samples a few at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>

#include "base/index.h"

namespace tenon::data {

/// Bytes of one sample's input.
inline std::size_t input_bytes(const DatasetInfo& info) {
  return at(info.input_shape.numel()) * item_size(info.input_dtype);
}
/// Bytes of one sample's target.
inline std::size_t target_bytes(const DatasetInfo& info) {
  return at(info.target_shape.numel()) * item_size(info.target_dtype);
}

/// Reads samples as Dataset::get() gives them, at most 8,192 and 32 MiB of inputs at a time (or one
/// sample): visit(inputs, targets, numbers), the bytes of several samples and which these are.
template <class F>
void for_each_piece(const Dataset& set, std::span<const std::int64_t> numbers, F&& visit) {
  constexpr std::size_t kMostAtOnce = 8192, kBytesAtOnce = std::size_t{32} << 20;
  const std::size_t input = input_bytes(set.info()), target = target_bytes(set.info());
  const std::size_t most =
      std::clamp<std::size_t>(kBytesAtOnce / std::max<std::size_t>(input, 1), 1, kMostAtOnce);
  std::string inputs(std::min(most, numbers.size()) * input, '\0'),
      targets(std::min(most, numbers.size()) * target, '\0');
  for (std::size_t from = 0; from < numbers.size(); from += most) {
    const auto some = numbers.subspan(from, std::min(most, numbers.size() - from));
    set.get(some, inputs.data(), targets.data());
    visit(std::string_view(inputs).substr(0, some.size() * input),
          std::string_view(targets).substr(0, some.size() * target), some);
  }
}

/// The same for all samples.
template <class F>
void for_each_piece(const Dataset& set, F&& visit) {
  std::vector<std::int64_t> numbers(at(set.size()));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  for_each_piece(set, std::span<const std::int64_t>(numbers), visit);
}

}  // namespace tenon::data
