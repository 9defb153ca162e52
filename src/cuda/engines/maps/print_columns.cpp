// Prints kernels that reduce one set of axes. A block has a tile of results and a chunk of the
// reduced axes. The length of a chunk depends on sizes and never on the GPU. Partial results go
// through the workspace, and the last block of a tile combines them in order.
//
// `across`: the last axis is kept; neighbouring threads have neighbouring results and walk down the
// reduced axes. Otherwise the last axis is reduced, and neighbouring threads walk along it.
// Bandwidth-bound: the loads of several steps of a thread are in flight together, even if the
// thread does not take all of these steps.
#include <algorithm>
#include <bit>
#include <map>

#include "base/str.h"
#include "cuda/engines/maps/print_loop_nest.h"
#include "cuda/engines/maps/print_reduction.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kMostColumnBlocks = 1024, kBusyBlocks = 264;
constexpr int kMostUnrolled = 8;         // steps of a thread whose loads go together
constexpr std::int64_t kRegisters = 32;  // for the results of these loads
// Combining chunks of moments costs more than combining sums, so moments have fewer chunks: about
// two blocks per multiprocessor of a large GPU. The chunks of one tile are limited too, because its
// last block reads them all.
constexpr std::int64_t kMomentBlocks = 256, kMomentChunks = 128;
constexpr std::int64_t kExchanged = 16384;  // bytes of shared memory for threads' partial results
// With fewer float32 results, more threads gain more than wider accesses.
constexpr std::int64_t kWideAcross = 512;
constexpr int kMostTile = 16;  // threads with results side by side

class ColumnsPrinter {
 public:
  ColumnsPrinter(const LoopNest& nest, LoopNests& nests, const PartOptions& options)
      : map_(nest.map),
        loop_nests_(nests),
        options_(options),
        index_(fits_int(map_) ? "int" : "long long"),
        kept_(axes_where(map_, axes(), false)),
        reduced_(axes_where(map_, axes(), true)),
        kept_size_(size_of(map_, kept_)),
        reduced_size_(size_of(map_, reduced_)),
        across_((axes() >> (map_.space.rank() - 1) & 1u) == 0),
        wide_(vector_width(map_, nests.values, true)),
        printer_(map_, nests.values, coordinates_of(map_), arguments_, "a.", "Index"),
        elements_(printer_, map_) {
    for (const MapReduce& reduce : map_.reduces)
      reductions_.push_back({reduce.op, map_.instrs[at(reduce.source)].dtype,
                             nests.values[at(reduce.value)].dtype, reduce.deviations});
    find_moments();
    if (across_) limit_width();
    printer_.limit_alignment(wide_);
    choose_tile();
    choose_unrolled();
    choose_chunks();
    if (!options.one_block) printer_.allow_constant_loads(options.written);
  }

  Part print() {
    printer_.set_numbers();
    Part then;
    std::vector<ValueId> results;
    for (const MapReduce& reduce : map_.reduces) results.push_back(reduce.value);
    if (follows()) then = print_results(*options_.then, results, loop_nests_.values);
    const std::string hold = print_hold(), body = print_body(), nest = print_loop_nest();
    Part part;
    part.threads = options_.threads;
    part.includes =
        cat(printer_.includes(), then.includes, "#include \"cuda/kernels/maps/map_reduce.cuh\"\n");
    const std::string of_results =
        follows() ? cat("namespace then {\n\n", then.code, "\n}  // namespace then\n\n") : "";
    part.code = cat(of_results, "constexpr int kThreads = ", options_.threads, ", kKept = ", tile_,
                    ", kReduced = ", options_.threads / tile_, ";\nusing Index = ", index_,
                    ";\n__device__ unsigned tickets[", kTickets, "];\n\nstruct Arguments {\n",
                    arguments_.members(), follows() ? "  then::Arguments then;\n" : "", "};\n\n",
                    hold, "\n", body, "\n", nest);
    part.resident = resident();
    part.arguments = arguments_.block();
    append(part.arguments, then.arguments);
    part.blocks = tiles_ * chunks_;
    if (chunks_ > 1) part.tickets = tiles_;
    part.ticket_word = ticket_word_;
    return part;
  }

 private:
  /// A variance comes with the mean; the sum of the same numbers is taken from that mean.
  void find_moments() {
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      deviates_ = deviates_ || reductions_[r].deviations;
      if (map_.reduces[r].within >= 0) numbers_ = map_.reduces[r].rows;
      int moments = -1;
      for (std::size_t o = 0; o < reductions_.size(); ++o)
        if (reductions_[o].deviations && !reductions_[r].deviations &&
            reductions_[r].op == Op::Sum && map_.reduces[o].source == map_.reduces[r].source &&
            reductions_[o].gathered() == reductions_[r].gathered())
          moments = static_cast<int>(o);
      moments_of_.push_back(moments);
    }
  }
  bool follows() const { return options_.then != nullptr; }
  /// True if threads accumulate the numbers of the result.
  bool gathers(std::size_t r) const { return moments_of_[r] < 0; }

  std::uint32_t axes() const { return map_.reduces[0].axes; }
  int kept_wide() const { return across_ ? wide_ : 1; }
  int reduced_wide() const { return across_ ? 1 : wide_; }
  /// Results of a block, as a constant of the generated code.
  std::string line() const { return wide_ > 1 && across_ ? cat("kKept * ", wide_) : "kKept"; }

  void limit_width() {
    if (kept_size_ < kWideAcross && !reads_16_bit()) wide_ = 1;
    std::map<std::string, std::int64_t> bytes;
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      if (gathers(r))
        bytes[cat(reductions_[r].function(), reductions_[r].type())] = reductions_[r].size();
    std::int64_t together = 0;
    for (const auto& [kind, size] : bytes) together += size;
    together = together * options_.threads * kMostTile / 32;
    while (wide_ > 1 && together * wide_ > kExchanged) wide_ /= 2;
  }

  /// True if the reduced numbers are 16-bit.
  bool reads_16_bit() const {
    return std::any_of(map_.instrs.begin(), map_.instrs.end(), [this](const MapInstr& instr) {
      if (instr.code != MapCode::Load || !varies(instr.view)) return false;
      const DType dtype = loop_nests_.values[at(instr.view.value)].dtype;
      return is_floating(dtype) && item_size(dtype) == 2;
    });
  }
  /// True if the view varies along the reduced axes; otherwise the compiler hoists the load out of
  /// the loop.
  bool varies(const View& view) const {
    return std::any_of(reduced_.begin(), reduced_.end(),
                       [&](int d) { return view.stride[d] != 0; });
  }

  void choose_tile() {
    const auto pow2 = [](std::int64_t n) {
      return static_cast<int>(
          std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
    };
    if (across_) {
      tile_ = pow2(std::min<std::int64_t>(kept_size_ / wide_, kMostTile));
    } else {
      const int lanes =
          pow2(std::min<std::int64_t>(divide_up(reduced_size_, wide_), options_.threads));
      // One warp per result, or the whole block if a warp would take many steps.
      tile_ = lanes > 4 * 32 ? 1 : options_.threads / std::min(lanes, 32);
    }
    tiles_ = divide_up(kept_size_, std::int64_t{tile_} * kept_wide());
  }

  void choose_unrolled() {
    std::int64_t registers = 0;
    for (const MapInstr& instr : map_.instrs)
      if (instr.code == MapCode::Load && varies(instr.view))
        registers += divide_up(wide_ * static_cast<std::int64_t>(item_size(
                                           loop_nests_.values[at(instr.view.value)].dtype)),
                               4);
    unrolled_ = kMostUnrolled;
    while (unrolled_ > 1 && unrolled_ * registers > kRegisters) unrolled_ /= 2;
  }

  /// Elements of the reduced axes that all threads of a result process in one step; and the number
  /// of such steps, with a single chunk.
  std::int64_t step() const { return std::int64_t{options_.threads / tile_} * reduced_wide(); }
  std::int64_t steps() const { return divide_up(reduced_size_, step()); }

  /// Prefetched loads and sums fit the registers of four blocks of 256 threads, unless there is
  /// much other computation.
  int resident() const {
    std::int64_t sums = 0;
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      if (gathers(r)) sums += reductions_[r].size() / 4;
    const bool fits = sums * kept_wide() <= 16 && map_.instrs.size() <= 16;
    return fits && options_.threads == 256 ? 4 : 0;
  }

  void choose_chunks() {
    const std::int64_t fewest = std::max(unrolled_, 4);
    std::int64_t of_chunk = fewest;
    if (deviates_) {
      const std::int64_t chunks = std::clamp<std::int64_t>(
          kMomentBlocks / std::max<std::int64_t>(tiles_, 1), 1, kMomentChunks);
      of_chunk = std::max(of_chunk, divide_up(divide_up(steps(), chunks), unrolled_) * unrolled_);
    } else {
      // A tile's last block reads the partial results of all chunks. Once there are enough blocks
      // to keep memory busy, this should not take more rounds than a chunk itself.
      const std::int64_t lanes = options_.threads / tile_;
      const auto blocks = [&] { return tiles_ * divide_up(steps(), of_chunk); };
      while ((blocks() > kMostColumnBlocks && of_chunk < steps()) ||
             (blocks() > kBusyBlocks && of_chunk * of_chunk * lanes < steps()))
        of_chunk *= 2;
    }
    // With little work, a second round of combining costs more than it gains.
    const bool one = options_.one_block || tiles_ > kMostColumnBlocks / 2 || steps() <= 2 * fewest;
    chunks_ = one ? 1 : std::max<std::int64_t>(divide_up(steps(), of_chunk), 1);
    chunk_ = one ? std::max<std::int64_t>(reduced_size_, 1) : of_chunk * step();
  }

  /// Parameters of a function for N neighbours.
  std::string coordinates() const {
    std::string text = "const Arguments& a";
    for (int d = 0; d < map_.space.rank(); ++d) text += cat(", Index c", d);
    return text;
  }

  /// The loads of the N neighbours.
  std::string print_hold() {
    CodeWriter members, loads(1), out;
    members.line("template <int N>");
    members.line("struct Held {");
    for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i)
      if (map_.instrs[at(i)].code == MapCode::Load) printer_.hold_row(members, loads, i);
    members.line("};");
    out.line("template <int N>");
    out.line(cat("__device__ __forceinline__ Held<N> hold(", coordinates(), ") {"));
    out.line("Held<N> held;");
    return cat(members.text(), out.text(), loads.text(), "  return held;\n}\n");
  }

  /// The contributions of the N neighbours to the results, and their stores; nothing for neighbours
  /// that only replace positions outside.
  std::string print_body() {
    CodeWriter out;
    std::string gathered_arguments;
    if (deviates_) gathered_arguments += ", bool is_first";
    if (elements_.uses_position()) gathered_arguments += ", long long position";
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      if (gathers(r)) gathered_arguments += cat(", ", gathered_type(r), " (&g", r, ")[kResults]");
    out.line("template <int N, int kResults>");
    out.line(cat("__device__ __forceinline__ void elements(", coordinates(),
                 ", const Held<N>& held, bool inside", gathered_arguments, ") {"));
    elements_.prepare(out, "position");
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat(printer_.type(map_.stores[s].source), " y", s, "[N];"));
    out.line("#pragma unroll");
    out.line("for (int i = 0; i < N; ++i) {");
    elements_.inside(out);
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat("y", s, "[i] = ", printer_.get_stored(map_.stores[s].source), ";"));
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      if (!gathers(r)) continue;
      const std::string element = reductions_[r].element(printer_.get(map_.reduces[r].source), "0");
      if (map_.reduces[r].within >= 0)
        out.line(cat("if (inside) g", r, "[i % kResults].add(", element, ", ",
                     printer_.get(map_.reduces[r].within), ", ", numbers_,
                     ", is_first && i < kResults);"));
      else if (reductions_[r].deviations)
        out.line(cat("if (inside) g", r, "[i % kResults].add(", element,
                     ", is_first && i < kResults);"));
      else
        out.line(cat("if (inside) g", r, "[i % kResults] = ", reductions_[r].function(),
                     "::combine(g", r, "[i % kResults], ", element, ");"));
    }
    out.line("}");
    if (!map_.stores.empty()) {
      out.line("if (inside) {");
      for (std::size_t s = 0; s < map_.stores.size(); ++s) printer_.save_row(out, s);
      out.line("}");
    }
    out.line("}");
    return out.text();
  }

  /// Combines the threads' partial results into the tile's results: `name`0, `name`1, … in the
  /// leading threads.
  void print_combine(CodeWriter& out, const std::string& name) {
    const auto print = [&](std::size_t r, const std::string& value) {
      out.line(cat("const ", reductions_[r].type(), " ", name, r, " = ", value, ";"));
    };
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      if (gathers(r)) print(r, combined(r));
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      if (const int m = moments_of_[r]; m >= 0)
        print(r, cat(name, m, ".count * ", name, m, ".mean"));
  }

  std::string combined(std::size_t r) const {
    const int lanes = options_.threads / tile_;
    const Reduction& reduction = reductions_[r];
    const std::string count = cat(number_type(r), "(count)"), op = reduction.function();
    if (across_)
      return reduction.deviations ? cat("reduce_moments<kThreads, kKept>(g", r, ", ", count, ")")
                                  : cat("reduce_columns<", op, ", kThreads, kKept>(g", r, ")");
    const std::string own =
        reduction.deviations ? cat("g", r, "[0].moments(", count, ")") : cat("g", r, "[0]");
    return lanes <= 32 ? cat("reduce_lanes<", op, ", kReduced>(", own, ")")
                       : cat("reduce_block<", op, ", kThreads>(", own, ")");
  }

  void print_save(CodeWriter& out, const std::string& name) {
    out.line("if (leads) {");
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      out.line(cat("save(", printer_.pointer(map_.reduces[r].value), " + place, ",
                   reductions_[r].result(cat(name, r)), ");"));
    out.line("}");
    for (std::size_t r = 0; follows() && r < reductions_.size(); ++r)
      out.line(cat("given", r, " = ", reductions_[r].result(cat(name, r)), ";"));
  }

  /// The type that a thread accumulates for a result.
  std::string gathered_type(std::size_t r) const {
    const Reduction& reduction = reductions_[r];
    return reduction.deviations ? cat("Spread<", number_type(r), ">") : reduction.type();
  }
  std::string number_type(std::size_t r) const { return compute_type(reductions_[r].gathered()); }

  /// Partial results of a chunk in the workspace. Moments are stored as the mean and, in a separate
  /// table, the squares; the count of a chunk is known.
  std::string partial(std::size_t r, const char* suffix = "") {
    const std::string name = cat("partial", r, suffix),
                      type = reductions_[r].deviations ? number_type(r) : reductions_[r].type();
    if (chunks_ > 1) {
      const ValueId value =
          add_temporary(loop_nests_, reductions_[r].gathered(), {chunks_ * kept_size_});
      arguments_.pointer(cat(type, "*"), name, value);
    } else {
      arguments_.word(cat(type, "*"), name, 0);
    }
    return "a." + name;
  }

  /// `name`: neighbouring results of a chunk.
  void print_partial(CodeWriter& out, const std::string& name, const std::string& table,
                     const std::string& type) {
    out.line(cat("const auto ", name, " = *reinterpret_cast<const Packed<", type, ", ", kept_wide(),
                 ">*>(", table, " + p * kept + k);"));
  }

  void print_neutral(CodeWriter& out, bool declare) {
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      if (!gathers(r)) continue;
      if (declare) out.line(cat(gathered_type(r), " g", r, "[", kept_wide(), "];"));
      const std::string neutral =
          reductions_[r].deviations ? cat(gathered_type(r), "{0, 0, 0}") : reductions_[r].neutral();
      out.line(cat("for (int v = 0; v < ", kept_wide(), "; ++v) g", r, "[v] = ", neutral, ";"));
    }
    // The count of the thread's accumulated numbers.
    if (deviates_) out.line(declare ? "Index count = 0;" : "count = 0;");
  }

  void print_chunks(CodeWriter& out) {
    if (follows()) out.line("bool complete = Index(a.chunks) == 1;");
    for (std::size_t r = 0; follows() && r < reductions_.size(); ++r)
      out.line(cat(compute_type(reductions_[r].to), " given", r, " = 0;"));
    out.line("if (Index(a.chunks) == 1) {");
    print_save(out, "sum");
    out.line("} else {");
    out.line("if (leads) {");
    std::vector<std::string> partials(reductions_.size()), squares(reductions_.size());
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      if (!gathers(r)) continue;
      partials[r] = partial(r);
      const bool deviations = reductions_[r].deviations;
      out.line(cat(partials[r], "[part * kept + place] = sum", r, deviations ? ".mean;" : ";"));
      if (!deviations) continue;
      squares[r] = partial(r, "_squares");
      out.line(cat(squares[r], "[part * kept + place] = sum", r, ".squares;"));
    }
    out.line("}");
    out.line(
        "if (is_last_block(&tickets[Index(a.first_ticket) + column], "
        "static_cast<unsigned>(a.chunks))) {");
    print_neutral(out, false);
    out.line("if (active) {");
    out.line("#pragma unroll 4");
    out.line("for (Index p = lane; p < Index(a.chunks); p += kReduced) {");
    if (deviates_) {
      out.line("const Index before = p * Index(a.chunk), left = Index(a.reduced) - before;");
      out.line("const Index of_part = left < Index(a.chunk) ? left : Index(a.chunk);");
      out.line(cat("count += of_part", numbers_ > 1 ? cat(" * ", numbers_) : "", ";"));
    }
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      if (!gathers(r)) continue;
      const std::string name = cat("part", r),
                        each = cat("for (int v = 0; v < ", kept_wide(), "; ++v) g", r, "[v]");
      if (reductions_[r].deviations) {
        const std::string type = number_type(r);
        print_partial(out, name, partials[r], type);
        print_partial(out, name + "_squares", squares[r], type);
        out.line(cat(each, ".add(", name, ".element[v], ", name, "_squares.element[v], ", type,
                     "(of_part", numbers_ > 1 ? cat(" * ", numbers_) : "", "), p == lane);"));
      } else {
        print_partial(out, name, partials[r], reductions_[r].type());
        out.line(cat(each, " = ", reductions_[r].function(), "::combine(g", r, "[v], ", name,
                     ".element[v]);"));
      }
    }
    out.line("}");
    out.line("}");
    print_combine(out, "total");
    print_save(out, "total");
    if (follows()) out.line("complete = true;");
    out.line("}");
    out.line("}");
    if (!follows()) return;
    std::string given;
    for (std::size_t r = 0; r < reductions_.size(); ++r) given += cat(", given", r);
    out.line(cat("if (complete && leads) then::finish<1>(a.then, then::Index(place), results",
                 given, ");"));
  }

  std::string print_loop_nest() {
    CodeWriter out;
    arguments_.number("kept", kept_size_);
    arguments_.number("reduced", reduced_size_);
    arguments_.number("tiles", tiles_);
    arguments_.word("Divider", "by_tiles",
                    tiles_ > 0 && tiles_ >> 31 == 0 ? divider_word(tiles_) : 0);
    arguments_.number("chunk", chunk_);
    arguments_.number("chunks", chunks_);
    ticket_word_ = static_cast<int>(arguments_.block().words.size());
    arguments_.number("first_ticket", 0);
    out.line(
        "__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned "
        "blocks) {");
    out.line("const Index kept = Index(a.kept), thread = Index(threadIdx.x);");
    out.line(across_ ? "const Index result = thread % kKept, lane = thread / kKept;"
                     : "const Index result = thread / kReduced, lane = thread % kReduced;");
    out.line("for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);");
    out.line("     tile += Index(blocks)) {");
    out.line("const Index part = quotient(tile, a.by_tiles, a.tiles);");
    out.line("const Index column = tile - part * Index(a.tiles);");
    const std::string wide = kept_wide() > 1 ? cat(" * ", kept_wide()) : "";
    out.line(cat("const Index k_step = column * kKept + result, k = k_step", wide, ";"));
    out.line("const bool active = k < kept;");
    // The result that the thread has after combining; true if it alone has it.
    if (across_) {
      out.line(cat("const Index place = column * (", line(), ") + thread;"));
      out.line(cat("const bool leads = thread < ", line(), " && place < kept;"));
    } else {
      out.line("const Index place = k;");
      out.line("const bool leads = active && lane == 0;");
    }
    print_neutral(out, true);
    out.line("if (active) {");
    print_coordinates(out, arguments_, map_, "k_step", kept_, kept_wide());
    const std::string step = reduced_wide() > 1 ? cat(" / ", reduced_wide()) : "";
    out.line(cat("const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);"));
    out.line(
        cat("const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced))", step, ";"));
    print_steps(out, cat("start", step));
    if (deviates_) {
      out.line(cat("const Index begin = start", step, " + lane;"));
      const int of_step = reduced_wide() * numbers_;
      const std::string each = of_step > 1 ? cat(" * ", of_step) : "";
      out.line(cat("if (begin < end) count = ((end - begin - 1) / kReduced + 1)", each, ";"));
    }
    out.line("}");
    if (follows()) {
      out.line("then::Held<1> results;");
      out.line("if (leads) results = then::hold<1>(a.then, then::Index(place));");
    }
    print_combine(out, "sum");
    print_chunks(out);
    out.line("}");
    out.line("}");
    return out.text();
  }

  /// A thread's loop: the loads of several steps, then their arithmetic. The condition on each step
  /// makes the compiler keep them in this order.
  void print_steps(CodeWriter& out, const std::string& start) {
    std::string arguments = "a", gathered_arguments;
    for (int d = 0; d < map_.space.rank(); ++d) arguments += cat(", c", d);
    if (deviates_) gathered_arguments += cat(", at == ", start, " + lane");
    if (elements_.uses_position()) gathered_arguments += cat(", ", print_position());
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      if (gathers(r)) gathered_arguments += cat(", g", r);
    const auto each_step = [&](const std::string& statement) {
      out.line("#pragma unroll");
      out.line(cat("for (int u = 0; u < ", unrolled_, "; ++u) {"));
      out.line("const Index at = first + u * kReduced, r = at < end ? at : end - 1;");
      print_coordinates(out, arguments_, map_, "r", reduced_, reduced_wide());
      out.line(statement);
      out.line("}");
    };
    out.line(cat("for (Index first = ", start, " + lane; first < end; first += kReduced * ",
                 unrolled_, ") {"));
    out.line(cat("Held<", wide_, "> held[", unrolled_, "];"));
    each_step(cat("held[u] = hold<", wide_, ">(", arguments, ");"));
    each_step(cat("elements<", wide_, ", ", kept_wide(), ">(", arguments, ", held[u], at < end",
                  gathered_arguments, ");"));
    out.line("}");
  }

  /// The row-major index of coordinates.
  std::string print_position() {
    std::string text = "static_cast<long long>(c0)";
    for (int d = 1; d < map_.space.rank(); ++d) {
      arguments_.number(cat("extent", d), map_.space[d]);
      const char *open = d > 1 ? "(" : "", *close = d > 1 ? ")" : "";
      text = cat(open, text, close, " * a.extent", d, " + c", d);
    }
    return text;
  }

  const MapProgram& map_;
  LoopNests& loop_nests_;
  const PartOptions options_;
  const std::string index_;
  const std::vector<int> kept_, reduced_;
  const std::int64_t kept_size_, reduced_size_;
  const bool across_;
  bool deviates_ = false;  // gathers squared deviations too
  int numbers_ = 1;        // if so, the count of numbers that each element is a mean of
  int wide_;
  int tile_ = 1;  // results of a block, in steps of kept_wide()
  int unrolled_ = 1;
  std::int64_t tiles_ = 1, chunk_ = 1, chunks_ = 1;
  int ticket_word_ = 0;
  Arguments arguments_;
  InstrPrinter printer_;
  ElementPrinter elements_;
  std::vector<Reduction> reductions_;
  // By reduction: the reduction of deviations that also gives its result, or -1.
  std::vector<int> moments_of_;
};

}  // namespace

Part print_columns(const LoopNest& nest, LoopNests& nests, const PartOptions& options) {
  return ColumnsPrinter(nest, nests, options).print();
}

}  // namespace tenon::cuda
