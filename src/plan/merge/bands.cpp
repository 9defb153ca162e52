// Windows of convolutions and poolings, and which rows each part of a chain computes and reads in a
// band.
#include "plan/merge/bands.h"

#include <algorithm>

#include "base/contains.h"
#include "base/index.h"
#include "plan/program/strides.h"

namespace tenon {
namespace {

constexpr int kRows = 2, kColumns = 3;  // axes of an image
constexpr int kPixels = 2;              // the axis of an epilogue that merges rows and columns

std::int64_t item_bytes(const Value& value) {
  return static_cast<std::int64_t>(item_size(value.dtype));
}

ChainAccess rows_of(ValueId id, const Shape& image, const Value& value) {
  return {id, image[kColumns] * item_bytes(value), image[0] * image[1]};
}

// A window that lies completely in the padding has no row to read.
const char* window_refusal(const PartRows& part) {
  const bool first = part.window.pad < part.window.reach;
  const bool last = part.window.of({part.rows - 1, 1}).first < part.operand_rows;
  return first && last ? nullptr : "has windows that lie completely in the padding";
}

const char* list_map(const MapProgram& map, int axis, std::int64_t rows, std::int64_t columns,
                     std::span<const Value> values, PartRows& out) {
  if (!map.reduces.empty()) return "contains a reduction";
  std::vector<ChainAccess> met;
  if (const char* why = list_accesses(map, axis, values, rows * columns, met)) return why;
  for (const ChainAccess& access : met)
    if (access.step != 0)
      out.accesses.push_back({access.value, access.step * columns, access.places});
  return nullptr;
}

const char* list_convolution(const Region& part, std::span<const Value> values, PartRows& out) {
  const Contraction& c = part.contraction;
  if (c.op != Op::Conv2d) return "is not a forward convolution";
  if (c.out_shape[kColumns] == 1)
    return "has a result with one pixel in a row";  // it may be a matrix product
  const ConvAttrs& conv = c.attrs.conv;
  out.window = {conv.stride_h, conv.pad_h, (c.b_shape[kRows] - 1) * conv.dil_h + 1};
  out.operand = c.a.value;
  out.operand_rows = c.a_shape[kRows];
  out.rows = c.out_shape[kRows];
  out.accesses.push_back(rows_of(out.operand, c.a_shape, values[at(out.operand)]));
  if (c.out != kNoValue) {
    out.result = c.out;
    out.accesses.push_back(rows_of(c.out, c.out_shape, values[at(c.out)]));
  }
  if (!c.has_epilogue) return nullptr;
  // The operand's rows are contiguous; what the epilogue reads keeps its own position.
  for (const MapInstr& instr : part.map.instrs)
    if (instr.code == MapCode::Load && instr.view.value == out.operand)
      return "reads its operand again in the epilogue";
  return list_map(part.map, kPixels, out.rows, c.out_shape[kColumns], values, out);
}

const char* list_pooling(const Opaque& o, std::span<const Value> values, PartRows& out) {
  if (kind_of(o.op) != OpKind::Pooling || o.inputs.size() != 1) return "is not a pooling of images";
  const Value& result = values[at(o.out())];
  if (result.shape.rank() != 4) return "does not compute images";
  const auto& pool = o.attrs.as<PoolAttrs>();
  out.window = {pool.stride_h, pool.pad_h, (pool.kernel_h - 1) * pool.dil_h + 1};
  out.operand = o.inputs[0];
  out.result = o.out();
  out.operand_rows = o.shapes[0][kRows];
  out.rows = result.shape[kRows];
  out.accesses.push_back(rows_of(out.operand, o.shapes[0], values[at(out.operand)]));
  out.accesses.push_back(rows_of(out.result, result.shape, result));
  return nullptr;
}

// Which rows of the intermediate values are needed. Filled from the last part to the first.
class Handed {
 public:
  explicit Handed(const std::vector<ValueId>& local) : local_(local) {}

  bool is_local(ValueId id) const { return contains(local_, id); }

  bool need(const ChainAccess& access, std::int64_t of, Rows rows) {
    if (!is_local(access.value)) return true;
    const Need need{access, of, rows};
    const Need* known = find(access.value);
    if (known == nullptr) {
      needs_.push_back(need);
      return true;
    }
    return known->rows == rows && agree(*known, access, of);
  }

  // The rows that the part has to compute.
  bool made(const Region& part, const PartRows& own, Rows& rows) const {
    bool found = false;
    for (ValueId id : part.writes) {
      const Need* need = find(id);
      const ChainAccess* access = own.find(id);
      if (need == nullptr || access == nullptr || !agree(*need, *access, own.rows)) return false;
      if (found && !(need->rows == rows)) return false;
      rows = need->rows;
      found = true;
    }
    return found;
  }

 private:
  struct Need {
    ChainAccess access;
    std::int64_t of = 0;  // rows of the whole value
    Rows rows;
  };
  static bool agree(const Need& need, const ChainAccess& access, std::int64_t of) {
    return need.access.step == access.step && need.access.places == access.places && need.of == of;
  }
  const Need* find(ValueId id) const {
    const auto found = std::find_if(needs_.begin(), needs_.end(),
                                    [&](const Need& n) { return n.access.value == id; });
    return found == needs_.end() ? nullptr : &*found;
  }

  const std::vector<ValueId>& local_;
  std::vector<Need> needs_;
};

bool list_band(const Region& part, const PartRows& own, bool clipped, Handed& handed,
               PartBand& band) {
  for (ValueId id : part.reads)
    if (handed.is_local(id) && own.find(id) == nullptr) return false;  // reads all of the value
  if (own.operand != kNoValue) {
    const Rows all = own.window.of(band.made);
    const std::int64_t first = clipped ? std::max<std::int64_t>(all.first, 0) : all.first;
    const std::int64_t end = all.first + all.count;
    band.read = {first, (clipped ? std::min(end, own.operand_rows) : end) - first};
    band.pad = first - all.first;
  }
  for (const ChainAccess& access : own.accesses) {
    if (!contains(part.reads, access.value)) continue;
    const bool operand = access.value == own.operand;
    if (!handed.need(access, operand ? own.operand_rows : own.rows,
                     operand ? band.read : band.made))
      return false;
  }
  return true;
}

}  // namespace

const ChainAccess* PartRows::find(ValueId id) const {
  const auto found = std::find_if(accesses.begin(), accesses.end(),
                                  [&](const ChainAccess& a) { return a.value == id; });
  return found == accesses.end() ? nullptr : &*found;
}

const char* find_rows(Region& part, const Capabilities& can, std::span<const Value> values,
                      std::int64_t rows, std::span<const ChainAccess> known) {
  if (can.no_bands != nullptr) return can.no_bands;
  if (part.kind != RegionKind::Map) return nullptr;
  const int rank = part.map.space.rank();
  if (const char* why = find_axis(part.map, values, rows, known, part.rows_axis)) return why;
  if (part.rows_axis <= part.axis) part.axis += part.map.space.rank() - rank;
  return nullptr;
}

const char* list_rows(const Region& part, std::span<const Value> values, PartRows& out) {
  const char* why = "does not process images";
  if (part.kind == RegionKind::Map) {
    if (part.rows_axis < 0 || part.rows_axis >= part.map.space.rank())
      return "has no axis for the rows of an image";
    out.rows = part.map.space[part.rows_axis];
    return list_map(part.map, part.rows_axis, out.rows, 1, values, out);
  }
  if (part.kind == RegionKind::Contraction) why = list_convolution(part, values, out);
  if (part.kind == RegionKind::Opaque) why = list_pooling(part.opaque, values, out);
  return why == nullptr ? window_refusal(out) : why;
}

bool list_bands(const Region& chain, std::span<const PartRows> parts, Rows result, bool clipped,
                std::vector<PartBand>& out) {
  out.assign(parts.size(), {});
  Handed handed(chain.local);
  for (std::size_t k = parts.size(); k-- > 0;) {
    const Region& part = chain.parts[k];
    const bool last = k + 1 == parts.size();
    if (last) out[k].made = result;
    if (!last && !handed.made(part, parts[k], out[k].made)) return false;
    if (!list_band(part, parts[k], clipped, handed, out[k])) return false;
  }
  return true;
}

Region cut_to_band(const Region& part, const PartRows& rows, const PartBand& band,
                   const Region& chain, std::span<Value> values) {
  Region band_part = part;
  const auto map_16_bit = [&](int axis, std::int64_t columns) {
    MapProgram& map = band_part.map;
    map.space[axis] = band.made.count * columns;
    const auto keep = [&](View& view) {
      if (contains(chain.local, view.value))
        keep_slice(view, axis, map.space.rank(), rows.rows * columns, map.space[axis]);
    };
    for (MapInstr& instr : map.instrs)
      if (instr.code == MapCode::Load) keep(instr.view);
    for (MapStore& store : map.stores) keep(store.view);
  };
  if (part.kind == RegionKind::Map) map_16_bit(part.rows_axis, 1);
  if (part.kind == RegionKind::Contraction) {
    Contraction& c = band_part.contraction;
    c.a_shape[kRows] = band.read.count;
    c.out_shape[kRows] = band.made.count;
    c.attrs.conv.pad_h = band.pad;
    contiguous_strides(c.a_shape, c.a.stride);
    if (c.has_epilogue) map_16_bit(kPixels, c.out_shape[kColumns]);
  }
  if (part.kind == RegionKind::Opaque) {
    PoolAttrs pool = part.opaque.attrs.as<PoolAttrs>();
    pool.pad_h = band.pad;
    band_part.opaque.attrs = pool;
    band_part.opaque.shapes[0][kRows] = band.read.count;
    values[at(rows.result)].shape[kRows] = band.made.count;
  }
  return band_part;
}

}  // namespace tenon
