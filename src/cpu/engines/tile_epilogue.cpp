// Rectangles of a contraction's result, through its map program.
#include "cpu/engines/tile_epilogue.h"

#include <algorithm>

namespace tenon::cpu {

void TileEpilogue::rectangle(const Run& run, int worker, std::int64_t batch, std::int64_t row0,
                             std::int64_t row1, std::int64_t col0, std::int64_t col1,
                             const void* block, std::int64_t ld) {
  const TileProgram& program = run.epilogue.program_;
  std::byte* scratch = run.workspace + program.scratch_bytes() * static_cast<std::size_t>(worker);
  if (run.folded_rows == 0) {
    return program.run_rectangle(run.binding, scratch, batch, row0, row1, col0, col1, block, ld);
  }
  const std::int64_t bytes = ld * program.accumulator_bytes();
  for (std::int64_t row = row0; row < row1;) {
    const std::int64_t b = row / run.folded_rows, first = row % run.folded_rows;
    const std::int64_t end = std::min(run.folded_rows, first + row1 - row);
    program.run_rectangle(run.binding, scratch, b, first, end, col0, col1,
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
