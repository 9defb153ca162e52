// Opaque regions by the reference engine: movement, pooling, and any other op as the one-op region
// that it would also be.
//
// Indices are checked here, since no earlier stage sees their values.
#include <tenon/error.h>

#include "base/str.h"
#include "cpu/engines/reference.h"
#include "graph/node.h"

namespace tenon::cpu::reference {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Call {
  const Attrs& attrs;
  std::vector<Array> inputs;
  std::vector<Shape> shapes;
  Shape out_shape;
  DType out_dtype;
};

void copy_element(Array& out, std::int64_t i, const Array& from, std::int64_t j) {
  if (from.floating()) {
    out.real[at(i)] = from.real[at(j)];
  } else {
    out.whole[at(i)] = from.whole[at(j)];
  }
}

/// Elements after `axis` in the shape: the distance between neighbours along it.
std::int64_t inner_count(const Shape& shape, std::int64_t axis) {
  std::int64_t n = 1;
  for (int d = static_cast<int>(axis) + 1; d < shape.rank(); ++d) n *= shape[d];
  return n;
}

Array concat(const Call& call) {
  const int axis = static_cast<int>(call.attrs.i[0]);
  const std::int64_t inner = inner_count(call.out_shape, axis), out_size = call.out_shape[axis];
  Array out(call.out_dtype, call.out_shape.numel());
  std::int64_t before = 0;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const std::int64_t size = call.shapes[k][axis];
    for (std::int64_t i = 0; i < call.inputs[k].size(); ++i) {
      const std::int64_t outer = i / (size * inner), within = i % (size * inner);
      copy_element(out, outer * out_size * inner + before * inner + within, call.inputs[k], i);
    }
    before += size;
  }
  return out;
}

Array pad(const Call& call) {
  Array out(call.out_dtype, call.out_shape.numel());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    std::int64_t rest = i, source = 0, stride = 1;
    bool inside = true;
    for (int d = call.out_shape.rank() - 1; d >= 0; --d) {
      const std::int64_t c = rest % call.out_shape[d] - call.attrs.i[2 * d];
      rest /= call.out_shape[d];
      inside = inside && c >= 0 && c < call.shapes[0][d];
      source += c * stride;
      stride *= call.shapes[0][d];
    }
    if (inside) {
      copy_element(out, i, call.inputs[0], source);
    } else {
      out.set(i, call.attrs.f);
    }
  }
  return out;
}

/// Position in x of what element i of `index` points at along the axis.
std::int64_t indexed(const char* name, const Array& index, const Shape& index_shape, std::int64_t i,
                     const Shape& x, int axis) {
  const std::int64_t where_to = index.whole[at(i)];
  if (where_to < 0 || where_to >= x[axis])
    throw ValueError(cat(where(name), ": index ", where_to, " is out of range for axis ", axis,
                         " of size ", x[axis], " (indices count from 0)"));
  const std::int64_t inner = inner_count(x, axis);
  return i / (index_shape[axis] * inner) * x[axis] * inner + where_to * inner + i % inner;
}

Array gather(const Call& call) {
  const int axis = static_cast<int>(call.attrs.i[0]);
  Array out(call.out_dtype, call.out_shape.numel());
  for (std::int64_t i = 0; i < out.size(); ++i)
    copy_element(out, i, call.inputs[0],
                 indexed("gather", call.inputs[1], call.shapes[1], i, call.shapes[0], axis));
  return out;
}

Array scatter_add(const Call& call) {
  const int axis = static_cast<int>(call.attrs.i[0]);
  Array sums = convert(call.inputs[0], is_floating(call.out_dtype) ? DType::Float64 : DType::Int64);
  for (std::int64_t i = 0; i < call.inputs[2].size(); ++i) {
    const std::int64_t to =
        indexed("scatter_add", call.inputs[1], call.shapes[1], i, call.shapes[0], axis);
    if (sums.floating()) {
      sums.real[at(to)] += call.inputs[2].real[at(i)];
    } else {
      const auto a = static_cast<std::uint64_t>(sums.whole[at(to)]),
                 b = static_cast<std::uint64_t>(call.inputs[2].whole[at(i)]);
      sums.whole[at(to)] = static_cast<std::int64_t>(a + b);
    }
  }
  return sums;
}

// ---- Every other op, as a region of one op
// --------------------------------------------------------------------------------

MapInstr load(ValueId id, DType dtype, const Shape& shape) {
  MapInstr instr;
  instr.dtype = dtype;
  instr.view = contiguous(shape, id);
  return instr;
}

MapInstr apply(MapCode code, Op op, DType dtype, int a, int b = -1, int c = -1) {
  MapInstr instr;
  instr.code = code;
  instr.op = op;
  instr.dtype = dtype;
  instr.args[0] = a;
  instr.args[1] = b;
  instr.args[2] = c;
  return instr;
}

/// How the elements of a view op's result lie in its (contiguous) input.
View view_of(Op op, const Attrs& attrs, const Shape& in, const Shape& out, ValueId id) {
  if (op == Op::Reshape) return contiguous(out, id);
  const View source = contiguous(in);
  View view;
  view.value = id;
  for (int d = 0; d < out.rank(); ++d) {
    if (op == Op::Permute) {
      view.stride[d] = source.stride[attrs.i[d]];
    } else if (op == Op::Expand) {
      view.stride[d] = in[d] == 1 ? 0 : source.stride[d];
    } else {
      view.offset += attrs.i[2 * d] * source.stride[d];
      view.stride[d] = attrs.i[2 * d + 1] * source.stride[d];
    }
  }
  return view;
}

/// softmax = e / sum(e) with e = exp(x - max); log_softmax = (x - max) - log(sum(e)). Kept in
/// float64 up to the store.
int append_softmax(MapProgram& map, Op op) {
  std::vector<MapInstr>& instrs = map.instrs;
  const auto push = [&](MapCode code, Op of, int a, int b, bool row) {
    instrs.push_back(apply(code, of, DType::Float64, a, b));
    instrs.back().per_row = row;
    return static_cast<int>(instrs.size()) - 1;
  };
  map.has_rows = true;
  instrs[0].dtype = DType::Float64;
  const int centred =
      push(MapCode::Compute, Op::Sub, 0, push(MapCode::RowReduce, Op::Max, 0, -1, true), false);
  const int e = push(MapCode::Compute, Op::Exp, centred, -1, false);
  const int total = push(MapCode::RowReduce, Op::Sum, e, -1, true);
  if (op == Op::Softmax) return push(MapCode::Compute, Op::Div, e, total, false);
  return push(MapCode::Compute, Op::Sub, centred, push(MapCode::Compute, Op::Log, total, -1, true),
              false);
}

MapInstr leaf(const Opaque& o, DType dtype) {
  MapInstr instr;
  instr.attrs = o.attrs;
  instr.dtype = dtype;
  if (o.op == Op::Constant) {
    instr.code = MapCode::Number;
  } else if (o.op == Op::Iota) {
    instr.code = MapCode::Affine;
    instr.view.stride[o.attrs.i[0]] = 1;
  } else {
    instr.code = MapCode::Random;
    instr.view.value = o.inputs[0];
  }
  return instr;
}

MapProgram one_op(const Opaque& o, std::span<const Value> values) {
  const Value& out = values[at(o.out)];
  MapProgram map;
  map.space = out.shape;
  if (o.op == Op::Constant || o.op == Op::Iota || o.op == Op::Random) {
    map.instrs.push_back(leaf(o, out.dtype));
  } else {
    for (const ValueId id : o.inputs)
      map.instrs.push_back(load(id, values[at(id)].dtype, values[at(id)].shape));
  }
  int result = 0;
  View target = contiguous(out.shape, o.out);
  if (o.op >= Op::Sum && o.op <= Op::Min) {
    map.space = values[at(o.inputs[0])].shape;
    map.reduces.push_back({0, o.op, static_cast<std::uint32_t>(o.attrs.i[0]), o.out});
    return map;
  }
  if (o.op == Op::ArgMax || o.op == Op::ArgMin) {
    map.space = values[at(o.inputs[0])].shape;
    map.has_rows = true;
    map.instrs.push_back(apply(MapCode::RowReduce, o.op, out.dtype, 0));
    map.instrs.back().per_row = true;
    result = 1;
  } else if (o.op >= Op::Reshape && o.op <= Op::Slice) {
    map.instrs[0].view =
        view_of(o.op, o.attrs, values[at(o.inputs[0])].shape, out.shape, o.inputs[0]);
  } else if (o.op == Op::Softmax || o.op == Op::LogSoftmax) {
    result = append_softmax(map, o.op);
  } else if (o.op >= Op::Neg && o.op <= Op::Where) {
    result = static_cast<int>(o.inputs.size());
    map.instrs.push_back(
        apply(MapCode::Compute, o.op, out.dtype, 0, result > 1 ? 1 : -1, result > 2 ? 2 : -1));
  }
  map.stores.push_back({result, target});
  return map;
}

void contract(const Opaque& o, std::span<const Value> values, const Binding& binding) {
  Region region;
  Contraction& c = region.contraction;
  c.op = o.op;
  c.attrs = o.attrs;
  c.a_shape = values[at(o.inputs[0])].shape;
  c.b_shape = values[at(o.inputs[1])].shape;
  c.a = contiguous(c.a_shape, o.inputs[0]);
  c.b = contiguous(c.b_shape, o.inputs[1]);
  c.out_shape = values[at(o.out)].shape;
  c.dtype = values[at(o.out)].dtype;
  const std::int64_t compute_dtype = o.attrs.i[o.op == Op::Matmul ? 0 : 8];
  c.compute = compute_dtype == 0 ? c.dtype : static_cast<DType>(compute_dtype - 1);
  c.out = o.out;
  run_contraction(region, values, binding);
}

}  // namespace

void run_opaque(const Region& region, std::span<const Value> values, const Binding& binding) {
  const LabelGuard label(region.label);  // errors name the layer that the op was built in
  const Opaque& o = region.opaque;
  if (o.op >= Op::Matmul && o.op <= Op::Conv2dWeightGrad) return contract(o, values, binding);
  if (o.op == Op::Assign) {
    const Array value = read(binding, values, o.inputs[1]);
    if (o.out != kNoValue) write(value, binding, values, o.out);
    return write(value, binding, values, o.inputs[0]);
  }
  const bool moves = o.op >= Op::Concat && o.op <= Op::ScatterAdd;
  const bool pools = o.op >= Op::MaxPool2d && o.op <= Op::AvgPool2dGrad;
  if (!moves && !pools) return run_map(one_op(o, values), values, binding, nullptr);
  Call call{o.attrs, {}, {}, values[at(o.out)].shape, values[at(o.out)].dtype};
  for (const ValueId id : o.inputs) {
    call.inputs.push_back(read(binding, values, id));
    call.shapes.push_back(values[at(id)].shape);
  }
  const Array out = pools ? pool(o.op, o.attrs, call.inputs, call.shapes, call.out_shape)
                    : o.op == Op::Concat ? concat(call)
                    : o.op == Op::Pad    ? pad(call)
                    : o.op == Op::Gather ? gather(call)
                                         : scatter_add(call);
  write(out, binding, values, o.out);
}

}  // namespace tenon::cpu::reference
