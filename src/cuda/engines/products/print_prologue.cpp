// Prints loads by the operand's own offset or a layout's, then the instructions element by element.
#include "cuda/engines/products/print_prologue.h"

#include <algorithm>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/maps/print_instrs.h"
#include "cuda/engines/maps/print_loop_nest.h"

namespace tenon::cuda {

namespace {

class ProloguePrinter {
 public:
  ProloguePrinter(const OperandForm& operand, const View& own, const Shape& shape,
                  std::span<const Value> values)
      : o_(operand),
        own_(own),
        shape_(shape),
        values_(values),
        map_(*operand.prologue),
        printer_(map_, values, {}, arguments_, "", "long long") {
    printer_.set_numbers();
  }

  PrintedPrologue print(const std::string& name) {
    const std::string held = print_hold(), apply = print_apply();
    PrintedPrologue printed;
    printed.code = cat(printer_.includes(), "namespace tenon::cuda {\n\nstruct ", name, " {\n",
                       "  using Memory = ", memory_type(o_.dtype),
                       ";\n  using Result = ", compute_type(o_.element),
                       ";\n  static constexpr int kLayouts = ", o_.placed.size(), ";\n");
    if (!o_.placed.empty()) printed.code += "  GemmLayout layouts[kLayouts];\n";
    printed.code +=
        cat(arguments_.members(), "\n", held, "\n", apply, "};\n\n}  // namespace tenon::cuda\n");
    for (const GemmLayout& layout : o_.placed) add(printed.arguments, layout);
    append(printed.arguments, arguments_.block());
    return printed;
  }

 private:
  /// Adds the members in the order of the struct.
  static void add(ArgumentBlock& block, const GemmLayout& layout) {
    const auto word = [&block](long long x) {
      block.words.push_back(static_cast<std::uint64_t>(x));
    };
    word(layout.offset);
    for (const long long x : layout.outer) word(x);
    for (const long long x : layout.inner) word(x);
    word(layout.stride_u);
    word(layout.stride_v);
    for (const long long x : layout.batch) word(x);
  }

  /// The layout's stride along the lines of the operand's tiles.
  long long line_stride(const GemmLayout& layout) const {
    const int digits = o_.along_k ? o_.inner_digits : o_.outer_digits;
    return (o_.along_k ? layout.inner : layout.outer)[digits == 1 ? 0 : 2];
  }

  /// True if every possible offset of a layout is a multiple of the vector.
  bool is_aligned(const GemmLayout& layout) const {
    std::int64_t bits = layout.offset;
    for (const long long x : layout.batch) bits |= x;
    const bool line_is_inner = o_.along_k;
    const int digits = line_is_inner ? o_.inner_digits : o_.outer_digits;
    for (const long long x : line_is_inner ? layout.outer : layout.inner) bits |= x;
    const long long* line = line_is_inner ? layout.inner : layout.outer;
    if (digits == 3) bits |= line[0] | line[1];
    return bits % o_.vector == 0;
  }

  /// The offset of a view's element as an expression, and the step to its neighbours.
  struct Spot {
    std::string offset;
    InnerStep step = InnerStep::One;
    std::string stride;  // of InnerStep::Other
    bool aligned = true;
  };
  Spot spot(const View& view) {
    const int layout = layout_of(o_, own_, view, shape_);
    if (layout == kOneElement) {
      if (view.offset == 0) return {"0", InnerStep::None, "", true};
      const std::string name = cat("e", one_elements_++);
      arguments_.number(name, view.offset);
      return {name, InnerStep::None, "", true};
    }
    if (layout == kOwnLayout) {
      if (o_.offset == 0) return {"own", InnerStep::One, "", true};
      arguments_.number("own_offset", o_.offset);
      return {"own + own_offset", InnerStep::One, "", true};
    }
    const GemmLayout& placed = o_.placed[at(layout)];
    const long long stride = line_stride(placed);
    const bool along_inner = o_.along_k;
    const int digits = along_inner ? o_.inner_digits : o_.outer_digits;
    return {cat("more[", layout, "]"),
            stride == 0   ? InnerStep::None
            : stride == 1 ? InnerStep::One
                          : InnerStep::Other,
            cat("layouts[", layout, "].", along_inner ? "inner" : "outer", "[", digits == 1 ? 0 : 2,
                "]"),
            is_aligned(placed)};
  }

  std::string print_hold() {
    CodeWriter members(1), loads(2);
    members.line("template <int N>");
    members.line("struct Held {");
    for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i) {
      const MapInstr& instr = map_.instrs[at(i)];
      if (instr.code == MapCode::Load) load(members, loads, i, spot(instr.view));
      if (instr.code == MapCode::Random) draw(members, loads, i, spot(instr.view));
    }
    members.line("};");
    CodeWriter out(1);
    out.line("template <int N, class Offset>");
    out.line("__device__ __forceinline__ Held<N> hold(long long own, const Offset* more) const {");
    out.line("Held<N> held;");
    return cat(members.text(), out.text(), loads.text(), "    return held;\n  }\n");
  }

  void load(CodeWriter& members, CodeWriter& loads, int i, const Spot& s) {
    const std::string x = InstrPrinter::name('x', i),
                      address =
                          cat(printer_.pointer(map_.instrs[at(i)].view.value), " + ", s.offset);
    const bool one = s.step == InnerStep::None;
    members.line(cat(printer_.type(i), " ", x, one ? ";" : "[N];"));
    printer_.set(i, cat("held.", x, one ? "" : "[i]"));
    if (one) return loads.line(cat("held.", x, " = load(", address, ");"));
    if (s.step == InnerStep::One)
      return loads.line(cat("load_row<", s.aligned ? "N" : "1", ">(held.", x, ", ", address, ");"));
    loads.line("#pragma unroll");
    loads.line(cat("for (int i = 0; i < N; ++i) held.", x, "[i] = load(", address, " + i * ",
                   s.stride, ");"));
  }

  void draw(CodeWriter& members, CodeWriter& loads, int i, const Spot& s) {
    const std::string x = InstrPrinter::name('x', i);
    members.line(cat(printer_.type(i), " ", x, "[N];"));
    printer_.set(i, cat("held.", x, "[i]"));
    loads.line(printer_.random_draw(i));
    const std::string target = cat("held.", x, "[i] = ");
    if (s.step == InnerStep::One && s.aligned) {
      const std::string row = InstrPrinter::name('b', i);
      loads.line(cat("const RandomRow<N> ", row, " = random_row<N>(r", i, ", ", s.offset, ");"));
      loads.line("#pragma unroll");
      return loads.line(
          cat("for (int i = 0; i < N; ++i) ", target, printer_.random_element(i, row, "i"), ";"));
    }
    const std::string step = s.step == InnerStep::None  ? ""
                             : s.step == InnerStep::One ? " + i"
                                                        : cat(" + i * ", s.stride);
    loads.line("#pragma unroll");
    loads.line(
        cat("for (int i = 0; i < N; ++i) ", target,
            printer_.random_element(i, cat("random_row<1>(r", i, ", ", s.offset, step, ")"), "0"),
            ";"));
  }

  std::string print_apply() {
    CodeWriter out(1);
    out.line("template <int N>");
    out.line(
        "__device__ __forceinline__ void apply(const Memory (&x)[N], const Held<N>& held, Result "
        "(&y)[N]) const {");
    out.line("#pragma unroll");
    out.line("for (int i = 0; i < N; ++i) {");
    for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i) {
      const MapInstr& instr = map_.instrs[at(i)];
      if (instr.code == MapCode::Accumulator) printer_.set(i, "upcast(x[i])");
      if (instr.code == MapCode::Compute) out.line(printer_.compute(i));
      if (instr.code == MapCode::RowReduce || instr.code == MapCode::Affine)
        throw InternalError("a prologue neither reduces nor counts");
    }
    out.line(cat("y[i] = ", printer_.get(static_cast<int>(map_.instrs.size()) - 1), ";"));
    out.line("}");
    out.line("}");
    return out.text();
  }

  const OperandForm& o_;
  const View& own_;
  const Shape& shape_;
  std::span<const Value> values_;
  const MapProgram& map_;
  Arguments arguments_;
  InstrPrinter printer_;
  int one_elements_ = 0;
};

}  // namespace

PrintedPrologue print_prologue(const std::string& name, const OperandForm& operand, const View& own,
                               const Shape& shape, std::span<const Value> values) {
  return ProloguePrinter(operand, own, shape, values).print(name);
}

}  // namespace tenon::cuda
