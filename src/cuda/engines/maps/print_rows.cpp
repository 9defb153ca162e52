// Prints kernels with rows: reductions along the last axis whose results the same kernel uses. A
// row belongs to some lanes of a warp or to a block.
//
// Pass p computes the values that need p reductions of the row. Short rows stay in registers from
// pass to pass. The values of longer rows are recomputed in each pass that needs them, from loaded
// elements. 16-bit elements stay packed in registers; 32-bit elements stay in shared memory; still
// longer rows are loaded again.
//
// The columns of short rows are reduced in the same kernel (loop_nests.h): a block has a chunk of
// rows, accumulates its threads' columns in registers, and stores them as a row of a table that a
// column kernel reduces. With many short rows a warp prefetches the next row while it computes the
// current one.
#include <string>
#include <vector>

#include "base/str.h"
#include "cuda/engines/maps/print_loop_nest.h"
#include "cuda/engines/maps/print_reduction.h"
#include "cuda/engines/maps/row_form.h"

namespace tenon::cuda {

namespace {

class RowsPrinter : RowForm {
 public:
  RowsPrinter(const LoopNest& nest, const ValueTable& values, const PartOptions& options)
      : RowForm(nest.map, values, options),
        index_(fits_int(map_) ? "int" : "long long"),
        printer_(map_, values, coordinates(), arguments_, "a.", "Index") {
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
    choose(printer_, values);
    if (!options.one_block) printer_.allow_constant_loads(options.written);
  }

  Part print() {
    printer_.set_numbers();
    const std::string nest = print_loop_nest();
    Part part;
    part.threads = threads_;
    part.shared_bytes = shared_bytes();
    part.includes = cat(printer_.includes(), "#include \"cuda/kernels/maps/map_reduce.cuh\"\n");
    part.code = cat("constexpr int kThreads = ", threads_, ", kLanes = ", lanes_, ", N = ", wide_,
                    in_steps() ? cat(", kSteps = ", steps_) : "", ";\nusing Index = ", index_,
                    ";\n", "\nstruct Arguments {\n", arguments_.members(), "};\n\n", nest);
    part.arguments = arguments_.block();
    part.blocks = blocks();
    part.resident = resident();
    return part;
  }

 private:
  Coordinates coordinates() const {
    Coordinates out = coordinates_of(map_);
    out.names.back() = "j";
    return out;
  }

  // ---- Statements

  std::string inside() const {
    std::string text = lanes_ == threads_ ? "" : "active";
    if (in_steps()) text += cat(text.empty() ? "" : " && ", "j < length");
    return text;
  }
  std::string kept_row(char kind, int i) const {
    return cat(kind, i, (kind == 'x' ? keeps_loads() : keeps_) ? "[s]" : "");
  }
  std::string kept_element(char kind, int i) const { return kept_row(kind, i) + "[i]"; }

  void declare(CodeWriter& out, char kind, int i) {
    const bool kept = kind == 'x' ? keeps_loads() : keeps_;
    out.line(cat(printer_.type(i), " ", kind, i, kept ? "[kSteps]" : "", "[N];"));
  }

  /// All packed loads of a row start before the first is awaited.
  void load_packed(CodeWriter& out) {
    declare_packed(out, 'w');
    open_steps(out, inside());
    for (int i = 0; i < count(); ++i) {
      if (!packed_[at(i)]) continue;
      const View& view = instr(i).view;
      out.line(cat("w", i, "[s] = ", printer_.load_function(view), "_packed<N>(",
                   printer_.address(view, true), ");"));
    }
    close_steps(out, inside());
  }
  void declare_packed(CodeWriter& out, char kind) {
    for (int i = 0; i < count(); ++i)
      if (packed_[at(i)]) out.line(cat(packed_type(i), " ", kind, i, "[kSteps];"));
  }
  /// A function that loads the operands that differ by row; also called for the block's first rows.
  void print_fetch(CodeWriter& out, const std::string& first, const std::string& stop) {
    declare_packed(out, 'n');
    for (int i = 0; i < count(); ++i)
      if (is_of_row(i)) out.line(cat(printer_.type(i), " m", i, "_next = 0;"));
    out.line("const auto fetch = [&](Index row) {");
    out.line(cat("if (row >= ", stop, ") return;"));
    print_coordinates(out, arguments_, map_, "row", outer_axes(), 1);
    for (int i = 0; i < count(); ++i)
      if (is_of_row(i))
        out.line(cat("m", i, "_next = load(", printer_.address(instr(i).view, true), ");"));
    open_steps(out, "j < length");
    for (int i = 0; i < count(); ++i) {
      if (!packed_[at(i)]) continue;
      const View& view = instr(i).view;
      out.line(cat("n", i, "[s] = ", printer_.load_function(view), "_words<N>(",
                   printer_.address(view, true), ");"));
    }
    close_steps(out, "j < length");
    out.line("};");
    out.line(cat("fetch(", first, " + Index(threadIdx.x) / kLanes);"));
  }
  void take_fetched(CodeWriter& out) {
    declare_packed(out, 'w');
    out.line("#pragma unroll");
    out.line("for (int s = 0; s < kSteps; ++s) {");
    for (int i = 0; i < count(); ++i)
      if (packed_[at(i)]) out.line(cat("w", i, "[s] = n", i, "[s];"));
    out.line("}");
    for (int i = 0; i < count(); ++i)
      if (is_of_row(i)) out.line(cat("const ", printer_.type(i), " m", i, " = m", i, "_next;"));
    out.line(cat("fetch(row + ", has_columns() ? "" : "Index(blocks) * ", "(kThreads / kLanes));"));
  }
  std::string packed_type(int i) const {
    return cat(ahead_ ? "PackedWords<" : "Packed<", memory_type(instr(i).dtype), ", N>");
  }

  void load_elements(CodeWriter& out, int i) {
    if (packed_[at(i)]) {
      out.line(cat("convert_row(", kept_row('x', i), ", w", i, "[s]);"));
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

  /// A value that is the same for the whole row; loads of rows that do not exist are skipped.
  void print_row_value(CodeWriter& out, int i) {
    if (level(i) == Level::Element || printer_.is_set(i)) return;
    const std::string type = printer_.type(i);
    switch (instr(i).code) {
      case MapCode::Load:
        if (ahead_ && is_of_row(i)) {
          out.line(cat("const ", type, " x", i, " = m", i, ";"));
          return printer_.set(i, cat("x", i));
        }
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

  /// True if an instruction only asks whether an element is before a column that is the same for
  /// all rows. For N elements the printed code then gets the number of elements before the column,
  /// by one subtraction.
  bool counts_columns_left(int i) const {
    const MapInstr& lt = instr(i);
    return lt.code == MapCode::Compute && lt.op == Op::Lt && printer_.is_column(lt.args[0]) &&
           instr(lt.args[1]).code == MapCode::Number;
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
        if (counts_columns_left(i)) {
          text = cat("i < left", i, " ? 1 : 0");
          break;
        }
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
    const bool by_first = options_.in_every_block && any_store;
    if (by_first) out.line("if (blockIdx.x == 0) {");
    if (any || any_store || !reduced.empty()) print_elements_of(out, p, needed, reduced, any_load);
    if (by_first) out.line("}");
    for (const int i : reduced) print_reduced(out, i);
  }

  /// The loop over the N neighbouring elements of a lane.
  void print_lane_elements(CodeWriter& out, int p, const std::vector<bool>& needed,
                           const std::vector<int>& reduced) {
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
  }

  void print_elements_of(CodeWriter& out, int p, const std::vector<bool>& needed,
                         const std::vector<int>& reduced, bool any_load) {
    for (int i = 0; keeps_ && i < count(); ++i) {
      if (!needed[at(i)]) continue;
      if (instr(i).code == MapCode::Load && !ahead_) declare(out, 'x', i);
      if (instr(i).code != MapCode::Load && kept_[at(i)]) declare(out, 'k', i);
    }
    for (int i = 0; i < count(); ++i)
      if (needed[at(i)] && instr(i).code == MapCode::Random) out.line(printer_.random_draw(i));
    // All loads start before the first result is awaited.
    if (keeps_loads() && any_load) {
      open_steps(out, inside());
      for (int i = 0; i < count(); ++i)
        if (needed[at(i)] && instr(i).code == MapCode::Load) load_elements(out, i);
      close_steps(out, inside());
    }
    open_steps(out, inside());
    for (int i = 0; i < count(); ++i) {
      if (!needed[at(i)]) continue;
      if (!keeps_loads() && instr(i).code == MapCode::Load) {
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
    for (int i = 0; i < count(); ++i)
      if (needed[at(i)] && counts_columns_left(i))
        out.line(
            cat("const int left", i, " = columns_left(", printer_.get(instr(i).args[1]), ", j);"));
    print_lane_elements(out, p, needed, reduced);
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      if (store_pass(s) == p && !once_a_row(s)) printer_.save_row(out, s);
    close_steps(out, inside());
    is_staged_ = is_staged_ || (staged_ >= 0 && needed[at(staged_)]);
    // From here on an element is read from its kept value.
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

  /// The initial values of the thread's column accumulators.
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
    if (lanes_ != threads_) return print_end_of_rows(out);
    open_steps(out, inside());
    for (std::size_t r = 0; r < columns_.size(); ++r)
      out.line(cat("save_row<N>(", printer_.pointer(map_.reduces[r].value),
                   " + chunk * length + j, of", r, "[s]);"));
    close_steps(out, inside());
  }
  /// Combines the column accumulators of rows that run next to one another.
  void print_end_of_rows(CodeWriter& out) {
    out.line("#pragma unroll");
    out.line("for (int s = 0; s < kSteps; ++s) {");
    out.line("const Index t = Index(threadIdx.x), column = s * kLanes * N + t;");
    for (std::size_t r = 0; r < columns_.size(); ++r) {
      out.line(cat("const ", columns_[r].type(), " sum", r, " = reduce_rows<",
                   columns_[r].function(), ", kThreads / kLanes, kLanes>(of", r, "[s]);"));
    }
    out.line("if (t < kLanes * N && column < length) {");
    for (std::size_t r = 0; r < columns_.size(); ++r)
      out.line(cat("save(", printer_.pointer(map_.reduces[r].value),
                   " + chunk * length + column, sum", r, ");"));
    out.line("}");
    out.line("}");
  }

  /// The loop over the rows from `first` on, of all rows or of a chunk.
  void open_rows(CodeWriter& out) {
    if (!has_columns()) {
      if (ahead_) print_fetch(out, "Index(block) * (kThreads / kLanes)", "rows");
      out.line("for (Index first = Index(block) * (kThreads / kLanes); first < rows;");
      out.line("     first += Index(blocks) * (kThreads / kLanes)) {");
      return;
    }
    arguments_.number("chunk", chunk_);
    arguments_.number("chunks", chunks_);
    out.line("for (Index chunk = Index(block); chunk < Index(a.chunks); chunk += Index(blocks)) {");
    print_neutral(out);
    out.line(
        "const Index start = chunk * Index(a.chunk), stop = min(start + Index(a.chunk), rows);");
    if (ahead_) print_fetch(out, "start", "stop");
    out.line("for (Index first = start; first < stop; first += kThreads / kLanes) {");
  }

  std::string print_loop_nest() {
    CodeWriter out;
    arguments_.number("rows", rows_);
    arguments_.number("length", length_);
    out.line(
        "__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned "
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
    if (!alone || !outer.empty() || uses_random_ || ahead_)
      out.line(alone ? "const Index row = first;"
                     : "const Index row = first + Index(threadIdx.x) / kLanes;");
    if (!alone) out.line(cat("const bool active = row < ", has_columns() ? "stop;" : "rows;"));
    if (!outer.empty()) print_coordinates(out, arguments_, map_, "row", outer, 1);
    if (ahead_) take_fetched(out);
    if (packs_ && !ahead_) load_packed(out);
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

  const std::string index_;
  bool uses_random_ = false;
  bool is_staged_ = false;  // by the passes printed so far
  Arguments arguments_;
  InstrPrinter printer_;
  std::vector<Reduction> reductions_, columns_;
};

}  // namespace

Part print_rows(const LoopNest& nest, LoopNests& nests, const PartOptions& options) {
  return RowsPrinter(nest, nests.values, options).print();
}

}  // namespace tenon::cuda
