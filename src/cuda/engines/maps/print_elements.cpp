// Element-wise kernels. A thread handles N neighbours along the last axis: all loads, then all
// arithmetic, then all stores, so that a kernel may overwrite what it reads.
#include <algorithm>

#include "base/str.h"
#include "cuda/engines/maps/print_loop_nest.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kMostBlocks = 4096;

class ElementsPrinter {
 public:
  ElementsPrinter(const LoopNest& nest, const ValueTable& values, const PartOptions& options)
      : map_(nest.map),
        options_(options),
        index_(fits_int(map_) ? "int" : "long long"),
        wide_(vector_width(map_, values, map_.space.rank() > 1)),
        printer_(map_, values, coordinates_of(map_), arguments_, "a.", "Index"),
        elements_(printer_, map_) {
    printer_.limit_alignment(wide_);
  }

  Part print() {
    printer_.set_numbers();
    const std::string body = print_body(), nest = print_loop_nest();
    Part part;
    part.threads = options_.threads;
    part.includes = printer_.includes();
    part.code = cat("constexpr int kThreads = ", options_.threads, ";\nusing Index = ", index_,
                    ";\n\nstruct Arguments {\n", arguments_.members(), "};\n\n", body, "\n", nest);
    part.arguments = arguments_.block();
    const std::int64_t threads = map_.space.numel() / wide_ + rest();
    part.blocks = std::min(divide_up(threads, options_.threads), kMostBlocks);
    return part;
  }

 private:
  bool flat() const { return map_.space.rank() == 1; }
  std::int64_t rest() const { return flat() ? map_.space.numel() % wide_ : 0; }

  std::string print_body() {
    CodeWriter out;
    std::string coordinates;
    for (int d = 0; d < map_.space.rank(); ++d) coordinates += cat(", Index c", d);
    if (elements_.uses_position()) coordinates += ", long long position";
    out.line("template <int N>");
    out.line(
        cat("__device__ __forceinline__ void elements(const Arguments& a", coordinates, ") {"));
    elements_.before(out, "position");
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat(printer_.type(map_.stores[s].source), " y", s, "[N];"));
    out.line("#pragma unroll");
    out.line("for (int i = 0; i < N; ++i) {");
    elements_.inside(out);
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      out.line(cat("y", s, "[i] = ", printer_.get_stored(map_.stores[s].source), ";"));
    out.line("}");
    for (std::size_t s = 0; s < map_.stores.size(); ++s) printer_.save_row(out, s);
    out.line("}");
    return out.text();
  }

  std::string print_loop_nest() {
    CodeWriter out;
    arguments_.number("whole", map_.space.numel() / wide_);
    const std::string position =
        elements_.uses_position() ? cat(", static_cast<long long>(e) * ", wide_) : "";
    out.line(
        "__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned "
        "blocks) {");
    const bool has_rest = flat() && wide_ > 1;
    if (has_rest) arguments_.number("rest", rest());
    out.line(cat("const Index count = Index(a.whole)", has_rest ? " + Index(a.rest)" : "", ";"));
    out.line("for (Index e = Index(block) * kThreads + Index(threadIdx.x); e < count;");
    out.line("     e += Index(blocks) * kThreads) {");
    if (has_rest) {
      const std::string tail = elements_.uses_position() ? ", static_cast<long long>(first)" : "";
      out.line("if (e < Index(a.whole)) {");
      out.line(cat("elements<", wide_, ">(a, e * ", wide_, position, ");"));
      out.line("} else {");
      out.line(cat("const Index first = e + Index(a.whole) * ", wide_ - 1, ";"));
      out.line(cat("elements<1>(a, first", tail, ");"));
      out.line("}");
    } else {
      std::vector<int> axes;
      std::string coordinates;
      for (int d = 0; d < map_.space.rank(); ++d) {
        axes.push_back(d);
        coordinates += cat(", c", d);
      }
      print_coordinates(out, arguments_, map_, "e", axes, wide_);
      out.line(cat("elements<", wide_, ">(a", coordinates, position, ");"));
    }
    out.line("}");
    out.line("}");
    return out.text();
  }

  const MapProgram& map_;
  const PartOptions options_;
  const std::string index_;
  const int wide_;
  Arguments arguments_;
  InstrPrinter printer_;
  ElementPrinter elements_;
};

}  // namespace

Part print_elements(const LoopNest& nest, LoopNests& nests, const PartOptions& options) {
  return ElementsPrinter(nest, nests.values, options).print();
}

}  // namespace tenon::cuda
