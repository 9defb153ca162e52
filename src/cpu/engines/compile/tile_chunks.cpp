// Cuts an iteration space into chunks by sizes and costs alone, so the number of threads does not
// change the bits.
#include <algorithm>

#include "cpu/engines/compile/tile_compiler.h"
#include "device/cpu_model.h"

namespace tenon::cpu {

namespace {

// Least cost of a chunk, in units of 10 ps.
constexpr auto kChunkCost = static_cast<std::int64_t>(kCpu.chunk_us * 100'000);
constexpr std::int64_t kPartialBytes = 2 * kCpu.second_cache;  // most bytes of partial results

}  // namespace

void TileCompiler::choose_chunks() {
  TileChunks& cut = p_.chunks_;
  std::int64_t results = 0;
  bool inner_kept = true, outer_reduced = true;
  for (TileColumn& column : p_.columns_) {
    column.partial_offset = results;
    results += round_up(column.count, 8);
    inner_kept = inner_kept && column.view.inner != 0;
    outer_reduced = outer_reduced && column.count <= p_.length_ && view_is_flat(column.view);
  }
  p_.part_elements_ = results;
  const std::int64_t rows = p_.rows_, length = std::max<std::int64_t>(p_.length_, 1);
  cut = TileChunks();
  cut.rows = std::max<std::int64_t>(rows, 1);
  cut.columns = std::max<std::int64_t>(p_.length_, 1);
  if (rows == 0 || p_.length_ == 0) {
    cut.rows = std::max<std::int64_t>(rows, 1);
    return;
  }
  const std::int64_t cost = cost_ + 10 * static_cast<std::int64_t>(map_.stores.size()) +
                            15 * static_cast<std::int64_t>(p_.columns_.size());
  const std::int64_t elements =
      std::clamp<std::int64_t>(kChunkCost / std::max<std::int64_t>(cost, 1), 2048, 65536);
  const bool columns_may_split =
      p_.tile_length_ < p_.length_ && !map_.has_rows && (p_.columns_.empty() || outer_reduced);
  find_lead(elements);
  if (cut.split_results) {
    const std::int64_t steps = std::max<std::int64_t>(1, elements / (cut.lead_rows * length));
    cut.rows = steps * cut.lead_rows;
  } else {
    if (columns_may_split && length > elements / 8)
      cut.columns = round_up(std::max(elements / rows, elements / 8), p_.tile_length_);
    cut.columns = std::min(cut.columns, length);
    cut.rows = std::max<std::int64_t>(1, elements / cut.columns);
  }
  if (!cut.split_results && results > 0) limit_parts(results, inner_kept);
  if (p_.single_pass_ && !cut.split_results) cut.rows = round_up(cut.rows, p_.tile_rows_);
  cut.rows = std::min(cut.rows, rows);
  cut.row_blocks = divide_up(rows, cut.rows);
  cut.col_blocks = divide_up(length, cut.columns);
  cut.part_per_chunk = !inner_kept && cut.col_blocks > 1;
  if (!cut.split_results) cut.parts = cut.row_blocks * (cut.part_per_chunk ? cut.col_blocks : 1);
}

bool TileCompiler::view_is_flat(const TileView& v) const {
  for (std::size_t d = 0; d < v.stride.size(); ++d)
    if (v.stride[d] != 0 && p_.outer_[d] != 1) return false;
  return true;
}

void TileCompiler::find_lead(std::int64_t elements) {
  TileChunks& cut = p_.chunks_;
  if (p_.columns_.empty()) return;
  std::int64_t lead = 1;
  for (std::size_t d = 0; d < p_.outer_.size(); ++d) {
    bool kept = true;
    for (const TileColumn& column : p_.columns_)
      kept = kept && (column.view.stride[d] != 0 || p_.outer_[d] == 1);
    if (!kept) break;
    lead *= p_.outer_[d];
  }
  const std::int64_t step = p_.rows_ * p_.length_ / lead;
  cut.split_results = lead > 1 && (step <= elements || lead >= 16 || lead * 4 >= p_.part_elements_);
  cut.lead = cut.split_results ? lead : 1;
  cut.lead_rows = p_.rows_ / cut.lead;
}

void TileCompiler::limit_parts(std::int64_t results, bool inner_kept) {
  TileChunks& cut = p_.chunks_;
  const std::int64_t most = std::max<std::int64_t>(1, kPartialBytes / (8 * results));
  if (!inner_kept && divide_up(p_.length_, cut.columns) > most)
    cut.columns = divide_up(p_.length_, most);
  const std::int64_t col_blocks = divide_up(p_.length_, cut.columns);
  const std::int64_t row_parts = std::max<std::int64_t>(1, inner_kept ? most : most / col_blocks);
  cut.rows = std::max({cut.rows, divide_up(p_.rows_, row_parts), std::int64_t{1}});
  // Each partial result is filled, reduced and combined, which is extra work. A chunk should have
  // at least eight times that work.
  const std::int64_t wanted =
      inner_kept && col_blocks > 1 ? 8 : 8 * results / std::max<std::int64_t>(1, cut.columns);
  if (cut.rows < wanted && p_.rows_ > 1)
    cut.rows = std::min(wanted, std::max(p_.rows_, std::int64_t{1}));
}

}  // namespace tenon::cpu
