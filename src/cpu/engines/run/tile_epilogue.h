// TileEpilogue: the map program of a contraction, run over rectangles of the result while they are
// still in cache.
//
// Reductions of rows (over all batches and columns: a channel's sums) are accumulated separately
// for each batch and piece of its columns, and added in order at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "cpu/engines/run/tile_program.h"
#include "cpu/kernels/contract.h"

namespace tenon::cpu {

class TileEpilogue {
 public:
  /// `map`: over [batch, rows, columns], with MapCode::Accumulator for the contraction's result.
  TileEpilogue(const MapProgram& map, std::span<const Value> values);

  /// Each rectangle has these columns of its rows, cut at multiples of `columns`. Needed if the map
  /// reduces.
  void set_piece(std::int64_t columns);
  std::size_t workspace_bytes(int threads) const {
    return partial_bytes_ + scratch_bytes_ * static_cast<std::size_t>(threads);
  }

  /// Prefetches the programs; see TileProgram::prefetch().
  void prefetch() const { (rows_ ? *rows_ : pieces_).prefetch(); }

  /// One run: the arguments of `call`, passed to a kernel as Epilogue{call, this}.
  struct Run {
    const TileEpilogue& epilogue;
    const Binding& binding;
    std::byte* workspace;  // workspace_bytes(), 64-byte aligned
    std::int64_t folded_rows =
        0;  // not 0: the kernel sees all batches as one, of this many rows each
  };
  static void call(void* run, const ResultBlock& block);
  /// The same for any type of accumulator.
  static void rectangle(const Run& run, int worker, const Rectangle& place, const void* block,
                        std::int64_t ld);
  /// Stores the results of reductions, after the last rectangle.
  static void finish(const Run& run);

 private:
  void run(const Run& run, int worker, const Rectangle& place, const void* block,
           std::int64_t ld) const;
  std::byte* scratch(const Run& run, int worker) const {
    return run.workspace + partial_bytes_ + scratch_bytes_ * static_cast<std::size_t>(worker);
  }

  const std::int64_t batches_, columns_;
  std::int64_t piece_ = 0, pieces_of_row_ = 0;
  std::size_t partial_bytes_ = 0;
  const TileProgram pieces_;
  std::optional<TileProgram> rows_;  // for rectangles of whole rows, where rows are short
  std::size_t scratch_bytes_ = 0;
};

}  // namespace tenon::cpu
