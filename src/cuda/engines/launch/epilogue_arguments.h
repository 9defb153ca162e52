// The arguments of a kernel's epilogue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan/program/engine.h"

namespace tenon::cuda {

/// The arguments of a printed struct as 8-byte words: pointers, sizes, strides. Sizes are arguments
/// and never part of the source, so another batch size has the same source.
struct ArgumentBlock {
  std::vector<std::uint64_t> words;
  std::vector<std::pair<int, ValueId>> pointers;  // word number, value whose address goes there
  // number of a word; where in the kernel's workspace the word points to
  std::vector<std::pair<int, std::int64_t>> temporaries;

  /// Copies the words (at least one) and fills in the addresses of this run.
  void fill(std::vector<std::uint64_t>& out, const Binding& binding) const;
  /// Replaces the values by others (Kernel::on_values).
  void rename(std::span<const ValueId> renamed);
};

/// The calling thread's words for the launch that it prepares. They keep their memory, so that
/// later launches do not allocate. A launch must have taken them before the thread prepares
/// another.
std::vector<std::uint64_t>& words_of_thread();

/// The arguments of an epilogue. An epilogue that reduces its whole result has partial results in
/// the kernel's workspace and a counter of finished blocks.
class EpilogueArguments {
 public:
  EpilogueArguments() = default;
  explicit EpilogueArguments(ArgumentBlock block) : block_(std::move(block)) {}
  /// `partials_word`: the word for the address of the partial results, of `partial_bytes` each.
  /// `arrival_word`: the word for the number of the counter, which the constructor takes. -1: none
  /// needed.
  EpilogueArguments(ArgumentBlock block, std::size_t partial_bytes, int partials_word,
                    int arrival_word);

  /// Replaces the values by others and takes a new counter.
  void rename(std::span<const ValueId> renamed);

  /// Reserves `partials` partial results behind `workspace_bytes` and increases `workspace_bytes`.
  /// Does nothing if nothing is reduced.
  void reserve(std::int64_t partials, std::size_t& workspace_bytes);
  void fill(std::vector<std::uint64_t>& out, const Binding& binding) const;

 private:
  void take_counter();

  ArgumentBlock block_;
  std::size_t partial_bytes_ = 0, offset_ = 0;
  int partials_word_ = -1, arrival_word_ = -1;
};

inline constexpr std::int64_t kEpilogueArrivals = 1024;  // counters of a module

}  // namespace tenon::cuda
