// Runs a TileProgram. Chunks (blocks of rows and columns) run in parallel. The tiles of a chunk run
// in order, and each operation processes a whole tile. Reductions over rows have partial results
// for each chunk or block of rows. These are combined in a fixed order at the end, so the number of
// threads does not change the bits.
#include <algorithm>
#include <cstring>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/engines/run/tile_program.h"
#include "device/cpu_model.h"

namespace tenon::cpu {

namespace {

constexpr std::int64_t kFusedAhead = 16 * kCpu.line_bytes;
// Most bytes of each value that are prefetched for a row.
constexpr std::int64_t kMostFetched = kCpu.first_cache / 8;

}  // namespace

/// One chunk on one worker: the current tile and the table of pointers.
class TileRun {
 public:
  TileRun(const TileProgram& program, const Binding& binding, std::byte* scratch)
      : p_(program),
        binding_(binding),
        scratch_(scratch),
        ptr_(reinterpret_cast<std::byte**>(scratch)) {
    ptr_[0] = nullptr;
    for (std::size_t s = 1; s < p_.slots_.size(); ++s) {
      const TileSlot& slot = p_.slots_[s];
      if (slot.kind == TileSlot::Kind::Constant) {
        ptr_[s] = reinterpret_cast<std::byte*>(
            const_cast<std::int64_t*>(&p_.constants_[static_cast<std::size_t>(slot.offset)]));
      } else {
        ptr_[s] = scratch_ + slot.offset;
      }
    }
    rows_ = p_.tile_rows_;
    length_ = p_.tile_length_;
    bind(p_.chunk_binds_);
    execute(p_.chunk_ops_);
  }

  void set_partials(std::int64_t* partials) { partials_ = partials; }

  void run_tiles(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
                 std::int64_t col_end) {
    const TilePass& pass = p_.passes_[0];
    for (std::int64_t row = row_begin; row < row_end; row += p_.tile_rows_) {
      rows_ = std::min(p_.tile_rows_, row_end - row);
      set_row(row);
      col_ = col_begin;
      do {  // once even for empty rows: a reduction of nothing has a result
        length_ = std::min(p_.tile_length_, col_end - col_);
        if (accumulator_ == nullptr) fetch_behind();
        bind(pass.tile_binds);
        execute(pass.tile_ops);
        col_ += p_.tile_length_;
      } while (col_ < col_end);
    }
  }

  void run_pieces(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
                  std::int64_t col_end) {
    rows_ = 1;
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      set_row(row);
      for (const TilePass& pass : p_.passes_) run_pass(pass, col_begin, col_end);
    }
  }

  /// As run_tiles, for rows of one batch; the accumulators are contiguous.
  void run_rows_epilogue(std::int64_t batch, std::int64_t row_begin, std::int64_t row_end,
                         const std::byte* block) {
    const std::int64_t first = batch * p_.outer_[1];
    accumulator_ = const_cast<std::byte*>(block);
    accumulator_row_ = first + row_begin;
    run_tiles(first + row_begin, first + row_end, 0, p_.length_);
  }

  /// As run_pieces, for rows of one batch; the accumulator's rows are `ld` bytes apart.
  void run_epilogue(const Rectangle& place, const std::byte* block, std::int64_t ld) {
    rows_ = 1;
    coordinate_[0] = place.batch;
    const std::int64_t first = place.batch * p_.outer_[1];
    if (p_.fuses_rows()) {
      row_ = first + place.row0;
      coordinate_[1] = place.row0;
      col_ = place.col0;
      return run_fused_rows(place.row1 - place.row0, place.col1 - place.col0, block, ld);
    }
    for (std::int64_t row = place.row0; row < place.row1; ++row, block += ld) {
      row_ = accumulator_row_ = first + row;
      if (row + 1 < place.row1) fetch_row(row + 1, place.col0, place.col1);
      coordinate_[1] = row;
      accumulator_ = const_cast<std::byte*>(block);
      accumulator_col_ = place.col0;
      run_pass(p_.passes_[0], place.col0, place.col1);
    }
  }

 private:
  // Prefetches the memory that an epilogue reads for a row: rows are short and far apart.
  void fetch_row(std::int64_t row, std::int64_t col_begin, std::int64_t col_end) {
    coordinate_[1] = row;
    for (const int v : p_.fetched_) {
      const TileView& view = p_.views_[at(v)];
      std::int64_t offset = view.offset + col_begin;
      for (std::size_t d = 0; d < view.stride.size(); ++d)
        offset += coordinate_[d] * view.stride[d];
      fetch(view, offset, col_end - col_begin);
    }
  }

  // The same for the memory behind a tile. The hardware prefetches only within a 4 KiB page, and
  // rows of 16-bit values need few pages.
  void fetch_behind() {
    for (const int v : p_.fetched_) {
      const TileView& view = p_.views_[at(v)];
      fetch(view, offset_of(view) + rows_ * length_, rows_ * length_);
    }
  }

  void fetch(const TileView& view, std::int64_t offset, std::int64_t count) const {
    const std::byte* from = binding_.values[view.value] + offset * view.item;
    const std::int64_t bytes = std::min(count * view.item, kMostFetched);
    for (std::int64_t byte = 0; byte < bytes; byte += kCpu.line_bytes)
      __builtin_prefetch(from + byte);
  }

  void set_row(std::int64_t row) {
    row_ = row;
    col_ = 0;
    if (!p_.needs_coordinates_) return;
    for (std::size_t d = p_.outer_.size(); d-- > 0;) {
      coordinate_[d] = row % p_.outer_[d];
      row /= p_.outer_[d];
    }
  }

  void run_pass(const TilePass& pass, std::int64_t col_begin, std::int64_t col_end) {
    col_ = 0;
    length_ = 1;
    bind(pass.row_binds);
    execute(pass.row_ops);
    if (pass.tile_ops.empty()) return;
    for (std::int64_t col = col_begin; col < col_end; col += p_.tile_length_) {
      col_ = col;
      length_ = std::min(p_.tile_length_, col_end - col);
      if (accumulator_ == nullptr) fetch_behind();
      bind(pass.tile_binds);
      execute(pass.tile_ops);
    }
  }

  std::int64_t offset_of(const TileView& view) const {
    std::int64_t offset = view.offset + col_ * view.inner;
    if (view.linear) return offset + row_ * view.row_stride;
    for (std::size_t d = 0; d < view.stride.size(); ++d) offset += coordinate_[d] * view.stride[d];
    return offset;
  }

  void bind(const std::vector<int>& slots) {
    for (const int s : slots) {
      const TileSlot& slot = p_.slots_[at(s)];
      if (slot.kind == TileSlot::Kind::View) {
        const TileView& view = p_.views_[at(slot.view)];
        ptr_[s] = binding_.values[view.value] + offset_of(view) * view.item;
      } else if (slot.kind == TileSlot::Kind::Buffer) {
        ptr_[s] = scratch_ + slot.offset + col_ * tile_size(slot.type);
      } else {
        const std::int64_t before =
            (row_ - accumulator_row_) * p_.length_ + col_ - accumulator_col_;
        ptr_[s] = accumulator_ + before * p_.accumulator_bytes_;
      }
    }
  }

  /// Calls f(first row of the tile, rows, offset, row stride) for runs of rows with a constant row
  /// stride.
  template <class F>
  void for_runs(const TileView& view, std::int64_t rows, F&& f) const {
    if (view.linear || rows == 1)
      return f(std::int64_t{0}, rows, offset_of(view), view.linear ? view.row_stride : 0);
    const std::size_t last = p_.outer_.size() - 1;
    std::int64_t coordinate[kMaxRank];
    std::copy(coordinate_, coordinate_ + last + 1, coordinate);
    for (std::int64_t first = 0; first < rows;) {
      const std::int64_t run = std::min(rows - first, p_.outer_[last] - coordinate[last]);
      std::int64_t offset = view.offset + col_ * view.inner;
      for (std::size_t d = 0; d <= last; ++d) offset += coordinate[d] * view.stride[d];
      f(first, run, offset, view.stride[last]);
      first += run;
      coordinate[last] = 0;
      for (std::size_t d = last; d-- > 0;) {
        if (++coordinate[d] < p_.outer_[d]) break;
        coordinate[d] = 0;
      }
    }
  }

  std::int64_t rows_of(TileCount count) const { return count == TileCount::One ? 1 : rows_; }
  std::int64_t length_of(TileCount count) const { return count == TileCount::All ? length_ : 1; }

  void execute(const std::vector<TileOp>& ops) {
    for (const TileOp& op : ops) {
      const std::int64_t rows = rows_of(op.count), length = length_of(op.count);
      switch (op.kind) {
        case TileOp::Kind::Compute:
          op.compute(rows * length, ptr_[op.out], ptr_[op.a], ptr_[op.b], ptr_[op.c]);
          break;
        case TileOp::Kind::Fill:
          op.expand(1, op.number != 0 ? op.number : rows * length, ptr_[op.out], ptr_[op.a]);
          break;
        case TileOp::Kind::Expand:
          op.expand(rows, length, ptr_[op.out], ptr_[op.a]);
          break;
        case TileOp::Kind::RowReduce:
          op.row(rows, length, ptr_[op.out], 1, ptr_[op.a]);
          break;
        case TileOp::Kind::ArgReduce:
          op.arg(rows, length, reinterpret_cast<std::int64_t*>(ptr_[op.out]), ptr_[op.b],
                 ptr_[op.a], col_);
          break;
        case TileOp::Kind::Fused:
          execute_fused(rows, length);
          break;
        default:
          execute_strided(op, rows, length);
      }
    }
  }

  void execute_strided(const TileOp& op, std::int64_t rows, std::int64_t length) {
    const TileSlot& slot = p_.slots_[at(op.kind == TileOp::Kind::Store ? op.a : op.out)];
    const std::int64_t row_bytes = length * tile_size(slot.type);
    switch (op.kind) {
      case TileOp::Kind::Load: {
        const TileView& view = p_.views_[at(op.view)];
        for_runs(view, rows,
                 [&](std::int64_t first, std::int64_t run, std::int64_t offset,
                     std::int64_t row_stride) {
                   op.load(run, length, ptr_[op.out] + first * row_bytes,
                           binding_.values[view.value] + offset * view.item, row_stride,
                           view.inner);
                 });
        break;
      }
      case TileOp::Kind::Store: {
        const TileView& view = p_.views_[at(op.view)];
        for_runs(view, rows,
                 [&](std::int64_t first, std::int64_t run, std::int64_t offset,
                     std::int64_t row_stride) {
                   op.store(run, length, binding_.values[view.value] + offset * view.item,
                            ptr_[op.a] + first * row_bytes, row_stride, view.inner);
                 });
        break;
      }
      case TileOp::Kind::Iota: {
        const TileView& view = p_.views_[at(op.view)];
        for_runs(view, rows,
                 [&](std::int64_t first, std::int64_t run, std::int64_t offset,
                     std::int64_t row_stride) {
                   op.iota(run, length, ptr_[op.out] + first * row_bytes, offset, row_stride,
                           view.inner);
                 });
        break;
      }
      case TileOp::Kind::Random: {
        std::int64_t state[2];
        std::memcpy(state, binding_.values[p_.views_[at(op.view)].value], sizeof state);
        const std::int64_t first = op.count == TileCount::All ? row_ * p_.length_ + col_ : row_;
        op.random(rows * length, ptr_[op.out], static_cast<std::uint64_t>(state[0]),
                  static_cast<std::uint64_t>(state[1]) + static_cast<std::uint64_t>(op.number),
                  first);
        break;
      }
      default:
        reduce_columns(op, rows, length);
    }
  }

  // Runs rows of an epilogue from the current row on; in each row all pointers advance by the same
  // step.
  void run_fused_rows(std::int64_t rows, std::int64_t length, const std::byte* block,
                      std::int64_t ld) {
    const TileFused& fused = p_.fused_;
    const std::size_t elements = fused.elements.size(), scalars = fused.scalars.size(),
                      outs = fused.outs.size();
    FusedWalk element[kMaxFusedElements], scalar[kMaxFusedScalars], sum[kMaxFusedSums],
        out[kMaxFusedOuts];
    FusedRow row;
    for (std::size_t k = 0; k < elements; ++k) {
      element[k] = walk_of(fused.elements[k], block, ld);
      row.ahead[k] = element[k].at == block ? 0 : element[k].step;
    }
    for (std::size_t k = 0; k < outs; ++k) out[k] = walk_of(fused.outs[k], block, ld);
    for (std::size_t k = 0; k < scalars; ++k) scalar[k] = walk_of(fused.scalars[k], block, ld);
    for (std::size_t c = 0; c < p_.columns_.size(); ++c) {
      const TileColumn& column = p_.columns_[c];
      std::int64_t* const to = partials_ + column.partial_offset + offset_of(column.view);
      sum[c] = {reinterpret_cast<const std::byte*>(to), column.view.stride.back() * 8, 8};
    }
    for (; rows > 0; --rows) {
      for (std::size_t k = 0; k < scalars; ++k)
        row.scalars[k] = reinterpret_cast<const float*>(scalar[k].next());
      for (std::size_t c = 0; c < p_.columns_.size(); ++c)
        row.sums[c] = reinterpret_cast<double*>(const_cast<std::byte*>(sum[c].next()));
      for (std::int64_t col = 0; col < length; col += p_.tile_length_) {
        row.count = std::min(p_.tile_length_, length - col);
        for (std::size_t k = 0; k < elements; ++k)
          row.elements[k] = element[k].at + col * element[k].item;
        for (std::size_t k = 0; k < outs; ++k)
          row.outs[k] = const_cast<std::byte*>(out[k].at + col * out[k].item);
        fused.loop(row);
      }
      for (std::size_t k = 0; k < elements; ++k) element[k].next();
      for (std::size_t k = 0; k < outs; ++k) out[k].next();
    }
  }

  // The address of a fused loop's operand in the current row, and its step to the next row.
  struct FusedWalk {
    const std::byte* at;
    std::int64_t step;
    int item;
    const std::byte* next() {
      const std::byte* const here = at;
      at += step;
      return here;
    }
  };
  FusedWalk walk_of(int slot, const std::byte* block, std::int64_t ld) const {
    const TileSlot& s = p_.slots_[at(slot)];
    if (s.kind == TileSlot::Kind::Accumulator) return {block, ld, p_.accumulator_bytes_};
    if (s.kind != TileSlot::Kind::View) return {ptr_[slot], 0, tile_size(s.type)};
    const TileView& view = p_.views_[at(s.view)];
    return {binding_.values[view.value] + offset_of(view) * view.item,
            view.stride.back() * view.item, view.item};
  }

  void execute_fused(std::int64_t rows, std::int64_t length) {
    const TileFused& fused = p_.fused_;
    double* sums[kMaxFusedSums][kMaxFusedRows];
    for (std::size_t c = 0; c < p_.columns_.size(); ++c) {
      const TileColumn& column = p_.columns_[c];
      auto* const to = reinterpret_cast<double*>(partials_ + column.partial_offset);
      for_runs(
          column.view, rows,
          [&](std::int64_t first, std::int64_t run, std::int64_t offset, std::int64_t row_stride) {
            for (std::int64_t r = 0; r < run; ++r)
              sums[c][first + r] = to + offset + r * row_stride;
          });
    }
    FusedRow row;
    row.count = length;
    for (std::size_t k = 0; k < fused.elements.size(); ++k) row.ahead[k] = ahead(fused.elements[k]);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::size_t k = 0; k < fused.elements.size(); ++k)
        row.elements[k] = in_row(fused.elements[k], r, length);
      for (std::size_t k = 0; k < fused.scalars.size(); ++k)
        row.scalars[k] =
            reinterpret_cast<const float*>(ptr_[fused.scalars[k]]) + (fused.per_row[k] ? r : 0);
      for (std::size_t c = 0; c < p_.columns_.size(); ++c) row.sums[c] = sums[c][r];
      for (std::size_t k = 0; k < fused.outs.size(); ++k)
        row.outs[k] = in_row(fused.outs[k], r, length);
      fused.loop(row);
    }
  }

  std::byte* in_row(int slot, std::int64_t r, std::int64_t length) const {
    const TileSlot& s = p_.slots_[at(slot)];
    const int item =
        s.kind == TileSlot::Kind::View ? p_.views_[at(s.view)].item : tile_size(s.type);
    return ptr_[slot] + r * length * item;
  }

  // Bytes from a row's elements to the memory that a fused loop prefetches: the next row of an
  // epilogue, or the memory behind the row.
  std::int64_t ahead(int slot) const {
    const TileSlot& s = p_.slots_[at(slot)];
    if (s.kind != TileSlot::Kind::View) return 0;
    const TileView& view = p_.views_[at(s.view)];
    return accumulator_ == nullptr || rows_ > 1 ? kFusedAhead : view.stride.back() * view.item;
  }

  void reduce_columns(const TileOp& op, std::int64_t rows, std::int64_t length) {
    const TileColumn& column = p_.columns_[at(op.column)];
    const std::int64_t row_bytes = length * tile_size(p_.slots_[at(op.a)].type);
    std::int64_t* sums = partials_ + column.partial_offset;
    for_runs(
        column.view, rows,
        [&](std::int64_t first, std::int64_t run, std::int64_t offset, std::int64_t row_stride) {
          const std::byte* x = ptr_[op.a] + first * row_bytes;
          if (column.view.inner == 0) {
            op.row(run, length, sums + offset, row_stride, x);
          } else {
            op.col(run, length, sums + offset, row_stride, x);
          }
        });
  }

  const TileProgram& p_;
  const Binding& binding_;
  std::byte* const scratch_;
  std::byte** const ptr_;
  std::int64_t* partials_ = nullptr;
  std::byte* accumulator_ = nullptr;
  std::int64_t accumulator_row_ = 0, accumulator_col_ = 0;  // where it starts
  std::int64_t row_ = 0, rows_ = 1, col_ = 0, length_ = 1;
  std::int64_t coordinate_[kMaxRank] = {};
};

namespace {

template <class T>
void prefetch_all(const std::vector<T>& items) {
  const auto* first = reinterpret_cast<const std::byte*>(items.data());
  for (std::size_t at = 0; at < items.size() * sizeof(T); at += 64) __builtin_prefetch(first + at);
}

}  // namespace

void TileProgram::prefetch() const {
  prefetch_all(outer_);
  prefetch_all(slots_);
  prefetch_all(views_);
  prefetch_all(constants_);
  prefetch_all(chunk_binds_);
  prefetch_all(chunk_ops_);
  for (const TilePass& pass : passes_) {
    prefetch_all(pass.tile_binds);
    prefetch_all(pass.tile_ops);
  }
}

std::size_t TileProgram::workspace_bytes(int threads) const {
  const std::int64_t partials = round_up(chunks_.parts * part_elements_ * 8, 64);
  return static_cast<std::size_t>(partials + scratch_bytes_ * std::max(threads, 1));
}

void TileProgram::run(const Binding& binding) const {
  prefetch();
  auto* partials = reinterpret_cast<std::int64_t*>(binding.workspace);
  std::byte* scratch = binding.workspace + round_up(chunks_.parts * part_elements_ * 8, 64);
  const TileChunks& cut = chunks_;
  const auto chunk = [&](std::int64_t index, int worker) {
    const std::int64_t row_block = index / cut.col_blocks, col_block = index % cut.col_blocks;
    const std::int64_t row0 = row_block * cut.rows, row1 = std::min(rows_, row0 + cut.rows);
    const std::int64_t col0 = col_block * cut.columns, col1 = std::min(length_, col0 + cut.columns);
    std::int64_t* part = partials;
    if (!cut.split_results) part += (cut.part_per_chunk ? index : row_block) * part_elements_;
    for (const TileColumn& column : columns_) {
      std::int64_t begin = 0, end = column.count;
      if (cut.split_results) {
        begin = row0 / cut.lead_rows * (column.count / cut.lead);
        end = (row1 + cut.lead_rows - 1) / cut.lead_rows * (column.count / cut.lead);
      } else if (!cut.part_per_chunk && cut.col_blocks > 1) {
        begin = col0;
        end = col1;
      }
      std::fill(part + column.partial_offset + begin, part + column.partial_offset + end,
                column.neutral);
    }
    TileRun tile_run(*this, binding, scratch + worker * scratch_bytes_);
    tile_run.set_partials(part);
    if (single_pass_) {
      tile_run.run_tiles(row0, row1, col0, col1);
    } else {
      tile_run.run_pieces(row0, row1, col0, col1);
    }
  };
  const std::int64_t count = cut.row_blocks * cut.col_blocks;
  if (count == 1) {
    chunk(0, 0);
  } else {
    parallel_for(count, chunk);
  }
  if (!columns_.empty()) combine(binding, scratch, partials, cut.parts);
}

void TileProgram::combine(const Binding& binding, std::byte* scratch, std::int64_t* partials,
                          std::int64_t parts) const {
  constexpr std::int64_t kBlock = 128;
  const TileTable& table = *table_;
  std::byte* converted = scratch;
  for (const TileColumn& column : columns_) {
    std::int64_t* sums = partials + column.partial_offset;
    for (std::int64_t part = 1; part < parts; ++part)
      table.col[static_cast<int>(column.reduction)][static_cast<int>(column.type)](
          1, column.count, sums, 0, sums + part * part_elements_);
    const TileType to = tile_type(column.dtype);
    const int item = static_cast<int>(item_size(column.dtype));
    for (std::int64_t i = 0; i < column.count; i += kBlock) {
      const std::int64_t n = std::min(kBlock, column.count - i);
      const void* source = sums + i;
      if (to != column.type) {
        table.cast[static_cast<int>(column.type)][static_cast<int>(to)](n, converted, source,
                                                                        nullptr, nullptr);
        source = converted;
      }
      table.store[static_cast<int>(column.dtype)](1, n, binding.values[column.value] + i * item,
                                                  source, 0, 1);
    }
  }
}

void TileProgram::clear_rows(std::int64_t* part, std::int64_t row0, std::int64_t row1) const {
  for (const TileColumn& column : columns_)
    std::fill(part + column.partial_offset + row0, part + column.partial_offset + row1,
              column.neutral);
}

void TileProgram::run_rectangle(const Binding& binding, std::byte* scratch, std::int64_t* part,
                                const Rectangle& place, const void* block, std::int64_t ld) const {
  clear_rows(part, place.row0, place.row1);
  TileRun run(*this, binding, scratch);
  run.set_partials(part);
  run.run_epilogue(place, static_cast<const std::byte*>(block), ld * accumulator_bytes_);
}

void TileProgram::run_rows(const Binding& binding, std::byte* scratch, std::int64_t* part,
                           std::int64_t batch, std::int64_t row0, std::int64_t row1,
                           const void* block) const {
  clear_rows(part, row0, row1);
  TileRun run(*this, binding, scratch);
  run.set_partials(part);
  run.run_rows_epilogue(batch, row0, row1, static_cast<const std::byte*>(block));
}

}  // namespace tenon::cpu
