// Indexing: x.index({…}) and x.index_put({…}, value), written with the ops of views and movement.
//
// Numbers and slices are views. Integer tensors become one vector of places along one axis, which
// index_select reads. A put makes a tensor that holds the value at its places, and where() chooses.
#include <algorithm>
#include <limits>
#include <numeric>

#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/str.h"
#include "ops/infer.h"

namespace tenon {
namespace {

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min(),
                       kLast = std::numeric_limits<std::int64_t>::max();

bool is_mask(const Index& index) {
  return index.kind() == Index::Kind::Tensor && index.tensor().dtype() == DType::Bool;
}

// Axes of the indexed tensor that an index stands for.
int axes_of(const Index& index) {
  if (index.kind() == Index::Kind::NewAxis || index.kind() == Index::Kind::Ellipsis) return 0;
  return is_mask(index) ? index.tensor().rank() : 1;
}

// The indices with one for each axis: the ellipsis written out.
std::vector<Index> for_each_axis(const char* op, const Tensor& x,
                                 const std::vector<Index>& indices) {
  int axes = 0, ellipses = 0;
  for (const Index& index : indices) {
    axes += axes_of(index);
    ellipses += index.kind() == Index::Kind::Ellipsis;
  }
  if (ellipses > 1) throw ValueError(cat(where(op), ": more than one ellipsis"));
  if (axes > x.rank())
    throw ShapeError(cat(where(op), ": indices for ", axes, " axes of a tensor ", x.shape()));
  std::vector<Index> out;
  const auto rest = [&] {
    out.insert(out.end(), static_cast<std::size_t>(x.rank() - axes), Slice());
  };
  for (const Index& index : indices) {
    if (index.kind() == Index::Kind::Ellipsis) {
      rest();
    } else {
      out.push_back(index);
    }
  }
  if (ellipses == 0) rest();
  return out;
}

Tensor sliced(const Tensor& x, int axis, const Slice& s) {
  const bool down = s.step < 0;
  return slice(x, axis, s.start.value_or(down ? kLast : 0), s.end.value_or(down ? kFirst : kLast),
               s.step);
}

void require_mask_fits(const char* op, const Tensor& x, int axis, const Tensor& mask) {
  bool fits = axis + mask.rank() <= x.rank();
  for (int k = 0; fits && k < mask.rank(); ++k) fits = mask.size(k) == x.size(axis + k);
  if (!fits)
    throw ShapeError(cat(where(op), ": a mask ", mask.shape(), " does not fit ", x.shape(),
                         " from axis ", axis, " on"));
}

// The coordinates of a mask's ones, a vector an axis. Reads the mask.
std::vector<Tensor> places_of(const Tensor& mask, Device device) {
  const bool* ones = mask.data_as<bool>();
  const auto rank = static_cast<std::size_t>(mask.rank());
  std::vector<Ints> places(rank);
  for (std::int64_t k = 0; k < mask.numel(); ++k) {
    if (!ones[k]) continue;
    std::int64_t rest = k;
    for (std::size_t a = rank; a-- > 0;) {
      const std::int64_t size = mask.size(static_cast<int>(a));
      places[a].push_back(rest % size);
      rest /= size;
    }
  }
  std::vector<Tensor> out;
  out.reserve(rank);
  for (const Ints& p : places)
    out.push_back(Tensor::from_data(p.data(), {std::ssize(p)}, DType::Int64, device));
  return out;
}

// An integer tensor that picks along an axis.
struct Pick {
  int axis;
  Tensor numbers;
};

// Negative numbers count from the end.
Tensor from_front(const char* op, const Tensor& numbers, std::int64_t size) {
  if (numbers.dtype() != DType::Int64 && numbers.dtype() != DType::Int32)
    throw DTypeError(cat(where(op), ": an index of ", numbers.dtype(),
                         ": cast it to int64, or compare to get a mask of bool"));
  const Tensor n = cast(numbers, DType::Int64);
  return tenon::where(n < 0, n + size, n);
}

// The axes of the picks are next to each other, from `axis` on.
Tensor picked(const char* op, const Tensor& x, int axis, const std::vector<Pick>& picks) {
  Shape wanted = picks[0].numbers.shape();
  for (const Pick& pick : picks)
    wanted = broadcast_shapes(wanted, pick.numbers.shape(), where(op).c_str());
  const auto count = static_cast<int>(picks.size());
  std::int64_t total = 1;
  Tensor place, valid;
  for (int k = 0; k < count; ++k) {
    const std::int64_t size = x.size(axis + k);
    const Tensor n = from_front(op, picks[static_cast<std::size_t>(k)].numbers, size);
    place = place.defined() ? place * size + n : n;
    const Tensor inside = (n >= 0) & (n < size);
    valid = valid.defined() ? valid & inside : inside;
    total *= size;
  }
  // Of several numbers one may be outside and their place inside: such a place is moved outside.
  if (count > 1) place = tenon::where(valid, place, total);
  place = reshape(broadcast_to(place, wanted), {-1});
  Ints merged, out;
  for (int a = 0; a < x.rank(); ++a) {
    if (a == axis) {
      merged.push_back(total);
      out.insert(out.end(), wanted.begin(), wanted.end());
    }
    if (a >= axis && a < axis + count) continue;
    merged.push_back(x.size(a));
    out.push_back(x.size(a));
  }
  return reshape(index_select(reshape(x, merged), axis, place), out);
}

Tensor pick(const char* op, const Tensor& x, const std::vector<Pick>& picks) {
  bool together = true;
  for (std::size_t k = 1; k < picks.size(); ++k)
    together = together && picks[k].axis == picks[k - 1].axis + 1;
  if (together) return picked(op, x, picks[0].axis, picks);
  Ints order;
  for (const Pick& each : picks) order.push_back(each.axis);
  for (int a = 0; a < x.rank(); ++a)
    if (std::find(order.begin(), order.end(), a) == order.end()) order.push_back(a);
  return picked(op, permute(x, order), 0, picks);
}

Tensor part(const char* op, const Tensor& x, const std::vector<Index>& indices) {
  Tensor y = x;
  std::vector<Pick> picks;
  int axis = 0;
  for (const Index& index : for_each_axis(op, x, indices)) {
    switch (index.kind()) {
      case Index::Kind::Number:
        y = select(y, axis, index.number());
        break;
      case Index::Kind::Slice:
        y = sliced(y, axis++, index.slice());
        break;
      case Index::Kind::NewAxis:
        y = unsqueeze(y, axis++);
        break;
      case Index::Kind::Ellipsis:
        break;
      case Index::Kind::Tensor:
        if (!is_mask(index)) {
          picks.push_back({axis++, index.tensor()});
          break;
        }
        require_mask_fits(op, y, axis, index.tensor());
        if (index.tensor().rank() == 0)
          throw NotSupported(cat(where(op), ": a mask without axes: use where()"));
        for (const Tensor& places : places_of(index.tensor(), x.device()))
          picks.push_back({axis++, places});
        break;
    }
  }
  return picks.empty() ? y : pick(op, y, picks);
}

// ---- Putting ----------------------------------------------------------------------------------

// Elements start, start + step, …, `count` of them, of an axis; the step is above 0.
struct Range {
  std::int64_t start = 0, step = 1, count = 0;
  bool reversed = false;  // they are given from the last to the first
};

Range range_of(const Slice& s, std::int64_t size) {
  const Tensor axis = arange(0, size);  // only its shape and attributes are looked at
  const Tensor part = sliced(axis, 0, s);
  if (part.node() == axis.node()) return {0, 1, size, false};
  const auto& attrs = part.node()->attrs.as<SliceAttrs>();
  Range r{attrs.start[0], attrs.step[0], part.size(0), false};
  if (r.step < 0) r = {r.start + (r.count - 1) * r.step, -r.step, r.count, true};
  return r;
}

// v, whose axis has range.count elements, at the range's places of an axis of `size`; zeros beside.
Tensor spread(const Tensor& v, int axis, const Range& range, std::int64_t size) {
  Tensor t = range.reversed ? flip(v, {axis}) : v;
  if (range.count == 0) {
    Shape whole = v.shape();
    whole[axis] = size;
    return zeros(whole, v.dtype());
  }
  const auto padded = [](const Tensor& x, int at, std::int64_t before, std::int64_t after) {
    Ints margins(static_cast<std::size_t>(2 * (x.rank() - at)), 0);
    margins[margins.size() - 2] = before;
    margins[margins.size() - 1] = after;
    return pad(x, margins);
  };
  if (range.step > 1 && range.count > 1) {
    Ints sizes = to_ints(t.shape());
    sizes[static_cast<std::size_t>(axis)] = range.count * range.step;
    t = reshape(padded(unsqueeze(t, axis + 1), axis + 1, 0, range.step - 1), sizes);
    t = slice(t, axis, 0, (range.count - 1) * range.step + 1);
  }
  return padded(t, axis, range.start, size - range.start - t.size(axis));
}

Tensor require_value(const Tensor& x, const Tensor& value) {
  if (is_floating(value.dtype()) && !is_floating(x.dtype()))
    throw DTypeError(cat(where("index_put"), ": a value of ", value.dtype(), " for a tensor of ",
                         x.dtype(), ": cast one of them"));
  return cast(value, x.dtype());
}

// Numbers, slices and new axes only.
Tensor put_ranges(const Tensor& x, const std::vector<Index>& indices, const Tensor& value) {
  std::vector<Range> ranges;
  Ints shape, counts;  // of the part as indexed, and with every axis of x
  int axis = 0;
  for (const Index& index : for_each_axis("index_put", x, indices)) {
    if (index.kind() == Index::Kind::NewAxis) {
      shape.push_back(1);
      continue;
    }
    Range range;
    if (index.kind() == Index::Kind::Number) {
      (void)select(x, axis, index.number());  // refuses what is outside
      range = {index.number() < 0 ? index.number() + x.size(axis) : index.number(), 1, 1, false};
    } else {
      range = range_of(index.slice(), x.size(axis));
      shape.push_back(range.count);
    }
    counts.push_back(range.count);
    ranges.push_back(range);
    ++axis;
  }
  Tensor placed = reshape(broadcast_to(value, to_shape(shape)), counts),
         places = full(to_shape(counts), true, DType::Bool);
  for (int a = 0; a < x.rank(); ++a) {
    const Range& range = ranges[static_cast<std::size_t>(a)];
    placed = spread(placed, a, range, x.size(a));
    places = spread(places, a, range, x.size(a));
  }
  return tenon::where(places, placed, x);
}

// Of equal places the last one keeps its value; the others' are replaced by zeros.
Tensor put_places(const Tensor& x, const Tensor& places, const Tensor& values) {
  const std::int64_t count = places.numel();
  if (count == 0) return x;
  const Tensor order = argsort(places, 0, false, true), at = index_select(places, 0, order);
  const Tensor last =
      concat({slice(at, 0, 1, count) != slice(at, 0, 0, count - 1), full({1}, true, DType::Bool)});
  const bool bools = x.dtype() == DType::Bool;
  const Tensor flat = reshape(bools ? cast(x, DType::UInt8) : x, {-1}),
               given = cast(index_select(values, 0, order), flat.dtype());
  const Tensor placed =
      scatter_add(zeros_like(flat), 0, at, tenon::where(last, given, zeros_like(given)));
  const Tensor hit =
      scatter_add(zeros({x.numel()}, DType::Int32), 0, at, cast(last, DType::Int32)) > 0;
  const Tensor out = reshape(tenon::where(hit, placed, flat), to_ints(x.shape()));
  return bools ? cast(out, DType::Bool) : out;
}

// A mask and no other index, with a value that does not depend on how many ones it has.
bool chooses(const std::vector<Index>& indices, const Tensor& x, const Tensor& value) {
  return indices.size() == 1 && is_mask(indices[0]) &&
         (value.numel() == 1 || value.rank() <= x.rank() - indices[0].tensor().rank());
}

}  // namespace

Tensor Tensor::operator[](const Index& index) const { return part("index", *this, {index}); }

Tensor Tensor::index(const std::vector<Index>& indices) const {
  return part("index", *this, indices);
}

Tensor Tensor::index_put(const std::vector<Index>& indices, const Tensor& value,
                         bool accumulate) const {
  const Tensor& x = *this;
  const Tensor v = require_value(x, value);
  const bool tensors = std::any_of(indices.begin(), indices.end(), [](const Index& index) {
    return index.kind() == Index::Kind::Tensor;
  });
  if (accumulate && !tensors) return index_put(indices, index(indices) + v);
  if (!tensors) return put_ranges(x, indices, v);
  if (!accumulate && chooses(indices, x, v)) {
    Tensor mask = indices[0].tensor();
    require_mask_fits("index_put", x, 0, mask);
    while (mask.rank() < x.rank()) mask = tenon::unsqueeze(mask, -1);
    const Tensor one = v.numel() == 1 ? tenon::reshape(v, {}) : v;
    return tenon::where(mask, broadcast_to(one, x.shape()), x);
  }
  const Tensor places =
      part("index_put", tenon::reshape(arange(0, x.numel()), to_ints(x.shape())), indices);
  const Tensor at = tenon::reshape(places, {-1}),
               values = tenon::reshape(broadcast_to(v, places.shape()), {-1});
  if (!accumulate) return put_places(x, at, values);
  return tenon::reshape(scatter_add(tenon::reshape(x, {-1}), 0, at, values), to_ints(x.shape()));
}

Tensor Tensor::index_put(const std::vector<Index>& indices, Scalar value, bool accumulate) const {
  return index_put(indices, full({}, value, dtype()), accumulate);
}

}  // namespace tenon
