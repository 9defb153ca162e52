// The layout of a kernel with rows over threads and registers. How to read memory once, and how
// many rows are in flight together, follows from sizes, types and alignments alone.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "cuda/engines/maps/map_layout.h"
#include "cuda/engines/maps/print_instrs.h"
#include "cuda/engines/maps/print_loop_nest.h"

namespace tenon::cuda {

class RowForm {
 protected:
  RowForm(const MapProgram& map, const ValueTable& values, const PartOptions& options);
  /// Completes the choice when the printer knows the alignments.
  void choose(const InstrPrinter& printer, const ValueTable& values);

  bool has_columns() const { return !map_.reduces.empty(); }
  int count() const { return static_cast<int>(map_.instrs.size()); }
  const MapInstr& instr(int i) const { return map_.instrs[at(i)]; }
  Level level(int i) const { return levels_[at(i)]; }
  bool varies(int i) const { return level(i) == Level::Element; }
  std::vector<int> outer_axes() const {
    std::vector<int> axes;
    for (int d = 0; d + 1 < map_.space.rank(); ++d) axes.push_back(d);
    return axes;
  }

  bool is_of_row(int i) const { return instr(i).code == MapCode::Load && level(i) == Level::Row; }

  /// True if a thread has a fixed number of steps along the row instead of a loop.
  bool in_steps() const { return keeps_ || packs_ || has_columns(); }

  /// True if a pass that reads a loaded row finds it in registers or recomputed there.
  bool keeps_loads() const { return keeps_ && !ahead_; }

  int store_pass(std::size_t s) const {
    const MapStore& store = map_.stores[s];
    return loads(map_, store.view.value) ? passes_ - 1 : depths_[at(store.source)];
  }
  bool once_a_row(std::size_t s) const { return instr(map_.stores[s].source).per_row; }
  bool differs_by_row(const View& view) const {
    for (int d = 0; d + 1 < map_.space.rank(); ++d)
      if (map_.space[d] != 1 && view.stride[d] != 0) return true;
    return false;
  }
  /// The element values that pass p computes or loads: everything that its reductions, its stores
  /// and the values it keeps need, except values kept by earlier passes.
  std::vector<bool> needed_in(int p) const;
  /// Bytes of dynamic shared memory.
  std::int64_t shared_bytes() const;
  std::int64_t blocks() const;
  int resident() const;

  const MapProgram& map_;
  const PartOptions options_;
  const std::int64_t length_;
  std::int64_t rows_ = 0;
  std::int64_t chunk_ = 0, chunks_ = 0;  // rows of a chunk; where columns are reduced too
  const std::vector<Level> levels_;
  const std::vector<int> depths_;
  int passes_ = 1;
  int wide_, lanes_ = 1, threads_ = 256, steps_ = 1;
  bool keeps_ = true, packs_ = false;
  bool ahead_ = false;        // packed loads are a row ahead
  std::vector<bool> kept_;    // in registers, from the pass that computes it on
  int staged_ = -1;           // the load whose row stays in shared memory
  std::vector<bool> packed_;  // loads that stay in registers as stored

 private:
  /// True if recomputing it costs less than a register for each element.
  bool is_cheap(int i) const {
    if (instr(i).code == MapCode::Affine) return true;
    return instr(i).code == MapCode::Compute && is_one_step(instr(i).op);
  }
  bool crosses(int i) const;
  /// Adds the values that must be kept so that a later pass than its own can compute instruction i.
  void find_leaves(int i, std::set<int>& leaves) const;
  /// Keeps elements that later passes need in registers: the elements themselves, or the one value
  /// from which they are cheap to compute.
  void choose_kept();
  /// True if it is a load that is the same for all rows, such as a layer's weight.
  bool is_shared(int i) const {
    return varies(i) && instr(i).code == MapCode::Load && !differs_by_row(instr(i).view);
  }
  /// True if a single pass, and not the first, needs a load. Loading it there uses no registers
  /// before, and it comes from the cache.
  bool is_first_needed_late(int i);
  /// The pass in which an instruction reads its arguments.
  int pass_of_use(int i) const {
    return instr(i).code == MapCode::RowReduce ? depths_[at(i)] - 1 : depths_[at(i)];
  }
  void choose_lanes(const InstrPrinter& printer, const ValueTable& values);
  /// Assigns a block to a row, and to all rows of a chunk.
  template <class Keepable>
  void choose_chunks(const InstrPrinter& printer, const ValueTable& values, std::int64_t units,
                     const Keepable& keepable);
  /// The loads that differ by row, if each is a single access of at most `bytes` for a thread's
  /// neighbours; otherwise none.
  std::vector<bool> packable(const InstrPrinter& printer, std::int64_t bytes) const;
  /// Prefetches packed rows while the previous row is computed, one warp a row, if there are many
  /// rows and each fits a lane's registers. Returns false if not.
  bool choose_ahead(const InstrPrinter& printer, std::int64_t units);
  /// Operands shared by all rows are loaded again, from the cache. So are rows that could be kept
  /// only in wider blocks: while one of several smaller blocks waits, another computes.
  void choose_packed(const InstrPrinter& printer);
  /// The only load of a long row of 32-bit elements, if several passes need it, stays in shared
  /// memory. A thread reads only what it has written itself.
  void choose_staged();
  /// True if registers keep more than loaded values and the values computed from them in one step.
  bool keeps_costly() const;
};

}  // namespace tenon::cuda
