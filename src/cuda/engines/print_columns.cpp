// Sweeps that reduce one set of axes. A block has a tile of results and a chunk of what is reduced
// into each; chunks are as long as sizes say, never as the card does. Their partial results go
// through the workspace, and the last block of a tile combines them in order.
//
// `across`: the last axis is kept, neighbouring threads have neighbouring results and walk down the
// reduced axes. Else it is reduced, and neighbouring threads walk along it.
#include <algorithm>
#include <bit>

#include "base/str.h"
#include "cuda/engines/print_reduction.h"
#include "cuda/engines/print_sweep.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kMostColumnBlocks = 1024;
constexpr std::int64_t kFewestSteps = 4;   // of a thread in its chunk
constexpr std::int64_t kWideAcross = 512;  // fewer results: rather more threads than wide accesses

class ColumnsPrinter {
 public:
  ColumnsPrinter(const Sweep& sweep, Sweeps& sweeps, const PartOptions& options)
      : map_(sweep.map),
        sweeps_(sweeps),
        options_(options),
        index_(fits_int(map_) ? "int" : "long long"),
        kept_(axes_where(map_, axes(), false)),
        reduced_(axes_where(map_, axes(), true)),
        kept_size_(size_of(map_, kept_)),
        reduced_size_(size_of(map_, reduced_)),
        across_((axes() >> (map_.space.rank() - 1) & 1u) == 0),
        wide_(vector_width(map_, sweeps.values, true)),
        printer_(map_, sweeps.values, coordinates_of(map_), arguments_, "a.", "Index"),
        elements_(printer_, map_) {
    if (across_ && kept_size_ < kWideAcross) wide_ = 1;
    printer_.limit_alignment(wide_);
    choose_tile();
    choose_chunks();
    if (!options.one_block) printer_.allow_constant_loads();
    for (const MapReduce& reduce : map_.reduces)
      reductions_.push_back(
          {reduce.op, map_.instrs[at(reduce.source)].dtype, sweeps.values[at(reduce.value)].dtype});
  }

  Part print() {
    printer_.set_numbers();
    const std::string body = print_body(), sweep = print_sweep();
    Part part;
    part.threads = options_.threads;
    part.includes = cat(printer_.includes(), "#include \"cuda/kernels/map_reduce.cuh\"\n");
    part.code = cat("constexpr int kThreads = ", options_.threads, ", kKept = ", tile_,
                    ", kReduced = ", options_.threads / tile_, ";\nusing Index = ", index_,
                    ";\n__device__ unsigned tickets[", kTickets, "];\n\nstruct Arguments {\n",
                    arguments_.members(), "};\n\n", body, "\n", sweep);
    part.arguments = arguments_.block();
    part.blocks = tiles_ * chunks_;
    if (chunks_ > 1) part.tickets = tiles_;
    part.ticket_word = ticket_word_;
    return part;
  }

 private:
  std::uint32_t axes() const { return map_.reduces[0].axes; }
  int kept_wide() const { return across_ ? wide_ : 1; }
  int reduced_wide() const { return across_ ? 1 : wide_; }
  std::string gathered(std::size_t r) const { return cat("g", r, across_ ? "[i]" : ""); }

  void choose_tile() {
    const auto pow2 = [](std::int64_t n) {
      return static_cast<int>(
          std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
    };
    if (across_) {
      tile_ = pow2(std::min<std::int64_t>(kept_size_ / wide_, 32));
    } else {
      const int lanes =
          pow2(std::min<std::int64_t>(divide_up(reduced_size_, wide_), options_.threads));
      // Lanes of one warp, or the whole block where these would take many steps.
      tile_ = lanes > kFewestSteps * 32 ? 1 : options_.threads / std::min(lanes, 32);
    }
    tiles_ = divide_up(kept_size_, std::int64_t{tile_} * kept_wide());
  }

  void choose_chunks() {
    const std::int64_t step = std::int64_t{options_.threads / tile_} * reduced_wide();
    const std::int64_t steps = divide_up(reduced_size_, step);
    std::int64_t steps_of_chunk = kFewestSteps;
    while (tiles_ * divide_up(steps, steps_of_chunk) > kMostColumnBlocks && steps_of_chunk < steps)
      steps_of_chunk *= 2;
    // A second round of combining is not worth while for a little work.
    const bool one =
        options_.one_block || tiles_ > kMostColumnBlocks / 2 || steps <= 2 * kFewestSteps;
    chunks_ = one ? 1 : std::max<std::int64_t>(divide_up(steps, steps_of_chunk), 1);
    chunk_ = one ? std::max<std::int64_t>(reduced_size_, 1) : steps_of_chunk * step;
  }

  /// One function for N neighbours: what they add to the results, and what they store.
  std::string print_body() {
    CodeWriter out;
    std::string coordinates, gathered_arguments;
    for (int d = 0; d < map_.space.rank(); ++d) coordinates += cat(", Index c", d);
    if (elements_.uses_position()) coordinates += ", long long position";
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      gathered_arguments += cat(", ", reductions_[r].type(), " (&g", r, ")[kResults]");
    out.line("template <int N, int kResults>");
    out.line(cat("__device__ __forceinline__ void elements(const Arguments& a", coordinates,
                 gathered_arguments, ") {"));
    elements_.before(out, "position");
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat(printer_.type(map_.stores[s].source), " y", s, "[N];"));
    out.line("#pragma unroll");
    out.line("for (int i = 0; i < N; ++i) {");
    elements_.inside(out);
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat("y", s, "[i] = ", printer_.get(map_.stores[s].source), ";"));
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      out.line(cat("g", r, "[i % kResults] = ", reductions_[r].function(), "::combine(g", r,
                   "[i % kResults], ",
                   reductions_[r].element(printer_.get(map_.reduces[r].source), "0"), ");"));
    out.line("}");
    for (std::size_t s = 0; s < map_.stores.size(); ++s) printer_.save_row(out, s);
    out.line("}");
    return out.text();
  }

  /// Every thread's part becomes the tile's results, in the threads that `leads`.
  void print_combine(CodeWriter& out) {
    const int lanes = options_.threads / tile_;
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      const std::string op = reductions_[r].function(), g = cat("g", r, "[v]");
      std::string call;
      if (across_) {
        call = cat("reduce_strided<", op, ", kThreads, kKept>(", g, ")");
      } else if (lanes <= 32) {
        call = cat("reduce_lanes<", op, ", kReduced>(", g, ")");
      } else {
        call = cat("reduce_block<", op, ", kThreads>(", g, ")");
      }
      out.line(cat("for (int v = 0; v < ", kept_wide(), "; ++v) ", g, " = ", call, ";"));
    }
  }

  void print_save(CodeWriter& out) {
    out.line("if (leads) {");
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      out.line(cat("for (int v = 0; v < ", kept_wide(), "; ++v) save(",
                   printer_.pointer(map_.reduces[r].value), " + k + v, ",
                   reductions_[r].result(cat("g", r, "[v]")), ");"));
    out.line("}");
  }

  std::string partial(std::size_t r) {
    const std::string name = cat("partial", r);
    if (chunks_ > 1) {
      const ValueId value =
          add_temporary(sweeps_, reductions_[r].gathered(), {chunks_ * kept_size_});
      arguments_.pointer(cat(reductions_[r].type(), "*"), name, value);
    } else {
      arguments_.word(cat(reductions_[r].type(), "*"), name, 0);
    }
    return "a." + name;
  }

  void print_neutral(CodeWriter& out, bool declare) {
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      if (declare) out.line(cat(reductions_[r].type(), " g", r, "[", kept_wide(), "];"));
      out.line(cat("for (int v = 0; v < ", kept_wide(), "; ++v) g", r,
                   "[v] = ", reductions_[r].neutral(), ";"));
    }
  }

  void print_chunks(CodeWriter& out) {
    out.line("if (Index(a.chunks) == 1) {");
    print_save(out);
    out.line("} else {");
    out.line("if (leads) {");
    std::vector<std::string> partials;
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      partials.push_back(partial(r));
      out.line(cat("for (int v = 0; v < ", kept_wide(), "; ++v) ", partials[r],
                   "[part * kept + k + v] = g", r, "[v];"));
    }
    out.line("}");
    out.line(
        "if (is_last_block(&tickets[Index(a.first_ticket) + column], "
        "static_cast<unsigned>(a.chunks))) {");
    print_neutral(out, false);
    out.line("if (active) {");
    out.line("for (Index p = lane; p < Index(a.chunks); p += kReduced) {");
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      out.line(cat("for (int v = 0; v < ", kept_wide(), "; ++v) g", r,
                   "[v] = ", reductions_[r].function(), "::combine(g", r, "[v], ", partials[r],
                   "[p * kept + k + v]);"));
    out.line("}");
    out.line("}");
    print_combine(out);
    print_save(out);
    out.line("}");
    out.line("}");
  }

  std::string print_sweep() {
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
        "__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned "
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
    out.line("const bool active = k < kept, leads = active && lane == 0;");
    print_neutral(out, true);
    out.line("if (active) {");
    print_coordinates(out, arguments_, map_, "k_step", kept_, kept_wide());
    const std::string step = reduced_wide() > 1 ? cat(" / ", reduced_wide()) : "";
    out.line(cat("const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);"));
    out.line(
        cat("const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced))", step, ";"));
    out.line("#pragma unroll 4");
    out.line(cat("for (Index r = start", step, " + lane; r < end; r += kReduced) {"));
    print_coordinates(out, arguments_, map_, "r", reduced_, reduced_wide());
    std::string arguments, gathered_arguments;
    for (int d = 0; d < map_.space.rank(); ++d) arguments += cat(", c", d);
    if (elements_.uses_position()) arguments += cat(", ", print_position());
    for (std::size_t r = 0; r < reductions_.size(); ++r) gathered_arguments += cat(", g", r);
    out.line(
        cat("elements<", wide_, ", ", kept_wide(), ">(a", arguments, gathered_arguments, ");"));
    out.line("}");
    out.line("}");
    print_combine(out);
    print_chunks(out);
    out.line("}");
    out.line("}");
    return out.text();
  }

  /// The row-major position of coordinates.
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
  Sweeps& sweeps_;
  const PartOptions options_;
  const std::string index_;
  const std::vector<int> kept_, reduced_;
  const std::int64_t kept_size_, reduced_size_;
  const bool across_;
  int wide_;
  int tile_ = 1;  // results of a block, in steps of kept_wide()
  std::int64_t tiles_ = 1, chunk_ = 1, chunks_ = 1;
  int ticket_word_ = 0;
  Arguments arguments_;
  InstrPrinter printer_;
  ElementPrinter elements_;
  std::vector<Reduction> reductions_;
};

}  // namespace

Part print_columns(const Sweep& sweep, Sweeps& sweeps, const PartOptions& options) {
  return ColumnsPrinter(sweep, sweeps, options).print();
}

}  // namespace tenon::cuda
