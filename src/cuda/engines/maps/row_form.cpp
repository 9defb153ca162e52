// Decides lanes, blocks and registers of kernels with rows: which values stay in registers from
// pass to pass, and in which form. The printer (print_rows.cpp) only asks.
#include "cuda/engines/maps/row_form.h"

#include <algorithm>
#include <bit>

#include "base/index.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kMostRowBlocks = 4096;  // of 256 threads or more
constexpr std::int64_t kWarpRow = 1024;        // longest row of a warp
constexpr int kShortBlock = 64, kWidestBlock = 1024;

/// Elements that a thread may keep, over all values, by the number of threads per row: in the
/// widest blocks a thread has 64 registers.
constexpr std::int64_t most_kept(std::int64_t lanes) {
  return lanes > 512 ? 28 : (lanes > 32 ? 56 : 72);
}

/// Registers that a thread may fill with packed elements: in the widest blocks it has 64.
constexpr std::int64_t kMostPacked = 28;

/// Bytes of an element that may stay in shared memory.
constexpr std::int64_t kStagedSize = 4;
/// Shared memory besides the row: the most that a reduction exchanges, 16 bytes a warp of the
/// widest block, and the number of reductions to leave room for.
constexpr std::int64_t kReductionBytes = 512, kFewestReductions = 4;

// Accesses of a thread along a row whose columns are reduced too. Fewer threads per row need fewer
// instructions to combine its sums.
constexpr std::int64_t kAccessesWithColumns = 3;
// Registers, of 128, for prefetched rows and the values kept of them.
constexpr std::int64_t kMostAhead = 96;
// Number of rows from which on rows are prefetched, and rows per warp then, in more blocks than a
// large GPU holds at once.
constexpr std::int64_t kFewestAhead = 2048, kRowsOfWarp = 8, kAheadBlocks = 256;

}  // namespace

RowForm::RowForm(const MapProgram& map, const ValueTable& values, const PartOptions& options)
    : map_(map),
      options_(options),
      length_(map.space[map.space.rank() - 1]),
      levels_(levels_of(map)),
      depths_(depths_of(map)),
      wide_(vector_width(map, values, true)) {
  passes_ = 1 + *std::max_element(depths_.begin(), depths_.end());
  rows_ = length_ == 0 ? size_of(map, outer_axes()) : map.space.numel() / length_;
}

void RowForm::choose(const InstrPrinter& printer, const ValueTable& values) {
  choose_kept();
  packed_.assign(map_.instrs.size(), false);
  choose_lanes(printer, values);
  choose_packed(printer);
  if (!keeps_) kept_.assign(map_.instrs.size(), false);
  choose_staged();
}

std::int64_t RowForm::shared_bytes() const {
  return staged_ < 0 ? 0 : divide_up(length_, wide_) * wide_ * kStagedSize;
}

std::int64_t RowForm::blocks() const {
  if (has_columns()) return chunks_;
  const std::int64_t all = divide_up(rows_, threads_ / lanes_);
  return ahead_ ? std::max(std::min(all, kAheadBlocks), divide_up(all, kRowsOfWarp))
                : std::min(all, kMostRowBlocks * std::max(256 / threads_, 1));
}

/// Without columns, two blocks of 256 threads: twice as many loads in flight as one block has
/// registers for.
int RowForm::resident() const { return ahead_ && !has_columns() ? 512 / threads_ : 0; }

bool RowForm::crosses(int i) const {
  for (int u = 0; u < count(); ++u)
    for (const int arg : instr(u).args)
      if (arg == i && pass_of_use(u) > depths_[at(i)]) return true;
  for (std::size_t s = 0; s < map_.stores.size(); ++s)
    if (map_.stores[s].source == i && store_pass(s) > depths_[at(i)]) return true;
  return false;
}

void RowForm::find_leaves(int i, std::set<int>& leaves) const {
  if (!varies(i)) return;
  if (kept_[at(i)] || !is_cheap(i)) {
    leaves.insert(i);
    return;
  }
  for (const int arg : instr(i).args)
    if (arg >= 0) find_leaves(arg, leaves);
}

void RowForm::choose_kept() {
  kept_.assign(map_.instrs.size(), false);
  for (int i = 0; i < count(); ++i) {
    if (!varies(i) || !crosses(i)) continue;
    std::set<int> leaves;
    find_leaves(i, leaves);
    const bool there =
        std::all_of(leaves.begin(), leaves.end(), [this](int leaf) { return kept_[at(leaf)]; });
    if (there || leaves.size() <= 1) {
      for (const int leaf : leaves) kept_[at(leaf)] = true;
    } else {
      kept_[at(i)] = true;
    }
  }
  for (int i = 0; i < count(); ++i)
    if (kept_[at(i)] && is_shared(i)) kept_[at(i)] = !is_first_needed_late(i);
}

bool RowForm::is_first_needed_late(int i) {
  const bool was_kept = kept_[at(i)];
  kept_[at(i)] = false;
  int needing = 0;
  for (int p = 0; p < passes_; ++p) needing += needed_in(p)[at(i)] ? 1 : 0;
  const bool late = needing == 1 && !needed_in(0)[at(i)];
  kept_[at(i)] = was_kept;
  return late;
}

void RowForm::choose_lanes(const InstrPrinter& printer, const ValueTable& values) {
  std::int64_t loaded = 0, late = 0;
  for (int i = 0; i < count(); ++i) {
    if (!varies(i) || instr(i).code != MapCode::Load) continue;
    ++loaded;
    late += is_shared(i) && is_first_needed_late(i) ? 1 : 0;
  }
  const std::int64_t kept = std::count(kept_.begin(), kept_.end(), true);
  const auto pow2 = [](std::int64_t n) {
    return static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
  };
  const std::int64_t units = divide_up(length_, wide_);
  const auto fits = [&](std::int64_t lanes, std::int64_t arrays) {
    return divide_up(units, lanes) * wide_ * std::max<std::int64_t>(arrays, 1) <= most_kept(lanes);
  };
  const auto keepable = [&](std::int64_t lanes) {
    return fits(lanes, std::max<std::int64_t>(loaded, kept));
  };
  threads_ = options_.threads;
  if (has_columns()) return choose_chunks(printer, values, units, keepable);
  lanes_ = static_cast<int>(pow2(std::min<std::int64_t>(units, 32)));
  if (length_ <= kWarpRow && choose_ahead(printer, units)) return;
  // A single row gets a whole block, however short it is: its length may well be the batch.
  const bool is_short = map_.space.rank() > 1 && length_ <= kWarpRow && !options_.one_block;
  const auto early = std::max(loaded - late, kept);
  keeps_ = keepable(lanes_);
  if (is_short && !keeps_ && fits(threads_, early)) {
    // Few warps: fewer wait for one another, and more rows are in flight.
    while (threads_ > kShortBlock && fits(threads_ / 2, early)) threads_ /= 2;
    lanes_ = threads_;
    keeps_ = true;
  } else if (map_.space.rank() == 1 || length_ > kWarpRow || !keeps_) {
    // The smallest block that keeps a row in registers; otherwise a block that loops along the row.
    while (!options_.one_block && threads_ < kWidestBlock && !keepable(threads_)) threads_ *= 2;
    lanes_ = threads_;
    keeps_ = keepable(lanes_);
  }
  steps_ = static_cast<int>(std::max<std::int64_t>(divide_up(units, lanes_), 1));
}

template <class Keepable>
void RowForm::choose_chunks(const InstrPrinter& printer, const ValueTable& values,
                            std::int64_t units, const Keepable& keepable) {
  chunks_ = values[at(map_.reduces[0].value)].shape[0];
  chunk_ = divide_up(rows_, chunks_);
  if (has_warp_rows(map_)) {
    lanes_ = 32;
    threads_ = lanes_ * kWarpsWithColumns;
    if (choose_ahead(printer, units)) return;
    keeps_ = keepable(lanes_);
    steps_ = static_cast<int>(divide_up(units, lanes_));
    return;
  }
  const auto wanted = static_cast<std::uint64_t>(divide_up(units, kAccessesWithColumns));
  lanes_ = threads_ = std::clamp(static_cast<int>(std::bit_ceil(wanted)), 64, 256);
  keeps_ = keepable(lanes_);
  steps_ = static_cast<int>(divide_up(units, lanes_));
}

std::vector<bool> RowForm::packable(const InstrPrinter& printer, std::int64_t bytes) const {
  std::vector<bool> packed(map_.instrs.size()), none = packed;
  if (options_.one_block || passes_ < 2) return none;
  for (int i = 0; i < count(); ++i) {
    if (!varies(i) || instr(i).code != MapCode::Load || !differs_by_row(instr(i).view)) continue;
    const View& view = instr(i).view;
    if (static_cast<std::int64_t>(item_size(instr(i).dtype)) * wide_ > bytes ||
        printer.inner_step(view) != InnerStep::One || printer.alignment(view) < wide_)
      return none;
    packed[at(i)] = true;
  }
  return packed;
}

bool RowForm::choose_ahead(const InstrPrinter& printer, std::int64_t units) {
  if (wide_ < kLeastAhead || units < 32 || outer_axes().size() != 1 || rows_ < kFewestAhead ||
      (!has_columns() &&
       registers_ahead(map_, std::count(kept_.begin(), kept_.end(), true)) > kMostAhead))
    return false;
  packed_ = packable(printer, 16);
  packs_ = ahead_ = std::count(packed_.begin(), packed_.end(), true) > 0;
  if (!ahead_) return false;
  lanes_ = 32;
  keeps_ = !has_columns();
  for (int i = 0; i < count(); ++i)
    if (instr(i).code == MapCode::Load) kept_[at(i)] = false;
  steps_ = static_cast<int>(divide_up(units, lanes_));
  return true;
}

void RowForm::choose_packed(const InstrPrinter& printer) {
  if (packs_ || has_columns() || wide_ < 8 || keeps_costly()) return;
  std::vector<bool> packed = packable(printer, 16);
  const std::int64_t rows = std::count(packed.begin(), packed.end(), true),
                     units = divide_up(length_, wide_);
  const auto fits = [&](std::int64_t threads) {
    return rows * divide_up(units, threads) * wide_ / 2 <= kMostPacked;
  };
  int threads = options_.threads;
  while (threads < kWidestBlock && !fits(threads)) threads *= 2;
  if (rows == 0 || !fits(threads) || (keeps_ && threads >= lanes_)) return;
  keeps_ = false;
  lanes_ = threads_ = threads;
  steps_ = static_cast<int>(divide_up(units, threads));
  packed_ = std::move(packed);
  packs_ = true;
}

void RowForm::choose_staged() {
  if (keeps_ || packs_ || options_.shared_bytes == 0 || has_columns() || lanes_ != kWidestBlock)
    return;
  int row = -1;
  for (int i = 0; i < count(); ++i) {
    if (!varies(i) || instr(i).code != MapCode::Load || !differs_by_row(instr(i).view)) continue;
    if (row >= 0 || item_size(instr(i).dtype) != kStagedSize) return;
    row = i;
  }
  std::int64_t reductions = 0;
  for (int i = 0; i < count(); ++i) reductions += instr(i).code == MapCode::RowReduce ? 1 : 0;
  const std::int64_t beside = kReductionBytes * std::max(kFewestReductions, reductions);
  if (row < 0 || length_ * kStagedSize + beside > options_.shared_bytes) return;
  int needing = 0;
  for (int p = 0; p < passes_; ++p) needing += needed_in(p)[at(row)] ? 1 : 0;
  if (needing > 1) staged_ = row;
}

bool RowForm::keeps_costly() const {
  for (int i = 0; keeps_ && i < count(); ++i)
    if (kept_[at(i)] && instr(i).code != MapCode::Load && !is_cheap(i)) return true;
  return false;
}

std::vector<bool> RowForm::needed_in(int p) const {
  std::vector<bool> needed(map_.instrs.size());
  for (std::size_t s = 0; s < map_.stores.size(); ++s)
    if (store_pass(s) == p && !once_a_row(s)) needed[at(map_.stores[s].source)] = true;
  for (int i = 0; i < count(); ++i) {
    if (instr(i).code == MapCode::RowReduce && depths_[at(i)] - 1 == p)
      needed[at(instr(i).args[0])] = true;
    if (kept_[at(i)] && depths_[at(i)] == p) needed[at(i)] = true;
  }
  for (const MapReduce& reduce : map_.reduces)
    if (depths_[at(reduce.source)] == p) needed[at(reduce.source)] = true;
  for (int i = count() - 1; i >= 0; --i) {
    if (!varies(i) || (kept_[at(i)] && depths_[at(i)] < p)) needed[at(i)] = false;
    if (!needed[at(i)]) continue;
    for (const int arg : instr(i).args)
      if (arg >= 0) needed[at(arg)] = true;
  }
  return needed;
}

}  // namespace tenon::cuda
