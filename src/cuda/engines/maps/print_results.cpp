// Prints the processing of results that a thread holds. A separate function loads its further
// operands, so that these loads are in flight while the results are reduced.
#include <algorithm>

#include "base/str.h"
#include "cuda/engines/maps/print_loop_nest.h"

namespace tenon::cuda {

namespace {

class ResultsPrinter {
 public:
  ResultsPrinter(const MapProgram& map, std::span<const ValueId> given, const ValueTable& values)
      : map_(map),
        given_(given),
        values_(values),
        index_(fits_int(map_) ? "int" : "long long"),
        printer_(map_, values, coordinates_of(map_), arguments_, "a.", "Index"),
        elements_(printer_, map_) {
    printer_.limit_alignment(1);
  }

  Part print() {
    printer_.set_numbers();
    const std::string hold = print_hold(), finish = print_finish();
    Part part;
    part.includes = printer_.includes();
    part.code = cat("using Index = ", index_, ";\n\nstruct Arguments {\n", arguments_.members(),
                    "};\n\n", hold, "\n", finish);
    part.arguments = arguments_.block();
    return part;
  }

 private:
  std::string print_hold() {
    CodeWriter members, loads(1), out;
    members.line("template <int N>");
    members.line("struct Held {");
    for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i) {
      const MapInstr& instr = map_.instrs[at(i)];
      if (instr.code != MapCode::Load) continue;
      const auto found = std::find(given_.begin(), given_.end(), instr.view.value);
      if (found == given_.end())
        printer_.hold_row(members, loads, i);
      else
        printer_.set(i, cat("given", found - given_.begin()));
    }
    members.line("};");
    out.line("template <int N>");
    out.line("__device__ __forceinline__ Held<N> hold(const Arguments& a, Index c0) {");
    out.line("Held<N> held;");
    return cat(members.text(), out.text(), loads.text(), "  return held;\n}\n");
  }

  std::string print_finish() {
    CodeWriter out;
    std::string given;
    for (std::size_t k = 0; k < given_.size(); ++k)
      given += cat(", ", compute_type(values_[at(given_[k])].dtype), " given", k);
    out.line("template <int N>");
    out.line(
        cat("__device__ __forceinline__ void finish(const Arguments& a, Index c0, const Held<N>& "
            "held",
            given, ") {"));
    elements_.prepare(out, "");
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat(printer_.type(map_.stores[s].source), " y", s, "[N];"));
    out.line("for (int i = 0; i < N; ++i) {");
    elements_.inside(out);
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat("y", s, "[i] = ", printer_.get_stored(map_.stores[s].source), ";"));
    out.line("}");
    for (std::size_t s = 0; s < map_.stores.size(); ++s) printer_.save_row(out, s);
    out.line("}");
    return out.text();
  }

  const MapProgram& map_;
  const std::span<const ValueId> given_;
  const ValueTable& values_;
  const std::string index_;
  Arguments arguments_;
  InstrPrinter printer_;
  ElementPrinter elements_;
};

}  // namespace

Part print_results(const MapProgram& map, std::span<const ValueId> given,
                   const ValueTable& values) {
  return ResultsPrinter(map, given, values).print();
}

}  // namespace tenon::cuda
