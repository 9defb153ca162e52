// Column sums of a product's result (the moments of a batch, the sums of a normalisation's
// gradient) start in the product's epilogue. The epilogue reduces groups of neighbouring rows; the
// remaining reduction reads these partial sums, 32 or more times fewer numbers, instead of the
// result.
//
// The rule applies to feature maps only: column sums over other results (bias gradients) share a
// launch without it. One exception: sums over the gradients of attention, where the gradients are
// parts of one value, start in the kernels of attention.
//
// Engines say whether they support this and for how many rows (Capabilities::reduced_rows). All
// results of one product use the same number of rows, so the result does not depend on which engine
// runs. Deviations are taken from the mean of those rows and combined without loss
// (MapReduce::within).
#include <algorithm>
#include <string>

#include "base/str.h"
#include "plan/merge/epilogue.h"
#include "plan/merge/product_columns.h"
#include "plan/program/strides.h"
#include "plan/regions/groups.h"

namespace tenon {
namespace {

// axes of [rows, columns] and of [batch, rows, columns]
constexpr std::uint32_t kRowsOfMap = 1, kRowsOfResult = 3;

/// Epilogues accumulate in float32.
bool sums_in_float32(const MapProgram& map, const MapReduce& reduce,
                     std::span<const Value> values) {
  const auto fits = [](DType dtype) { return is_floating(dtype) && dtype != DType::Float64; };
  return fits(map.instrs[at(reduce.source)].dtype) && fits(values[at(reduce.value)].dtype);
}

/// Whether a map does nothing but sum columns.
bool sums_columns(const MapProgram& map, std::span<const Value> values) {
  if (map.space.rank() != 2 || map.space.numel() == 0 || map.has_rows || !map.stores.empty() ||
      map.reduces.empty())
    return false;
  for (const MapReduce& reduce : map.reduces)
    if (reduce.op != Op::Sum || reduce.axes != kRowsOfMap || reduce.within >= 0 ||
        !sums_in_float32(map, reduce, values))
      return false;
  return std::all_of(map.instrs.begin(), map.instrs.end(), [](const MapInstr& instr) {
    return instr.code == MapCode::Load || instr.code == MapCode::Number ||
           instr.code == MapCode::Compute;
  });
}

/// The index of the plain sum over the value whose deviations `r` sums; -1 if there is none.
int sum_beside(const MapProgram& map, const MapReduce& r) {
  for (std::size_t k = 0; k < map.reduces.size(); ++k)
    if (!map.reduces[k].deviations && map.reduces[k].source == r.source) return static_cast<int>(k);
  return -1;
}

/// Whether a product rounds a value only when storing it; the epilogue computes in float32.
bool is_rounded_when_stored(const MapProgram& product, ValueId id) {
  return std::any_of(
      product.stores.begin(), product.stores.end(), [&product, id](const MapStore& store) {
        const MapInstr& made = product.instrs[at(store.source)];
        return store.view.value == id && made.code == MapCode::Compute && made.op != Op::Cast &&
               (made.dtype == DType::Float16 || made.dtype == DType::BFloat16);
      });
}

/// A view over [rows, columns] as a view over the axes of an epilogue, [batch, rows, columns].
View over_batch(const View& view, const Shape& space) {
  View out = view;
  out.stride[0] = view.stride[0] * space[1];
  out.stride[1] = view.stride[0], out.stride[2] = view.stride[1];
  return out;
}

/// Whether a map sums the columns of one value, unchanged.
bool sums_one_value(const Region& reader) {
  const MapProgram& map = reader.map;
  if (reader.reads.size() != 1 || map.reduces.size() != 1 || map.reduces[0].deviations)
    return false;
  const MapInstr* source = &map.instrs[at(map.reduces[0].source)];
  if (source->code == MapCode::Compute && source->op == Op::Cast)
    source = &map.instrs[at(source->args[0])];
  return source->code == MapCode::Load && is_contiguous(source->view, map.space);
}

/// Whether the gradients of attention together fill all rows and columns of a value.
bool makes_all(const Opaque& op, const Value& value, const Shape& space) {
  if (op.op != Op::AttentionGrad || op.out_views.empty() || op.outs.size() != op.out_views.size())
    return false;
  std::int64_t columns = 0;
  for (std::size_t k = 0; k < op.outs.size(); ++k) {
    const Shape& shape = op.shapes[k];
    columns += shape[2] * shape[3];
    if (op.outs[k] != op.outs[0] || op.out_views[k].stride[1] != space[1] ||
        shape[0] * shape[1] != space[0])
      return false;
  }
  return columns == space[1] && value.shape.numel() == space.numel();
}

class ColumnReducer {
 public:
  explicit ColumnReducer(Merger& merger) : m_(merger) {}

  void run() {
    for (int s = 0; s < m_.size(); ++s) consider(s);
    if (merged_) m_.reindex();
  }

 private:
  void consider(int s) {
    Region& reader = m_.region(s);
    if (reader.kind != RegionKind::Map || !sums_columns(reader.map, m_.values())) return;
    for (const int product : m_.before[at(s)]) {
      const Region& made = m_.region(product);
      const bool reads = std::any_of(reader.reads.begin(), reader.reads.end(),
                                     [&made](ValueId id) { return is_written(made, id); });
      std::string why;
      if (reads && made.kind == RegionKind::Opaque && attach_to_gradients(s, product)) return;
      if (made.kind != RegionKind::Contraction || !reads) continue;
      const int rows = rows_of(s, product, &why);
      if (rows > 0 && attach(s, product, rows, &why)) return;
      note(reader, cat("cannot start in the epilogue of ", made.title, ": ", why));
    }
  }

  /// Number of rows that an engine which runs the product reduces at a time; 0 with a reason if
  /// none does.
  int rows_of(int s, int product, std::string* why) {
    const Region &reader = m_.region(s), &made = m_.region(product);
    const Shape& out = made.contraction.out_shape;
    const MapProgram& map = reader.map;
    *why = "no engine of such products reduces rows";
    if (!made.map.reduces.empty() || made.has_prologue()) return 0;
    const auto is_image = [&](ValueId id) {
      return is_written(made, id) && m_.values()[at(id)].shape.rank() == 4;
    };
    if (std::none_of(reader.reads.begin(), reader.reads.end(), is_image)) {
      *why = "it does not compute feature maps";
      return 0;
    }
    if (out.numel() != map.space.numel() || out[out.rank() - 1] != map.space[1]) {
      *why = "its rows are not those of the product";
      return 0;
    }
    for (const MapInstr& instr : map.instrs)
      if (instr.code == MapCode::Load && is_written(made, instr.view.value) &&
          !reads_in_order(made, map, instr.view)) {
        *why = "it reads the result in another order than the product writes it";
        return 0;
      }
    if (std::any_of(reader.reads.begin(), reader.reads.end(),
                    [&made](ValueId id) { return is_rounded_when_stored(made.map, id); })) {
      *why = "the product rounds its result only when storing it";
      return 0;
    }
    for (const int other : m_.before[at(s)])
      if (other != product && !m_.times.graph().reaches(other, product, false)) {
        *why = cat("it would have to wait for ", m_.region(other).title);
        return 0;
      }
    for (const MapReduce& reduce : map.reduces)
      if (reduce.deviations && sum_beside(map, reduce) < 0) return 0;
    std::string refusal;
    for (const Engine* engine : m_.options.engines)
      if (engine->claims(made, m_.values(), &refusal))
        if (const int rows = engine->capabilities(made, m_.values()).reduced_rows; rows > 0) {
          // The size of the whole result, or of one batch entry, depending on how the engine sees
          // the product.
          for (const std::int64_t size : {map.space[0], out.rank() > 1 ? out[out.rank() - 2] : 1})
            m_.program.limits.push_back({size, rows, true});
          return rows;
        }
    return 0;
  }

  bool attach(int s, int product, int rows, std::string* why) {
    Region& reader = m_.region(s);
    Region with = m_.region(product);
    const std::int64_t result_rows = reader.map.space[0];
    const Shape space = space_of_epilogue(with);
    const std::vector<int> place = add_to_epilogue(
        with, reader.map, [&space](const View& view) { return over_batch(view, space); });
    const std::size_t known = m_.program.values.size();
    const Shape parts{result_rows / rows, reader.map.space[1]};
    for (const MapReduce& reduce : reader.map.reduces) {
      MapReduce part{place[at(reduce.source)], Op::Sum, kRowsOfResult, new_value(parts, reader)};
      part.deviations = reduce.deviations;
      part.rows = rows;
      with.map.reduces.push_back(part);
    }
    if (!m_.is_run(with)) {
      m_.program.values.resize(known);
      *why = "no engine runs the product with it";
      return false;
    }
    for (const ValueId id : reader.reads)
      if (!is_written(with, id)) merge(with.reads, {id});
    MapProgram over_parts = of_parts(reader.map, with.map.reduces, parts);
    finish(s, product, std::move(with), std::move(over_parts), known, rows);
    return true;
  }

  /// Starts sums over attention's gradients where the gradients are stored.
  bool attach_to_gradients(int s, int attention) {
    Region& reader = m_.region(s);
    Region with = m_.region(attention);
    if (!sums_one_value(reader) ||
        !makes_all(with.opaque, m_.values()[at(reader.reads[0])], reader.map.space))
      return false;
    int rows = 0;
    std::string refusal;
    for (const Engine* engine : m_.options.engines)
      if (engine->claims(with, m_.values(), &refusal))
        rows = std::max(rows, engine->capabilities(with, m_.values()).reduced_rows);
    if (rows == 0) return false;
    m_.program.limits.push_back({with.opaque.shapes[0][1], rows, true});
    const std::size_t known = m_.program.values.size();
    const Shape parts{reader.map.space[0] / rows, reader.map.space[1]};
    MapReduce part{0, Op::Sum, kRowsOfResult, new_value(parts, reader)};
    part.rows = rows;
    with.opaque.outs.push_back(part.value);
    MapProgram over_parts = of_parts(reader.map, {part}, parts);
    finish(s, attention, std::move(with), std::move(over_parts), known, rows);
    return true;
  }

  /// Completes the change: the values from `known` on are the step's partial sums, which the map
  /// reads from now on.
  void finish(int s, int product, Region with, MapProgram over_parts, std::size_t known, int rows) {
    Region& reader = m_.region(s);
    note(with, cat("reduces rows of its result by ", reader.title, " while writing it"));
    reader.map = std::move(over_parts);
    for (std::size_t id = known; id < m_.program.values.size(); ++id)
      merge(with.writes, {static_cast<ValueId>(id)});
    list_values(reader, reader.reads, reader.writes);
    note(reader, cat("reads sums of ", rows, " rows, which ", with.title, " makes"));
    m_.region(product) = std::move(with);
    merged_ = true;
  }

  ValueId new_value(const Shape& shape, const Region& reader) {
    Value value;
    value.dtype = DType::Float32;
    value.shape = shape;
    value.bytes = shape.numel() * static_cast<std::int64_t>(item_size(value.dtype));
    value.label = reader.label;
    value.device = m_.program.device;
    m_.program.values.push_back(value);
    return static_cast<ValueId>(m_.program.values.size()) - 1;
  }

  /// The map that reduces the partial sums.
  static MapProgram of_parts(const MapProgram& reader, const std::vector<MapReduce>& begun,
                             const Shape& parts) {
    MapProgram map;
    map.space = parts;
    const std::size_t first = begun.size() - reader.reduces.size();
    for (std::size_t k = 0; k < reader.reduces.size(); ++k) {
      MapInstr load;
      load.code = MapCode::Load;
      load.view.value = begun[first + k].value;
      contiguous_strides(parts, load.view.stride);
      map.instrs.push_back(load);
    }
    for (std::size_t k = 0; k < reader.reduces.size(); ++k) {
      MapReduce reduce = reader.reduces[k];
      reduce.source = static_cast<int>(k);
      if (reduce.deviations) {
        reduce.rows = begun[first + k].rows;
        reduce.within = reduce.source;
        reduce.source = mean(map, sum_beside(reader, reader.reduces[k]), reduce.rows);
      }
      map.reduces.push_back(reduce);
    }
    return map;
  }

  static int mean(MapProgram& map, int sum, int of) {
    MapInstr share;
    share.code = MapCode::Number;
    share.attrs = ConstantAttrs{1.0 / of};
    map.instrs.push_back(share);
    MapInstr mean;
    mean.code = MapCode::Compute;
    mean.op = Op::Mul;
    mean.args[0] = sum, mean.args[1] = static_cast<int>(map.instrs.size()) - 1;
    map.instrs.push_back(mean);
    return static_cast<int>(map.instrs.size()) - 1;
  }

  Merger& m_;
  bool merged_ = false;
};

}  // namespace

void reduce_columns(Merger& merger) { ColumnReducer(merger).run(); }

}  // namespace tenon
