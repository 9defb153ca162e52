// What a kernel with an epilogue is given for it at each run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan/engine.h"

namespace tenon::cuda {

/// The arguments of a printed struct, as 8-byte words: pointers, sizes, strides. Sizes are data,
/// never text: another batch size gives the same source.
struct ArgumentBlock {
  std::vector<std::uint64_t> words;
  std::vector<std::pair<int, ValueId>> pointers;  // word number, value whose address goes there

  /// The words, at least one, with the addresses of this run.
  void fill(std::vector<std::uint64_t>& out, const Binding& binding) const;
  /// Names other values (Kernel::on_values).
  void rename(std::span<const ValueId> renamed);
};

/// Those of an epilogue, which may reduce its whole result: then the kernel has room for partial
/// results in its workspace, and a counter of blocks that have ended.
class EpilogueArguments {
 public:
  EpilogueArguments() = default;
  explicit EpilogueArguments(ArgumentBlock block) : block_(std::move(block)) {}
  /// The words for the address of the partial results, of so many bytes each, and for the number of
  /// the counter, which is taken here; -1: it needs none.
  EpilogueArguments(ArgumentBlock block, std::size_t partial_bytes, int partials_word,
                    int arrival_word);

  /// Names other values, and takes a counter of its own.
  void rename(std::span<const ValueId> renamed);

  /// Takes room for so many partial results behind `workspace_bytes`, which grow by it; none where
  /// nothing is reduced.
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
