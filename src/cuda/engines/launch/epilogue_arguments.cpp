// Fills in the argument words of a launch for each run.
#include "cuda/engines/launch/epilogue_arguments.h"

#include "base/index.h"
#include "base/per_thread.h"
#include "cuda/engines/launch/tickets.h"

namespace tenon::cuda {

std::vector<std::uint64_t>& words_of_thread() {
  static const PerThread<std::vector<std::uint64_t>> words;
  return words.get();
}

void ArgumentBlock::fill(std::vector<std::uint64_t>& out, const Binding& binding) const {
  out.assign(words.begin(), words.end());
  for (const auto& [word, value] : pointers)
    out[at(word)] = reinterpret_cast<std::uintptr_t>(binding.values[at(value)]);
  for (const auto& [word, offset] : temporaries)
    out[at(word)] = reinterpret_cast<std::uintptr_t>(binding.workspace + offset);
  if (out.empty()) out.push_back(0);
}

void ArgumentBlock::rename(std::span<const ValueId> renamed) {
  for (auto& [word, value] : pointers) value = renamed[at(value)];
}

EpilogueArguments::EpilogueArguments(ArgumentBlock block, std::size_t partial_bytes,
                                     int partials_word, int arrival_word)
    : block_(std::move(block)),
      partial_bytes_(partial_bytes),
      partials_word_(partials_word),
      arrival_word_(arrival_word) {
  take_counter();
}

void EpilogueArguments::take_counter() {
  static Tickets arrivals(kEpilogueArrivals);
  if (arrival_word_ >= 0) block_.words[at(arrival_word_)] = arrivals.take(1);
}

void EpilogueArguments::rename(std::span<const ValueId> renamed) {
  block_.rename(renamed);
  take_counter();
}

void EpilogueArguments::reserve(std::int64_t partials, std::size_t& workspace_bytes) {
  constexpr std::int64_t kWorkspaceAlignment = 256;
  if (partial_bytes_ == 0) return;
  offset_ = at(round_up(static_cast<std::int64_t>(workspace_bytes), kWorkspaceAlignment));
  workspace_bytes = offset_ + partial_bytes_ * at(partials);
}

void EpilogueArguments::fill(std::vector<std::uint64_t>& out, const Binding& binding) const {
  block_.fill(out, binding);
  if (partials_word_ >= 0)
    out[at(partials_word_)] = reinterpret_cast<std::uintptr_t>(binding.workspace + offset_);
}

}  // namespace tenon::cuda
