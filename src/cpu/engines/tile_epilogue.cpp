// Rectangles of a contraction's result, through its map program.
#include "cpu/engines/tile_epilogue.h"

#include <algorithm>

namespace tenon::cpu {

namespace {

// Each row of a tile of its own costs some 50 ns: as much as the work on as many elements.
constexpr std::int64_t kShortRow = 400;

}  // namespace

TileEpilogue::TileEpilogue(const MapProgram& map, std::span<const Value> values)
    : columns_(map.space[2]), pieces_(map, values, TileUse::Epilogue) {
  scratch_bytes_ = pieces_.scratch_bytes();
  if (columns_ == 0 || columns_ > kShortRow) return;
  rows_.emplace(map, values, TileUse::RowsEpilogue);
  scratch_bytes_ = std::max(scratch_bytes_, rows_->scratch_bytes());
}

void TileEpilogue::run(const Binding& binding, std::byte* scratch, std::int64_t batch,
                       std::int64_t row0, std::int64_t row1, std::int64_t col0, std::int64_t col1,
                       const void* block, std::int64_t ld) const {
  if (rows_ && col0 == 0 && col1 == columns_ && ld == columns_)
    return rows_->run_rows(binding, scratch, batch, row0, row1, block);
  pieces_.run_rectangle(binding, scratch, batch, row0, row1, col0, col1, block, ld);
}

void TileEpilogue::rectangle(const Run& run, int worker, std::int64_t batch, std::int64_t row0,
                             std::int64_t row1, std::int64_t col0, std::int64_t col1,
                             const void* block, std::int64_t ld) {
  const TileEpilogue& self = run.epilogue;
  std::byte* scratch = run.workspace + self.scratch_bytes_ * static_cast<std::size_t>(worker);
  if (run.folded_rows == 0)
    return self.run(run.binding, scratch, batch, row0, row1, col0, col1, block, ld);
  const std::int64_t bytes = ld * self.pieces_.accumulator_bytes();
  for (std::int64_t row = row0; row < row1;) {
    const std::int64_t b = row / run.folded_rows, first = row % run.folded_rows;
    const std::int64_t end = std::min(run.folded_rows, first + row1 - row);
    self.run(run.binding, scratch, b, first, end, col0, col1,
             static_cast<const std::byte*>(block) + (row - row0) * bytes, ld);
    row += end - first;
  }
}

void TileEpilogue::call(void* run, int worker, std::int64_t batch, std::int64_t row0,
                        std::int64_t row1, std::int64_t col0, std::int64_t col1, float* block,
                        std::int64_t ld) {
  rectangle(*static_cast<const Run*>(run), worker, batch, row0, row1, col0, col1, block, ld);
}

}  // namespace tenon::cpu
