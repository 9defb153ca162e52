// The tokens of a text, each in as few bytes as the vocabulary needs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace tenon::data {

class NarrowTokens {
 public:
  /// For numbers from 0 to `vocabulary` - 1.
  explicit NarrowTokens(std::int64_t vocabulary) {
    constexpr std::int64_t byte = 1 << 8, two = 1 << 16;
    if (vocabulary > two)
      tokens_ = std::vector<std::uint32_t>();
    else if (vocabulary > byte)
      tokens_ = std::vector<std::uint16_t>();
  }
  void append(std::span<const std::int64_t> numbers) {
    std::visit(
        [&](auto& tokens) {
          using Number = typename std::decay_t<decltype(tokens)>::value_type;
          for (const std::int64_t number : numbers) tokens.push_back(static_cast<Number>(number));
        },
        tokens_);
  }
  std::int64_t size() const {
    return std::visit([](const auto& tokens) { return std::ssize(tokens); }, tokens_);
  }
  /// Writes `count` numbers from position `from` on, and returns the address after them.
  std::int64_t* copy(std::int64_t from, std::int64_t count, std::int64_t* out) const {
    return std::visit(
        [&](const auto& tokens) { return std::copy_n(tokens.begin() + from, count, out); },
        tokens_);
  }
  /// Bytes of memory in use.
  std::size_t bytes() const {
    return std::visit([](const auto& tokens) { return tokens.capacity() * sizeof(tokens[0]); },
                      tokens_);
  }
  void shrink() {
    std::visit([](auto& tokens) { tokens.shrink_to_fit(); }, tokens_);
  }

 private:
  std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>, std::vector<std::uint32_t>>
      tokens_;
};

}  // namespace tenon::data
