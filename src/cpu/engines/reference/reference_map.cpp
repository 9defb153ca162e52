// Map regions by the reference engine: every instruction over the whole iteration space before the
// next one, then the stores.
//
// All loads come before all stores, so a region may overwrite its inputs. As in every engine, a
// value of a 16-bit dtype is held in float32 and rounded where it is stored or cast.
#include <algorithm>

#include "base/index.h"
#include "cpu/engines/reference/reference.h"

namespace tenon::cpu::reference {

namespace {

/// The dtype in which a region computes a value of `dtype`.
DType held(DType dtype) {
  return is_floating(dtype) && item_size(dtype) == 2 ? DType::Float32 : dtype;
}

/// One element per row: the space with its last axis shrunk to 1.
Shape row_space(const Shape& space) {
  Shape rows = space;
  if (rows.rank() > 0) rows[rows.rank() - 1] = 1;
  return rows;
}

class MapRun {
 public:
  MapRun(const MapProgram& map, std::span<const Value> values, const Binding& binding,
         const Array* accumulator)
      : map_(map),
        values_(values),
        binding_(binding),
        accumulator_(accumulator),
        rows_(row_space(map.space)),
        results_(map.instrs.size()),
        last_use_(map.instrs.size(), map.instrs.size()) {
    for (std::size_t k = 0; k < map.instrs.size(); ++k)
      for (const int arg : map.instrs[k].args)
        if (arg >= 0) last_use_[at(arg)] = k;
    for (const MapStore& store : map.stores) last_use_[at(store.source)] = map.instrs.size();
    for (const MapReduce& reduce : map.reduces) last_use_[at(reduce.source)] = map.instrs.size();
  }

  void run() {
    for (std::size_t k = 0; k < map_.instrs.size(); ++k) {
      results_[k] = evaluate(map_.instrs[k]);
      for (const int arg : map_.instrs[k].args)
        if (arg >= 0 && last_use_[at(arg)] == k) results_[at(arg)] = Array();
    }
    for (const MapStore& store : map_.stores) {
      const Array& source = results_[at(store.source)];
      write(convert(source, values_[at(store.view.value)].dtype), binding_.values[store.view.value],
            space(map_.instrs[at(store.source)]), store.view);
    }
    for (const MapReduce& reduce : map_.reduces) reduce_columns(reduce);
  }

  Array run_prologue() {
    for (std::size_t k = 0; k < map_.instrs.size(); ++k)
      results_[k] = map_.instrs[k].code == MapCode::Random ? random_at(map_.instrs[k])
                                                           : evaluate(map_.instrs[k]);
    return convert(results_.back(), map_.instrs.back().dtype);
  }

 private:
  const Shape& space(const MapInstr& instr) const { return instr.per_row ? rows_ : map_.space; }

  Array evaluate(const MapInstr& instr) const {
    switch (instr.code) {
      case MapCode::Load: {
        const Value& value = values_[at(instr.view.value)];
        return convert(
            read(binding_.values[instr.view.value], value.dtype, space(instr), instr.view),
            held(instr.dtype));
      }
      case MapCode::Accumulator:
        return convert(*accumulator_, held(instr.dtype));
      case MapCode::Affine:
        return affine(instr);
      case MapCode::Number:
        return number(instr);
      case MapCode::Random: {
        const auto state = read(binding_, values_, instr.view.value);
        return convert(random(instr.attrs.as<RandomAttrs>(), instr.dtype, state.whole.data(),
                              space(instr).numel()),
                       held(instr.dtype));
      }
      case MapCode::Compute:
        return compute_instr(instr);
      case MapCode::RowReduce:
        break;
    }
    return reduce_rows(instr);
  }

  // Random numbers by the positions of a prologue's view; the last element has the highest
  // position.
  Array random_at(const MapInstr& instr) const {
    std::int64_t count = 0;
    for_each(map_.space, instr.view,
             [&](std::int64_t, std::int64_t position) { count = std::max(count, position + 1); });
    const auto state = read(binding_, values_, instr.view.value);
    const Array drawn =
        random(instr.attrs.as<RandomAttrs>(), instr.dtype, state.whole.data(), count);
    Array out(instr.dtype, map_.space.numel());
    for_each(map_.space, instr.view, [&](std::int64_t i, std::int64_t position) {
      if (drawn.floating())
        out.set(i, drawn.real_at(position));
      else
        out.set(i, drawn.whole_at(position));
    });
    return out;
  }

  Array affine(const MapInstr& instr) const {
    Array out(instr.dtype, space(instr).numel());
    for_each(space(instr), instr.view,
             [&](std::int64_t i, std::int64_t value) { out.set(i, value); });
    return convert(out, held(instr.dtype));
  }

  Array number(const MapInstr& instr) const {
    Array out(held(instr.dtype), space(instr).numel());
    const Scalar value = instr.attrs.as<ConstantAttrs>().value;
    for (std::int64_t i = 0; i < out.size(); ++i) out.set(i, value);
    return out;
  }

  Array compute_instr(const MapInstr& instr) const {
    const Array* args[3] = {};
    std::size_t count = 0;
    for (const int arg : instr.args)
      if (arg >= 0) args[count++] = &results_[at(arg)];
    if (instr.op == Op::OwnElement)
      return convert(
          compute_own(*instr.attrs.as<ElementAttrs>().code, {args, count}, space(instr).numel()),
          held(instr.dtype));
    const DType dtype = instr.op == Op::Cast ? instr.dtype : held(instr.dtype);
    return convert(compute(instr.op, dtype, {args, count}, space(instr).numel()),
                   held(instr.dtype));
  }

  Array reduce_rows(const MapInstr& instr) const {
    const Array& source = results_[at(instr.args[0])];
    const std::int64_t rows = rows_.numel(), length = map_.space[map_.space.rank() - 1];
    const bool per_row_source = map_.instrs[at(instr.args[0])].per_row;
    Reducer reducer(instr.op, held(instr.dtype), rows);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t j = 0; j < length; ++j)
        reducer.add(row, source, per_row_source ? row : row * length + j, j);
    return reducer.finish();
  }

  void reduce_columns(const MapReduce& reduce) const {
    View target;  // strides of the result over the space: 0 along reduced axes
    std::int64_t stride = 1;
    for (int d = map_.space.rank() - 1; d >= 0; --d) {
      if ((reduce.axes >> d) & 1u) continue;
      target.stride[d] = stride;
      stride *= map_.space[d];
    }
    const Value& value = values_[at(reduce.value)];
    const Array& source = results_[at(reduce.source)];
    const std::int64_t repeat = source.size() == 0 ? 1 : map_.space.numel() / source.size();
    Reducer reducer(reduce.op, value.dtype, value.shape.numel());
    // For an epilogue that reduces some rows: the element's block of rows, and its column.
    const bool by_rows = reduce.rows > 0 && reduce.within < 0;
    const std::int64_t columns = map_.space[map_.space.rank() - 1];
    const auto result_of = [&](std::int64_t i, std::int64_t r) {
      return by_rows ? i / columns / reduce.rows * columns + i % columns : r;
    };
    const auto each = [&](auto&& f) {
      for_each(map_.space, target, [&](std::int64_t i, std::int64_t r) { f(i, result_of(i, r)); });
    };
    if (reduce.deviations) {
      add_deviations(reduce, each, source, repeat, reducer);
    } else {
      each([&](std::int64_t i, std::int64_t r) { reducer.add(r, source, i / repeat, i); });
    }
    write(reducer.finish(), binding_, values_, reduce.value);
  }

  template <class Each>
  void add_deviations(const MapReduce& reduce, const Each& each, const Array& source,
                      std::int64_t repeat, Reducer& reducer) const {
    const std::int64_t results = values_[at(reduce.value)].shape.numel();
    const Array* within = reduce.within >= 0 ? &results_[at(reduce.within)] : nullptr;
    const double count = static_cast<double>(map_.space.numel()) / static_cast<double>(results);
    std::vector<double> mean(at(results));
    each([&](std::int64_t i, std::int64_t r) {
      mean[at(r)] += source.real[at(i / repeat)] / count;
    });
    Array square(source.dtype, 1);
    each([&](std::int64_t i, std::int64_t r) {
      const double deviation = source.real[at(i / repeat)] - mean[at(r)];
      const double own = deviation * deviation;
      square.set(0, within != nullptr ? within->real[at(i)] + reduce.rows * own : own);
      reducer.add(r, square, 0, i);
    });
  }

  const MapProgram& map_;
  std::span<const Value> values_;
  const Binding& binding_;
  const Array* accumulator_;
  Shape rows_;
  std::vector<Array> results_;
  std::vector<std::size_t>
      last_use_;  // instruction after which a result is dropped; their number: a store needs it
};

}  // namespace

void run_map(const MapProgram& map, std::span<const Value> values, const Binding& binding,
             const Array* accumulator) {
  MapRun(map, values, binding, accumulator).run();
}

Array run_prologue(const MapProgram& map, std::span<const Value> values, const Binding& binding,
                   const Array& operand) {
  return MapRun(map, values, binding, &operand).run_prologue();
}

}  // namespace tenon::cpu::reference
