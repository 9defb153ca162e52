// Visits all data of a program except texts and kernels, and separates numbers that may depend on
// sizes from fixed ones. For sized_plan.cpp and region_key.cpp, which must see the same members.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "graph/host_code.h"
#include "plan/program/program.h"

namespace tenon {

/// `Visit` has fixed(word) and size(number); for a non-const program, size() may change the number.
/// Value ids and region labels are passed to fixed() unless Visit has id(value) and label(region).
/// Views and shapes are passed as words and numbers unless Visit has view(view) and shape(shape).
/// The order of calls depends on fixed words only. Three things are left out: bodies of loops and
/// branches, which are programs of their own; the order of steps and the arena, which follow from
/// the rest.
template <class Visit>
class ProgramSizes {
 public:
  explicit ProgramSizes(Visit& visit) : v_(visit) {}

  template <class P>
  void program(P& p) {
    fixed(p.values.size(), p.slots.size(), p.outputs.size(), p.steps.size());
    for (auto& v : p.values) value(v);
    for (const ValueId id : p.slots) fixed(id);
    for (auto& out : p.outputs) {
      fixed(out.value, out.dtype, out.is_variable);
      shape(out.shape);
    }
    ids(p.assigned);
    v_.size(p.leaf_bytes);
    v_.size(p.output_bytes);
    for (const auto& before : p.before) {
      fixed(before.size());
      for (const int step : before) fixed(step);
    }
    for (auto& step : p.steps) region(step.region);
  }

  template <class V>
  void value(V& v) {
    fixed(v.kind, v.dtype, v.slot, v.label);
    shape(v.shape);
    v_.size(v.bytes);
  }

  template <class R>
  void region(R& r) {
    fixed(r.kind, r.phase, r.axis, r.rows_axis, r.parts.size());
    label(r);
    ids(r.local);
    ids(r.reads);
    ids(r.writes);
    v_.size(r.samples);
    fixed(r.slice, r.band);
    if (r.kind == RegionKind::Map || r.contraction.has_epilogue) map(r.map);
    if (r.kind == RegionKind::Contraction) {
      contraction(r.contraction);
      map(r.prologue_a);
      map(r.prologue_b);
    }
    if (r.kind == RegionKind::Opaque) opaque(r.opaque);
    for (auto& part : r.parts) region(part);
  }

 private:
  template <class... T>
  void fixed(T... words) {
    (v_.fixed(static_cast<std::uint64_t>(words)), ...);
  }
  /// One word from two numbers, or from four small ones.
  static std::uint64_t together(int a, int b) {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }
  static std::uint64_t together(MapCode code, Op op, DType dtype, bool per_row) {
    return static_cast<std::uint64_t>(code) << 48 | static_cast<std::uint64_t>(op) << 32 |
           static_cast<std::uint64_t>(dtype) << 16 | static_cast<std::uint64_t>(per_row);
  }
  void id(ValueId id) {
    if constexpr (requires { v_.id(id); })
      v_.id(id);
    else
      fixed(id);
  }
  void label(const Region& region) {
    if constexpr (requires { v_.label(region); })
      v_.label(region);
    else
      fixed(region.label);
  }
  template <class List>
  void ids(const List& list) {
    fixed(list.size());
    for (const ValueId value : list) id(value);
  }
  template <class S>
  void shape(S& shape) {
    if constexpr (requires { v_.shape(shape); }) return v_.shape(shape);
    fixed(shape.rank());
    for (int d = 0; d < shape.rank(); ++d) {
      std::int64_t extent = shape[d];
      v_.size(extent);
      if constexpr (!std::is_const_v<S>) shape[d] = extent;
    }
  }
  void words(const Attrs& attrs) {
    attrs.each_word([this](std::uint64_t word) { fixed(word); });
  }
  template <class V>
  void view(V& view) {
    if constexpr (requires { v_.view(view); }) return v_.view(view);
    id(view.value);
    v_.size(view.offset);
    for (auto& stride : view.stride) v_.size(stride);
  }

  template <class M>
  void map(M& map) {
    shape(map.space);
    fixed(map.has_rows, map.instrs.size(), map.stores.size(), map.reduces.size());
    for (auto& instr : map.instrs) {
      fixed(together(instr.code, instr.op, instr.dtype, instr.per_row),
            together(instr.args[0], instr.args[1]), instr.args[2]);
      words(instr.attrs);
      view(instr.view);
    }
    for (auto& store : map.stores) {
      fixed(store.source);
      view(store.view);
    }
    for (const MapReduce& reduce : map.reduces) {
      fixed(reduce.source, reduce.op, reduce.axes, reduce.deviations, reduce.rows, reduce.within);
      id(reduce.value);
    }
  }

  template <class C>
  void contraction(C& c) {
    fixed(c.op, c.dtype, c.has_epilogue, c.channels_last, c.attrs.precision);
    id(c.out);
    const ConvAttrs& v = c.attrs.conv;
    fixed(v.stride_h, v.stride_w, v.pad_h, v.pad_w, v.dil_h, v.dil_w, v.groups);
    view(c.a);
    view(c.b);
    shape(c.a_shape);
    shape(c.b_shape);
    shape(c.out_shape);
  }

  template <class O>
  void opaque(O& o) {
    fixed(o.op, o.channels_last, o.shapes.size(), o.bodies.size(), o.views.size(),
          o.out_views.size());
    ids(o.inputs);
    for (auto& in : o.views) view(in);
    for (auto& out : o.out_views) view(out);
    ids(o.outs);
    for (auto& in : o.shapes) shape(in);
    if (const auto* scan = o.attrs.template get_if<ScanAttrs>()) {
      fixed(scan->reverse, scan->carries, scan->rows);
      ScanAttrs changed = *scan;
      v_.size(changed.length);
      if constexpr (!std::is_const_v<O>)
        if (changed.length != scan->length) o.attrs = changed;
    } else if (const auto* call = o.attrs.template get_if<HostCallAttrs>()) {
      fixed(call->name, call->code.lo, call->code.hi);
      HostCallTypes changed = *call->types;
      for (TensorType& type : changed.types) {
        fixed(type.dtype);
        shape(type.shape);
      }
      if constexpr (!std::is_const_v<O>)
        o.attrs = host_call_attrs(call->name, std::move(changed), call->kernel);
    } else if (const auto* cond = o.attrs.template get_if<CondAttrs>()) {
      fixed(cond->operands, cond->captured);
    } else {
      words(o.attrs);
    }
  }

  Visit& v_;
};

}  // namespace tenon
