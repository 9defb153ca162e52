// Sweeps with rows: reductions along the last axis whose results the same sweep uses. A row belongs
// to some lanes of a warp or to a block.
//
// Pass p computes what waits for p reductions of the row. Short rows stay in registers from pass to
// pass. Longer ones are computed again, each value in the pass that needs it: from their 16-bit
// elements, which stay in registers packed as they lie in memory, from elements of 32 bits that
// stay in shared memory, or, where they are longer still, loaded again.
//
// Columns of short rows are reduced on the way (map_sweeps.h): a block has a chunk of rows, one
// after the other, gathers in registers what its threads' columns come to, and leaves it in a row
// of a table for a sweep of columns.
#include <algorithm>
#include <bit>
#include <set>

#include "base/str.h"
#include "cuda/engines/maps/print_reduction.h"
#include "cuda/engines/maps/print_sweep.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kMostRowBlocks = 4096;  // of 256 threads or more
constexpr std::int64_t kWarpRow = 1024;        // longest row of a warp
constexpr int kShortBlock = 64, kWidestBlock = 1024;

/// Elements that a thread may keep, over all values, by the threads of its row: in the widest
/// blocks it has 64 registers.
constexpr std::int64_t most_kept(std::int64_t lanes) {
  return lanes > 512 ? 28 : (lanes > 32 ? 56 : 72);
}

/// Registers that a thread may fill with packed elements: in the widest blocks it has 64.
constexpr std::int64_t kMostPacked = 28;

/// Bytes of an element that may stay in shared memory.
constexpr std::int64_t kStagedSize = 4;
/// Shared memory beside a row's: what a reduction exchanges at most, 16 bytes a warp of the widest
/// block, and how many a margin is left for.
constexpr std::int64_t kReductionBytes = 512, kFewestReductions = 4;

// Accesses of a thread along a row whose columns are reduced too: the fewer threads a row has, the
// fewer instructions put its sums together.
constexpr std::int64_t kAccessesWithColumns = 3;

class RowsPrinter {
 public:
  RowsPrinter(const Sweep& sweep, const ValueTable& values, const PartOptions& options)
      : map_(sweep.map),
        options_(options),
        index_(fits_int(map_) ? "int" : "long long"),
        length_(map_.space[map_.space.rank() - 1]),
        levels_(levels_of(map_)),
        depths_(depths_of(map_)),
        wide_(vector_width(map_, values, true)),
        printer_(map_, values, coordinates(), arguments_, "a.", "Index") {
    passes_ = 1 + *std::max_element(depths_.begin(), depths_.end());
    rows_ = length_ == 0 ? size_of(map_, outer_axes()) : map_.space.numel() / length_;
    for (int i = 0; i < count(); ++i)
      if (instr(i).code == MapCode::RowReduce)
        reductions_.push_back({instr(i).op, instr(instr(i).args[0]).dtype, instr(i).dtype});
      else
        reductions_.push_back({});
    for (const MapReduce& reduce : map_.reduces)
      columns_.push_back({reduce.op, instr(reduce.source).dtype, values[at(reduce.value)].dtype});
    for (const MapInstr& one : map_.instrs)
      uses_random_ = uses_random_ || one.code == MapCode::Random;
    printer_.limit_alignment(wide_);
    choose_kept();
    choose_lanes(values);
    packed_.assign(map_.instrs.size(), false);
    choose_packed();
    if (!keeps_) kept_.assign(map_.instrs.size(), false);
    choose_staged();
    if (!options.one_block) printer_.allow_constant_loads(options.written);
  }

  Part print() {
    printer_.set_numbers();
    const std::string sweep = print_sweep();
    Part part;
    part.threads = threads_;
    if (staged_ >= 0) part.shared_bytes = divide_up(length_, wide_) * wide_ * kStagedSize;
    part.includes = cat(printer_.includes(), "#include \"cuda/kernels/map_reduce.cuh\"\n");
    part.code = cat("constexpr int kThreads = ", threads_, ", kLanes = ", lanes_, ", N = ", wide_,
                    in_steps() ? cat(", kSteps = ", steps_) : "", ";\nusing Index = ", index_,
                    ";\n", "\nstruct Arguments {\n", arguments_.members(), "};\n\n", sweep);
    part.arguments = arguments_.block();
    part.blocks =
        std::min(divide_up(rows_, threads_ / lanes_), kMostRowBlocks * std::max(256 / threads_, 1));
    if (has_columns()) part.blocks = chunks_;
    return part;
  }

 private:
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
  Coordinates coordinates() const {
    Coordinates out = coordinates_of(map_);
    out.names.back() = "j";
    return out;
  }

  /// Making it again costs less than a register for each element.
  bool is_cheap(int i) const {
    if (instr(i).code == MapCode::Affine) return true;
    return instr(i).code == MapCode::Compute && is_one_step(instr(i).op);
  }
  bool crosses(int i) const {
    for (int u = 0; u < count(); ++u)
      for (const int arg : instr(u).args)
        if (arg == i && pass_of_use(u) > depths_[at(i)]) return true;
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      if (map_.stores[s].source == i && store_pass(s) > depths_[at(i)]) return true;
    return false;
  }
  /// What must be kept so that instruction i can be made in a later pass than its own.
  void find_leaves(int i, std::set<int>& leaves) const {
    if (!varies(i)) return;
    if (kept_[at(i)] || !is_cheap(i)) {
      leaves.insert(i);
      return;
    }
    for (const int arg : instr(i).args)
      if (arg >= 0) find_leaves(arg, leaves);
  }
  /// Elements that later passes need stay in registers: they themselves, or the one value that they
  /// are cheaply made of.
  void choose_kept() {
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
      if (kept_[at(i)] && is_shared(i)) kept_[at(i)] = !comes_late(i);
  }
  /// Whether it is loaded, and the same for all rows: a layer's weight.
  bool is_shared(int i) const {
    return varies(i) && instr(i).code == MapCode::Load && !differs_by_row(instr(i).view);
  }
  /// Whether one pass alone, and not the first, needs a load: made then, it fills no registers
  /// before, and comes from the cache.
  bool comes_late(int i) {
    const bool was_kept = kept_[at(i)];
    kept_[at(i)] = false;
    int needing = 0;
    for (int p = 0; p < passes_; ++p) needing += needed_in(p)[at(i)] ? 1 : 0;
    const bool late = needing == 1 && !needed_in(0)[at(i)];
    kept_[at(i)] = was_kept;
    return late;
  }
  /// The pass in which an instruction reads its arguments.
  int pass_of_use(int i) const {
    return instr(i).code == MapCode::RowReduce ? depths_[at(i)] - 1 : depths_[at(i)];
  }
  int store_pass(std::size_t s) const {
    const MapStore& store = map_.stores[s];
    return loads(map_, store.view.value) ? passes_ - 1 : depths_[at(store.source)];
  }
  bool once_a_row(std::size_t s) const { return instr(map_.stores[s].source).per_row; }

  void choose_lanes(const ValueTable& values) {
    std::int64_t loaded = 0, late = 0;
    for (int i = 0; i < count(); ++i) {
      if (!varies(i) || instr(i).code != MapCode::Load) continue;
      ++loaded;
      late += is_shared(i) && comes_late(i) ? 1 : 0;
    }
    const std::int64_t kept = std::count(kept_.begin(), kept_.end(), true);
    const auto pow2 = [](std::int64_t n) {
      return static_cast<std::int64_t>(
          std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
    };
    const std::int64_t units = divide_up(length_, wide_);
    const auto fits = [&](std::int64_t lanes, std::int64_t arrays) {
      return divide_up(units, lanes) * wide_ * std::max<std::int64_t>(arrays, 1) <=
             most_kept(lanes);
    };
    const auto keepable = [&](std::int64_t lanes) {
      return fits(lanes, std::max<std::int64_t>(loaded, kept));
    };
    threads_ = options_.threads;
    if (has_columns()) return choose_chunks(values, units, keepable);
    lanes_ = static_cast<int>(pow2(std::min<std::int64_t>(units, 32)));
    // The only row is a whole block's, however short: its length may well be the batch.
    const bool is_short = map_.space.rank() > 1 && length_ <= kWarpRow && !options_.one_block;
    const auto early = std::max(loaded - late, kept);
    keeps_ = keepable(lanes_);
    if (is_short && !keeps_ && fits(threads_, early)) {
      // Few warps: the fewer wait for one another, the more rows are under way.
      while (threads_ > kShortBlock && fits(threads_ / 2, early)) threads_ /= 2;
      lanes_ = threads_;
      keeps_ = true;
    } else if (map_.space.rank() == 1 || length_ > kWarpRow || !keeps_) {
      // The smallest block that keeps a row in registers; else one that walks along it.
      while (!options_.one_block && threads_ < kWidestBlock && !keepable(threads_)) threads_ *= 2;
      lanes_ = threads_;
      keeps_ = keepable(lanes_);
    }
    steps_ = static_cast<int>(std::max<std::int64_t>(divide_up(units, lanes_), 1));
  }

  /// A block to a row, and to all rows of a chunk.
  template <class Keepable>
  void choose_chunks(const ValueTable& values, std::int64_t units, const Keepable& keepable) {
    const auto wanted = static_cast<std::uint64_t>(divide_up(units, kAccessesWithColumns));
    lanes_ = threads_ = std::clamp(static_cast<int>(std::bit_ceil(wanted)), 64, 256);
    keeps_ = keepable(lanes_);
    steps_ = static_cast<int>(divide_up(units, lanes_));
    chunks_ = values[at(map_.reduces[0].value)].shape[0];
    chunk_ = divide_up(rows_, chunks_);
  }

  /// Loads of rows of the region's own, all of them of 16 bits, are packed; what all rows share is
  /// loaded again, from the cache. So are rows that could be kept in wider blocks alone: smaller
  /// ones hide more of one another's waiting.
  void choose_packed() {
    if (options_.one_block || has_columns() || passes_ < 2 || wide_ < 8 || keeps_costly()) return;
    std::vector<bool> packed(map_.instrs.size());
    for (int i = 0; i < count(); ++i) {
      if (!varies(i) || instr(i).code != MapCode::Load || !differs_by_row(instr(i).view)) continue;
      const View& view = instr(i).view;
      if (item_size(instr(i).dtype) != 2 || printer_.inner_step(view) != InnerStep::One ||
          printer_.alignment(view) < wide_)
        return;
      packed[at(i)] = true;
    }
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
  /// The one load of a long row of 32 bits an element, which several passes need, stays in shared
  /// memory; a thread reads there what it has written itself.
  void choose_staged() {
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
  /// Whether registers keep more than what was loaded and what is made of that in a step.
  bool keeps_costly() const {
    for (int i = 0; keeps_ && i < count(); ++i)
      if (kept_[at(i)] && instr(i).code != MapCode::Load && !is_cheap(i)) return true;
    return false;
  }
  bool differs_by_row(const View& view) const {
    for (int d = 0; d + 1 < map_.space.rank(); ++d)
      if (map_.space[d] != 1 && view.stride[d] != 0) return true;
    return false;
  }
  /// Whether a thread has a fixed number of steps along the row, not a loop.
  bool in_steps() const { return keeps_ || packs_ || has_columns(); }

  // ---- Statements

  std::string inside() const {
    std::string text = lanes_ == threads_ ? "" : "active";
    if (in_steps()) text += cat(text.empty() ? "" : " && ", "j < length");
    return text;
  }
  std::string kept_row(char kind, int i) const { return cat(kind, i, keeps_ ? "[s]" : ""); }
  std::string kept_element(char kind, int i) const { return kept_row(kind, i) + "[i]"; }

  void declare(CodeWriter& out, char kind, int i) {
    out.line(cat(printer_.type(i), " ", kind, i, keeps_ ? "[kSteps]" : "", "[N];"));
  }

  /// All packed loads of a row are under way before the first is waited for.
  void load_packed(CodeWriter& out) {
    for (int i = 0; i < count(); ++i)
      if (packed_[at(i)]) out.line(cat(packed_type(i), " w", i, "[kSteps];"));
    open_steps(out, inside());
    for (int i = 0; i < count(); ++i) {
      if (!packed_[at(i)]) continue;
      const View& view = instr(i).view;
      out.line(cat("w", i, "[s] = ", printer_.load_function(view), "_packed<N>(",
                   printer_.address(view, true), ");"));
    }
    close_steps(out, inside());
  }
  std::string packed_type(int i) const {
    return cat("Packed<", memory_type(instr(i).dtype), ", N>");
  }

  void load_elements(CodeWriter& out, int i) {
    if (packed_[at(i)]) {
      out.line(cat("widen_row(x", i, ", w", i, "[s]);"));
      return printer_.set(i, kept_element('x', i));
    }
    if (i == staged_ && is_staged_) {
      out.line(cat("load_row<N>(x", i, ", staged + j);"));
      return printer_.set(i, kept_element('x', i));
    }
    const View& view = instr(i).view;
    const std::string address = printer_.address(view, true), x = kept_row('x', i);
    if (printer_.inner_step(view) == InnerStep::One) {
      out.line(cat(printer_.load_function(view), "_row<", printer_.alignment(view), ">(", x, ", ",
                   address, ");"));
    } else {
      out.line("#pragma unroll");
      out.line(cat("for (int i = 0; i < N; ++i) ", x, "[i] = ", printer_.load_function(view), "(",
                   address, " + i * ", printer_.inner_stride(view), ");"));
    }
    if (i == staged_) out.line(cat("save_row<N>(staged + j, x", i, ");"));
    printer_.set(i, kept_element('x', i));
  }

  void open_steps(CodeWriter& out, const std::string& guard) {
    if (in_steps()) {
      out.line("#pragma unroll");
      out.line("for (int s = 0; s < kSteps; ++s) {");
      out.line("const Index j = (s * kLanes + lane) * N;");
      out.line(cat("if (", guard, ") {"));
    } else {
      out.line("#pragma unroll 4");
      out.line("for (Index j = lane * N; j < length; j += kLanes * N) {");
      if (!guard.empty()) out.line(cat("if (", guard, ") {"));
    }
  }
  void close_steps(CodeWriter& out, const std::string& guard) {
    if (in_steps() || !guard.empty()) out.line("}");
    out.line("}");
  }

  /// A value that is the same for the whole row; loads of rows that there are not are left out.
  void print_row_value(CodeWriter& out, int i) {
    if (level(i) == Level::Element || printer_.is_set(i)) return;
    const std::string type = printer_.type(i);
    switch (instr(i).code) {
      case MapCode::Load:
        out.line(cat("const ", type, " x", i, " = ",
                     lanes_ == threads_ ? "" : "!active ? " + zero_of(instr(i).dtype) + " : ",
                     "load(", printer_.address(instr(i).view, true), ");"));
        return printer_.set(i, cat("x", i));
      case MapCode::Affine:
        out.line(cat("const ", type, " t", i, " = ", printer_.affine(i, ""), ";"));
        return printer_.set(i, cat("t", i));
      case MapCode::Random:
        out.line(printer_.random_draw(i));
        out.line(cat("const ", type, " t", i, " = ",
                     printer_.random_element(
                         i, cat("random_row<1>(r", i, ", static_cast<long long>(row))"), "0"),
                     ";"));
        return printer_.set(i, cat("t", i));
      case MapCode::Compute:
        return out.line(printer_.compute(i));
      default:
        return;
    }
  }

  /// The elements' values that pass p computes or loads: all that its reductions, its stores and
  /// what it keeps are made of, but for what earlier passes kept.
  std::vector<bool> needed_in(int p) const {
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

  void print_element(CodeWriter& out, int i) {
    std::string text;
    switch (instr(i).code) {
      case MapCode::Affine:
        text = printer_.affine(i, "i");
        break;
      case MapCode::Random:
        text = printer_.random_element(i, cat("q", i), "i");
        break;
      case MapCode::Compute:
        out.line(printer_.compute(i));
        text = "";
        break;
      default:
        return;
    }
    const std::string result = cat("t", i);
    if (!text.empty()) out.line(cat("const ", printer_.type(i), " ", result, " = ", text, ";"));
    printer_.set(i, result);
    if (kept_[at(i)]) out.line(cat("k", i, "[s][i] = ", result, ";"));
  }

  void print_pass(CodeWriter& out, int p) {
    const std::vector<bool> needed = needed_in(p);
    std::vector<int> reduced;
    bool any = false, any_load = false;
    for (int i = 0; i < count(); ++i) {
      if (instr(i).code == MapCode::RowReduce && depths_[at(i)] - 1 == p) reduced.push_back(i);
      any = any || needed[at(i)];
      any_load = any_load || (needed[at(i)] && instr(i).code == MapCode::Load);
    }
    bool any_store = false;
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      any_store = any_store || (store_pass(s) == p && !once_a_row(s));
    for (const MapReduce& reduce : map_.reduces) any = any || depths_[at(reduce.source)] == p;
    for (const int i : reduced)
      out.line(cat(reductions_[at(i)].type(), " g", i, " = ", reductions_[at(i)].neutral(), ";"));
    const bool by_first = options_.by_all && any_store;
    if (by_first) out.line("if (blockIdx.x == 0) {");
    if (any || any_store || !reduced.empty()) print_elements_of(out, p, needed, reduced, any_load);
    if (by_first) out.line("}");
    for (const int i : reduced) print_reduced(out, i);
  }

  void print_elements_of(CodeWriter& out, int p, const std::vector<bool>& needed,
                         const std::vector<int>& reduced, bool any_load) {
    for (int i = 0; keeps_ && i < count(); ++i) {
      if (!needed[at(i)]) continue;
      if (instr(i).code == MapCode::Load) declare(out, 'x', i);
      if (instr(i).code != MapCode::Load && kept_[at(i)]) declare(out, 'k', i);
    }
    for (int i = 0; i < count(); ++i)
      if (needed[at(i)] && instr(i).code == MapCode::Random) out.line(printer_.random_draw(i));
    if (keeps_ && any_load) {  // all loads are under way before the first result is waited for
      open_steps(out, inside());
      for (int i = 0; i < count(); ++i)
        if (needed[at(i)] && instr(i).code == MapCode::Load) load_elements(out, i);
      close_steps(out, inside());
    }
    open_steps(out, inside());
    for (int i = 0; i < count(); ++i) {
      if (!needed[at(i)]) continue;
      if (!keeps_ && instr(i).code == MapCode::Load) {
        declare(out, 'x', i);
        load_elements(out, i);
      }
      if (instr(i).code == MapCode::Random)
        out.line(cat("const RandomRow<N> q", i, " = random_row<N>(r", i,
                     ", static_cast<long long>(row) * a.length + j);"));
    }
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      if (store_pass(s) == p && !once_a_row(s))
        out.line(cat(printer_.type(map_.stores[s].source), " y", s, "[N];"));
    out.line("#pragma unroll");
    out.line("for (int i = 0; i < N; ++i) {");
    for (int i = 0; i < count(); ++i)
      if (needed[at(i)]) print_element(out, i);
    for (const int i : reduced) {
      const Reduction& r = reductions_[at(i)];
      out.line(cat("g", i, " = ", r.function(), "::combine(g", i, ", ",
                   r.element(printer_.get(instr(i).args[0]), "static_cast<long long>(j + i)"),
                   ");"));
    }
    for (std::size_t r = 0; r < columns_.size(); ++r)
      if (depths_[at(map_.reduces[r].source)] == p)
        out.line(cat("of", r, "[s][i] = ", columns_[r].function(), "::combine(of", r, "[s][i], ",
                     columns_[r].element(printer_.get(map_.reduces[r].source), "0"), ");"));
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      if (store_pass(s) == p && !once_a_row(s))
        out.line(cat("y", s, "[i] = ", printer_.get_stored(map_.stores[s].source), ";"));
    out.line("}");
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      if (store_pass(s) == p && !once_a_row(s)) printer_.save_row(out, s);
    close_steps(out, inside());
    is_staged_ = is_staged_ || (staged_ >= 0 && needed[at(staged_)]);
    // From now on an element is what was kept of it.
    for (int i = 0; keeps_ && i < count(); ++i)
      if (needed[at(i)] && instr(i).code != MapCode::Load && kept_[at(i)])
        printer_.set(i, kept_element('k', i));
  }

  void print_reduced(CodeWriter& out, int i) {
    const Reduction& r = reductions_[at(i)];
    out.line(cat("g", i, " = ",
                 lanes_ == threads_ ? cat("reduce_block<", r.function(), ", kThreads>")
                                    : cat("reduce_lanes<", r.function(), ", kLanes>"),
                 "(g", i, ");"));
    out.line(cat("const ", printer_.type(i), " t", i, " = ", r.result(cat("g", i)), ";"));
    printer_.set(i, cat("t", i));
  }

  void print_row_stores(CodeWriter& out) {
    bool any = false, overwrites = false;
    for (std::size_t s = 0; s < map_.stores.size(); ++s) {
      any = any || once_a_row(s);
      overwrites = overwrites || (once_a_row(s) && loads(map_, map_.stores[s].view.value));
    }
    if (!any) return;
    // All lanes have read the row's values by then.
    if (overwrites) out.line(lanes_ == threads_ ? "__syncthreads();" : "__syncwarp();");
    out.line(lanes_ == threads_ ? "if (lane == 0) {" : "if (active && lane == 0) {");
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      if (once_a_row(s))
        out.line(cat("save(", printer_.address(map_.stores[s].view, false), ", ",
                     printer_.get_stored(map_.stores[s].source), ");"));
    out.line("}");
  }

  /// What the thread's columns come to, before any row.
  void print_neutral(CodeWriter& out) {
    for (std::size_t r = 0; r < columns_.size(); ++r)
      out.line(cat(columns_[r].type(), " of", r, "[kSteps][N];"));
    out.line("#pragma unroll");
    out.line("for (int s = 0; s < kSteps; ++s)");
    out.line("#pragma unroll");
    out.line("for (int i = 0; i < N; ++i) {");
    for (std::size_t r = 0; r < columns_.size(); ++r)
      out.line(cat("of", r, "[s][i] = ", columns_[r].neutral(), ";"));
    out.line("}");
  }

  void print_chunk_end(CodeWriter& out) {
    open_steps(out, inside());
    for (std::size_t r = 0; r < columns_.size(); ++r)
      out.line(cat("save_row<N>(", printer_.pointer(map_.reduces[r].value),
                   " + chunk * length + j, of", r, "[s]);"));
    close_steps(out, inside());
  }

  /// The loop over rows `first` of all, or of a chunk.
  void open_rows(CodeWriter& out) {
    if (!has_columns()) {
      out.line("for (Index first = Index(block) * (kThreads / kLanes); first < rows;");
      out.line("     first += Index(blocks) * (kThreads / kLanes)) {");
      return;
    }
    arguments_.number("chunk", chunk_);
    arguments_.number("chunks", chunks_);
    out.line("for (Index chunk = Index(block); chunk < Index(a.chunks); chunk += Index(blocks)) {");
    print_neutral(out);
    out.line("const Index start = chunk * Index(a.chunk), stop = start + Index(a.chunk);");
    out.line("for (Index first = start; first < stop && first < rows; ++first) {");
  }

  std::string print_sweep() {
    CodeWriter out;
    arguments_.number("rows", rows_);
    arguments_.number("length", length_);
    out.line(
        "__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned "
        "blocks) {");
    out.line("const Index rows = Index(a.rows), length = Index(a.length);");
    out.line("const Index lane = Index(threadIdx.x) % kLanes;");
    if (staged_ >= 0) {
      const std::string type = memory_type(instr(staged_).dtype);
      out.line("TENON_DYNAMIC_SHARED(shared);");
      out.line(cat(type, "* const staged = reinterpret_cast<", type, "*>(shared);"));
    }
    open_rows(out);
    const std::vector<int> outer = outer_axes();
    const bool alone = lanes_ == threads_;
    if (!alone || !outer.empty() || uses_random_)
      out.line(alone ? "const Index row = first;"
                     : "const Index row = first + Index(threadIdx.x) / kLanes;");
    if (!alone) out.line("const bool active = row < rows;");
    if (!outer.empty()) print_coordinates(out, arguments_, map_, "row", outer, 1);
    if (packs_) load_packed(out);
    for (int p = 0; p < passes_; ++p) {
      for (int i = 0; i < count(); ++i)
        if (depths_[at(i)] == p) print_row_value(out, i);
      print_pass(out, p);
    }
    print_row_stores(out);
    out.line("}");
    if (has_columns()) {
      print_chunk_end(out);
      out.line("}");
    }
    out.line("}");
    return out.text();
  }

  const MapProgram& map_;
  const PartOptions options_;
  const std::string index_;
  const std::int64_t length_;
  std::int64_t rows_ = 0;
  std::int64_t chunk_ = 0, chunks_ = 0;  // rows of a chunk; where columns are reduced too
  const std::vector<Level> levels_;
  const std::vector<int> depths_;
  int passes_ = 1;
  int wide_, lanes_ = 1, threads_ = 256, steps_ = 1;
  bool keeps_ = true, packs_ = false, uses_random_ = false;
  std::vector<bool> kept_;    // in registers, from the pass that makes it on
  int staged_ = -1;           // the load whose row stays in shared memory
  bool is_staged_ = false;    // by the passes printed so far
  std::vector<bool> packed_;  // loads that stay in registers as they lie in memory
  Arguments arguments_;
  InstrPrinter printer_;
  std::vector<Reduction> reductions_, columns_;
};

}  // namespace

Part print_rows(const Sweep& sweep, Sweeps& sweeps, const PartOptions& options) {
  return RowsPrinter(sweep, sweeps.values, options).print();
}

}  // namespace tenon::cuda
