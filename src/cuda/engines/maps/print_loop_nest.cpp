// Shared by all printers of kernels: vector widths, coordinates, the statements of one element.
#include "cuda/engines/maps/print_loop_nest.h"

#include <algorithm>
#include <bit>

#include "base/index.h"
#include "base/str.h"

namespace tenon::cuda {

namespace {

Part print_nest(const LoopNest& nest, LoopNests& nests, const PartOptions& options) {
  switch (nest.kind) {
    case LoopNestKind::Elements:
      return print_elements(nest, nests, options);
    case LoopNestKind::Rows:
      return print_rows(nest, nests, options);
    case LoopNestKind::Columns:
      break;
  }
  return print_columns(nest, nests, options);
}

/// Printers name a temporary by its number behind the program's values; an argument is its place.
void place_temporaries(ArgumentBlock& arguments, const ValueTable& values) {
  std::erase_if(arguments.pointers, [&](const std::pair<int, ValueId>& pointer) {
    const auto [word, value] = pointer;
    if (at(value) < values.own_size()) return false;
    arguments.temporaries.emplace_back(word, values[at(value)].offset);
    return true;
  });
}

}  // namespace

Part print_part(const LoopNest& nest, LoopNests& nests, const PartOptions& options) {
  Part part = print_nest(nest, nests, options);
  place_temporaries(part.arguments, nests.values);
  return part;
}

void append(ArgumentBlock& to, const ArgumentBlock& from) {
  const int first = static_cast<int>(to.words.size());
  to.words.insert(to.words.end(), from.words.begin(), from.words.end());
  for (const auto& [word, value] : from.pointers) to.pointers.emplace_back(first + word, value);
  for (const auto& [word, offset] : from.temporaries)
    to.temporaries.emplace_back(first + word, offset);
}

int vector_width(const MapProgram& map, const ValueTable& values, bool divides) {
  const int last = map.space.rank() - 1;
  std::int64_t width = 8;
  std::int64_t smallest = 8, largest = 1, stored = 1;
  const auto limit = [&](const View& view, bool stores) {
    if (map.space[last] == 1 || view.stride[last] == 0) return;
    if (view.stride[last] != 1) width = 1;
    std::int64_t bits = view.offset | 8;
    for (int d = 0; d < last; ++d)
      if (map.space[d] != 1) bits |= view.stride[d];
    width = std::min(width, bits & -bits);
    const auto item = static_cast<std::int64_t>(item_size(values[at(view.value)].dtype));
    smallest = std::min(smallest, item);
    largest = std::max(largest, item);
    if (stores) stored = std::max(stored, item);
  };
  for (const MapInstr& instr : map.instrs)
    if (instr.code == MapCode::Load) limit(instr.view, false);
  for (const MapStore& store : map.stores) limit(store.view, true);
  if (divides)
    while (map.space[last] % width != 0) width /= 2;
  width = std::min(width, 16 / smallest);
  // A warp's 16-byte stores should be adjacent. If gaps between them are filled only by later
  // stores, memory throughput halves. Loads find the data of the gaps in the cache.
  return static_cast<int>(largest == 8 || stored == 4 ? std::min<std::int64_t>(width, 4) : width);
}

Coordinates coordinates_of(const MapProgram& map) {
  Coordinates out;
  for (int d = 0; d < map.space.rank(); ++d) {
    out.sizes.push_back(map.space[d]);
    out.names.push_back(cat("c", d));
  }
  return out;
}

void print_coordinates(CodeWriter& out, Arguments& arguments, const MapProgram& map,
                       const std::string& linear, const std::vector<int>& axes, int wide) {
  const int last = map.space.rank() - 1;
  std::string rest = linear;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const int d = axes[k];
    const std::string times = d == last && wide > 1 ? cat(" * ", wide) : "";
    if (k == 0) {
      out.line(cat("const Index c", d, " = ", rest, times, ";"));
      return;
    }
    const std::int64_t size = d == last ? map.space[d] / wide : map.space[d];
    const std::string by = cat("by", d), count = cat("size", d), left = cat(linear, "_", d);
    arguments.number(count, size);
    const bool divides = size >= 1 && size < std::int64_t{1} << 31;
    arguments.word("Divider", by, divides ? divider_word(size) : 0);
    out.line(cat("const Index ", left, " = quotient(", rest, ", a.", by, ", a.", count, ");"));
    out.line(
        cat("const Index c", d, " = (", rest, " - ", left, " * Index(a.", count, "))", times, ";"));
    rest = left;
  }
}

std::vector<int> axes_where(const MapProgram& map, std::uint32_t mask, bool in_mask) {
  std::vector<int> axes;
  for (int d = 0; d < map.space.rank(); ++d)
    if (((mask >> d & 1u) != 0) == in_mask) axes.push_back(d);
  return axes;
}

std::int64_t size_of(const MapProgram& map, const std::vector<int>& axes) {
  std::int64_t size = 1;
  for (const int d : axes) size *= map.space[d];
  return size;
}

ElementPrinter::ElementPrinter(InstrPrinter& printer, const MapProgram& map)
    : printer_(printer), map_(map), levels_(levels_of(map)) {
  uses_position_ = std::any_of(map.instrs.begin(), map.instrs.end(),
                               [](const MapInstr& instr) { return instr.code == MapCode::Random; });
}

void ElementPrinter::before(CodeWriter& out, const std::string& position) {
  const int count = static_cast<int>(map_.instrs.size());
  for (int i = 0; i < count; ++i)
    if (map_.instrs[at(i)].code == MapCode::Load) printer_.load_row(out, i);
  prepare(out, position);
}

void ElementPrinter::prepare(CodeWriter& out, const std::string& position) {
  for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i) {
    const MapInstr& instr = map_.instrs[at(i)];
    if (instr.code == MapCode::Random) {
      out.line(printer_.random_draw(i));
      out.line(cat("const RandomRow<N> q", i, " = random_row<N>(r", i, ", ", position, ");"));
    }
    if (levels_[at(i)] == Level::Element) continue;
    if (instr.code == MapCode::Affine) {
      out.line(cat("const ", printer_.type(i), " t", i, " = ", printer_.affine(i, ""), ";"));
      printer_.set(i, cat("t", i));
    }
    if (instr.code == MapCode::Compute) out.line(printer_.compute(i));
  }
}

void ElementPrinter::inside(CodeWriter& out) {
  for (int i = 0; i < static_cast<int>(map_.instrs.size()); ++i) {
    const MapInstr& instr = map_.instrs[at(i)];
    if (levels_[at(i)] != Level::Element) continue;
    std::string text;
    if (instr.code == MapCode::Affine) {
      text = printer_.affine(i, "i");
    } else if (instr.code == MapCode::Random) {
      text = printer_.random_element(i, cat("q", i), "i");
    } else if (instr.code == MapCode::Compute) {
      out.line(printer_.compute(i));
      continue;
    } else {
      continue;
    }
    out.line(cat("const ", printer_.type(i), " t", i, " = ", text, ";"));
    printer_.set(i, cat("t", i));
  }
}

}  // namespace tenon::cuda
