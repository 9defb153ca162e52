// Runs rectangles of a contraction's result through its map program.
#include "cpu/engines/run/tile_epilogue.h"

#include <algorithm>

#include "base/index.h"
#include "cpu/engines/run/workspace.h"

namespace tenon::cpu {

namespace {

// A row in a tile of its own costs about 50 ns, as much as this many elements.
constexpr std::int64_t kShortRow = 400;

}  // namespace

TileEpilogue::TileEpilogue(const MapProgram& map, std::span<const Value> values)
    : batches_(map.space[0]), columns_(map.space[2]), pieces_(map, values, TileUse::Epilogue) {
  scratch_bytes_ = pieces_.scratch_bytes();
  if (columns_ == 0 || columns_ > kShortRow || pieces_.fuses_rows()) return;
  rows_.emplace(map, values, TileUse::RowsEpilogue);
  scratch_bytes_ = std::max(scratch_bytes_, rows_->scratch_bytes());
}

void TileEpilogue::set_piece(std::int64_t columns) {
  piece_ = columns;
  pieces_of_row_ = divide_up(columns_, columns);
  partial_bytes_ =
      whole_lines(at(batches_ * pieces_of_row_ * pieces_.part_elements()) * sizeof(std::int64_t));
}

void TileEpilogue::run(const Run& run, int worker, const Rectangle& place, const void* block,
                       std::int64_t ld) const {
  std::byte* const memory = scratch(run, worker);
  auto* part = reinterpret_cast<std::int64_t*>(run.workspace);
  if (piece_ > 0)
    part += (place.batch * pieces_of_row_ + place.col0 / piece_) * pieces_.part_elements();
  if (rows_ && place.col0 == 0 && place.col1 == columns_ && ld == columns_)
    return rows_->run_rows(run.binding, memory, part, place.batch, place.row0, place.row1, block);
  pieces_.run_rectangle(run.binding, memory, part, place, block, ld);
}

void TileEpilogue::finish(const Run& run) {
  const TileEpilogue& self = run.epilogue;
  if (self.piece_ > 0)
    self.pieces_.combine(run.binding, self.scratch(run, 0),
                         reinterpret_cast<std::int64_t*>(run.workspace),
                         self.batches_ * self.pieces_of_row_);
}

void TileEpilogue::rectangle(const Run& run, int worker, const Rectangle& place, const void* block,
                             std::int64_t ld) {
  const TileEpilogue& self = run.epilogue;
  if (run.folded_rows == 0) return self.run(run, worker, place, block, ld);
  const std::int64_t bytes = ld * self.pieces_.accumulator_bytes();
  for (std::int64_t row = place.row0; row < place.row1;) {
    const std::int64_t batch = row / run.folded_rows, first = row % run.folded_rows;
    const std::int64_t end = std::min(run.folded_rows, first + place.row1 - row);
    self.run(run, worker, {batch, first, end, place.col0, place.col1},
             static_cast<const std::byte*>(block) + (row - place.row0) * bytes, ld);
    row += end - first;
  }
}

void TileEpilogue::call(void* run, const ResultBlock& block) {
  rectangle(*static_cast<const Run*>(run), block.worker, block.place, block.data, block.ld);
}

}  // namespace tenon::cpu
