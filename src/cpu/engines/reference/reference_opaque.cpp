// Opaque regions by the reference engine: movement, pooling, and softmax that was not decomposed.
//
// Indices are checked here, because no earlier stage sees their values.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/axes.h"
#include "base/index.h"
#include "cpu/engines/reference/reference.h"
#include "graph/node.h"
#include "plan/graph/outside.h"

namespace tenon::cpu::reference {

namespace {

struct Call {
  const Attrs& attrs;
  std::vector<Array> inputs;
  std::vector<Shape> shapes;
  Shape out_shape;
  DType out_dtype;
};

Array concat(const Call& call) {
  const int axis = static_cast<int>(call.attrs.as<AxisAttrs>().axis);
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
  const auto& margin = call.attrs.as<PadAttrs>();
  Array out(call.out_dtype, call.out_shape.numel());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    std::int64_t rest = i, source = 0, stride = 1;
    bool inside = true;
    for (int d = call.out_shape.rank() - 1; d >= 0; --d) {
      const std::int64_t c = rest % call.out_shape[d] - margin.before[d];
      rest /= call.out_shape[d];
      inside = inside && c >= 0 && c < call.shapes[0][d];
      source += c * stride;
      stride *= call.shapes[0][d];
    }
    if (inside) {
      copy_element(out, i, call.inputs[0], source);
    } else {
      out.set(i, margin.value);
    }
  }
  return out;
}

/// The position in x of the index for element i, of `count` along the axis. An index of rank 1
/// applies along all other axes.
std::int64_t indexed(const char* name, const Array& index, const Shape& index_shape, std::int64_t i,
                     std::int64_t count, const Shape& x, int axis) {
  const std::int64_t inner = inner_count(x, axis);
  const std::int64_t place = index_shape.rank() == 1 ? i / inner % count : i;
  const std::int64_t where_to = index.whole[at(place)];
  if (where_to < 0 || where_to >= x[axis])
    throw index_outside(where(name), where_to, axis, x[axis], place);
  return i / (count * inner) * x[axis] * inner + where_to * inner + i % inner;
}

Array gather(const Call& call) {
  const int axis = static_cast<int>(call.attrs.as<AxisAttrs>().axis);
  Array out(call.out_dtype, call.out_shape.numel());
  for (std::int64_t i = 0; i < out.size(); ++i)
    copy_element(out, i, call.inputs[0],
                 indexed("gather", call.inputs[1], call.shapes[1], i, call.out_shape[axis],
                         call.shapes[0], axis));
  return out;
}

Array scatter_add(const Call& call) {
  const int axis = static_cast<int>(call.attrs.as<AxisAttrs>().axis);
  Array sums(is_floating(call.out_dtype) ? DType::Float64 : DType::Int64, call.out_shape.numel());
  const bool uniform = call.shapes[0].rank() == 0;  // the base is one number everywhere
  for (std::int64_t i = 0; i < sums.size(); ++i)
    copy_element(sums, i, call.inputs[0], uniform ? 0 : i);
  for (std::int64_t i = 0; i < call.inputs[2].size(); ++i) {
    const std::int64_t to = indexed("scatter_add", call.inputs[1], call.shapes[1], i,
                                    call.shapes[2][axis], call.out_shape, axis);
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

Array scatter(const Call& call) {
  const int axis = static_cast<int>(call.attrs.as<AxisAttrs>().axis);
  Array out(call.out_dtype, call.out_shape.numel());
  const bool uniform = call.shapes[0].rank() == 0;  // the base is one number everywhere
  for (std::int64_t i = 0; i < out.size(); ++i)
    copy_element(out, i, call.inputs[0], uniform ? 0 : i);
  for (std::int64_t i = 0; i < call.inputs[2].size(); ++i)
    copy_element(out,
                 indexed("scatter", call.inputs[1], call.shapes[1], i, call.shapes[2][axis],
                         call.out_shape, axis),
                 call.inputs[2], i);
  return out;
}

/// Over the last axis, in double throughout.
Array softmax(const Call& call, bool log) {
  Array out(call.out_dtype, call.out_shape.numel());
  const std::int64_t length = call.out_shape[call.out_shape.rank() - 1];
  for (std::int64_t row = 0; row < out.size(); row += length) {
    const double* x = call.inputs[0].real.data() + row;
    const double largest = *std::max_element(x, x + length);
    double sum = 0;
    for (std::int64_t j = 0; j < length; ++j) sum += std::exp(x[j] - largest);
    for (std::int64_t j = 0; j < length; ++j)
      out.set(row + j, log ? x[j] - largest - std::log(sum) : std::exp(x[j] - largest) / sum);
  }
  return out;
}

/// Over the channels, in double throughout: x s^-beta, or its gradient given the output gradient.
Array response_norm(const Call& call, bool channels_last) {
  const auto& v = call.attrs.as<ResponseAttrs>();
  const int axis = channels_last ? call.out_shape.rank() - 1 : 1;
  const std::int64_t channels = call.out_shape[axis], step = inner_count(call.out_shape, axis);
  const std::vector<double>& x = call.inputs[0].real;
  Array out(call.out_dtype, call.out_shape.numel());
  // The sum of f(channel) from `before` channels before c to `after` channels after it.
  const auto sum = [&](std::int64_t c, std::int64_t before, std::int64_t after, auto&& f) {
    double all = 0;
    for (std::int64_t d = std::max<std::int64_t>(c - before, 0);
         d <= std::min(c + after, channels - 1); ++d)
      all += f(d);
    return all;
  };
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const std::int64_t channel = i / step % channels, first = i - channel * step;
    const auto at_channel = [&](std::int64_t c) { return at(first + c * step); };
    const auto scale = [&](std::int64_t c) {
      const double squares = sum(c, v.before(), v.after(), [&](std::int64_t d) {
        return x[at_channel(d)] * x[at_channel(d)];
      });
      return v.k + v.alpha / static_cast<double>(v.size) * squares;
    };
    const double own = std::pow(scale(channel), -v.beta);
    if (call.inputs.size() == 1) {
      out.set(i, x[at(i)] * own);
      continue;
    }
    const std::vector<double>& g = call.inputs[1].real;
    const double near = sum(channel, v.after(), v.before(), [&](std::int64_t d) {
      return g[at_channel(d)] * x[at_channel(d)] * std::pow(scale(d), -v.beta - 1);
    });
    out.set(i,
            g[at(i)] * own - 2 * v.alpha * v.beta / static_cast<double>(v.size) * x[at(i)] * near);
  }
  return out;
}

Array compute_opaque(const Opaque& o, const Call& call) {
  switch (o.op) {
    case Op::Concat:
      return concat(call);
    case Op::Pad:
      return pad(call);
    case Op::Gather:
      return gather(call);
    case Op::ScatterAdd:
      return scatter_add(call);
    case Op::Scatter:
      return scatter(call);
    case Op::Softmax:
      return softmax(call, false);
    case Op::LogSoftmax:
      return softmax(call, true);
    case Op::ResponseNorm:
    case Op::ResponseNormGrad:
      return response_norm(call, o.channels_last);
    default:
      return pool(o.op, o.attrs.as<PoolAttrs>(), call.inputs, call.shapes, call.out_shape);
  }
}

}  // namespace

bool knows_opaque(Op op) {
  const OpKind kind = kind_of(op);
  return kind == OpKind::Movement || kind == OpKind::Pooling || kind == OpKind::Composite ||
         kind == OpKind::Attention;
}

namespace {

/// NaN is larger than every number.
bool is_smaller(const Array& x, std::int64_t i, std::int64_t j) {
  if (!x.floating()) return x.whole[at(i)] < x.whole[at(j)];
  const double a = x.real[at(i)], b = x.real[at(j)];
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

void sort(const Opaque& o, std::span<const Value> values, const Binding& binding) {
  const Array x = read(binding, values, o.inputs[0]);
  const auto& attrs = o.attrs.as<SortAttrs>();
  const std::int64_t length = o.shapes[0].at(-1);
  std::vector<std::int64_t> places;  // of the kept elements, in x
  std::vector<std::int64_t> row(at(length));
  for (std::int64_t start = 0; start < x.size(); start += length) {
    std::iota(row.begin(), row.end(), start);
    std::stable_sort(row.begin(), row.end(), [&](std::int64_t i, std::int64_t j) {
      return attrs.descending != 0 ? is_smaller(x, j, i) : is_smaller(x, i, j);
    });
    places.insert(places.end(), row.begin() + attrs.first, row.begin() + attrs.first + attrs.count);
  }
  const auto count = static_cast<std::int64_t>(places.size());
  if (const ValueId out = o.outs[0]; out != kNoValue) {
    Array sorted(values[at(out)].dtype, count);
    for (std::int64_t i = 0; i < count; ++i) copy_element(sorted, i, x, places[at(i)]);
    write(sorted, binding, values, out);
  }
  if (const ValueId out = o.outs[1]; out != kNoValue) {
    Array indices(DType::Int64, count);
    for (std::int64_t i = 0; i < count; ++i) indices.set(i, places[at(i)] % length);
    write(indices, binding, values, out);
  }
}

}  // namespace

void run_opaque(const Region& region, std::span<const Value> values, const Binding& binding) {
  const LabelGuard label(region.label);  // errors name the layer that the op was built in
  const Opaque& o = region.opaque;
  if (o.op == Op::Sort) return sort(o, values, binding);
  if (kind_of(o.op) == OpKind::Attention) return run_attention(o, values, binding);
  Call call{o.attrs, {}, o.shapes, values[at(o.out())].shape, values[at(o.out())].dtype};
  for (const ValueId id : o.inputs) call.inputs.push_back(read(binding, values, id));
  write(compute_opaque(o, call), binding, values, o.out());
}

}  // namespace tenon::cpu::reference
