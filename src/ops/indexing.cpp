// Indexing: x.index({…}) and x.index_put({…}, value), built from views and movement ops.
//
// Numbers and slices are views. Integer tensors become one vector of positions along one axis,
// which index_select reads. A put concatenates its value with the parts on either side of a
// contiguous range; for stepped ranges and index tensors, where() selects element by element.
#include <algorithm>
#include <limits>
#include <numeric>

#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min(),
                       kLast = std::numeric_limits<std::int64_t>::max();

void require_indices(const char* op, const Tensor& x, const std::vector<Index>& indices) {
  require_defined(op, x);
  for (std::size_t k = 0; k < indices.size(); ++k)
    if (indices[k].kind() == Index::Kind::Tensor && !indices[k].tensor().defined())
      throw make_error<ValueError>(where(op), ": the tensor that is index ", k,
                                   " has no value: it was never assigned");
}

bool is_mask(const Index& index) {
  return index.kind() == Index::Kind::Tensor && index.tensor().dtype() == DType::Bool;
}

// Number of axes of the indexed tensor that an index covers.
int axes_of(const Index& index) {
  if (index.kind() == Index::Kind::NewAxis || index.kind() == Index::Kind::Ellipsis) return 0;
  return is_mask(index) ? index.tensor().rank() : 1;
}

// One index for each axis: the ellipsis is expanded.
std::vector<Index> for_each_axis(const char* op, const Tensor& x,
                                 const std::vector<Index>& indices) {
  int axes = 0, ellipses = 0;
  for (const Index& index : indices) {
    axes += axes_of(index);
    ellipses += index.kind() == Index::Kind::Ellipsis;
  }
  if (ellipses > 1) throw make_error<ValueError>(where(op), ": more than one ellipsis");
  if (axes > x.rank())
    throw make_error<ShapeError>(where(op), ": indices for ", axes, " axes of a tensor ",
                                 x.shape());
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
    throw make_error<ShapeError>(where(op), ": a mask ", mask.shape(), " does not fit ", x.shape(),
                                 " from axis ", axis, " on");
}

// The positions of a mask's ones in row-major order. Reads the mask's values.
Tensor flat_places_of(const Tensor& mask, Device device) {
  const bool* ones = mask.data_as<bool>();
  Ints places(static_cast<std::size_t>(std::count(ones, ones + mask.numel(), true)));
  std::size_t found = 0;
  for (std::int64_t k = 0; found < places.size(); ++k)
    if (ones[k]) places[found++] = k;
  return Tensor::from_data(places.data(), {std::ssize(places)}, DType::Int64, device);
}

// Their coordinates, one vector for each axis. Reads the mask's values.
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

// An integer tensor that indexes an axis.
struct Pick {
  int axis;
  Tensor numbers;
};

// Negative numbers count from the end; a number out of range stays as it is, for the error message.
Tensor from_front(const char* op, const Tensor& numbers, std::int64_t size) {
  if (numbers.dtype() != DType::Int64 && numbers.dtype() != DType::Int32)
    throw make_error<DTypeError>(where(op), ": an index of ", numbers.dtype(),
                                 ": cast it to int64, or compare to get a mask of bool");
  const Tensor n = cast(numbers, DType::Int64);
  return tenon::where((n < 0) & (n >= -size), n + size, n);
}

// The numbers unchanged, refused at run time if one is out of range.
Tensor require_inside(const Tensor& numbers, int axis, std::int64_t size) {
  Ints places(static_cast<std::size_t>(axis) + 1, 1), ramp = places;
  places.back() = numbers.numel();
  ramp.back() = size;
  const Tensor known = gather(reshape(arange(0, size), ramp), axis, reshape(numbers, places));
  return reshape(known, to_ints(numbers.shape()));
}

// Index tensors on adjacent axes, combined into positions along the merged axis.
struct Places {
  Tensor place;       // a vector
  Shape shape;        // of the numbers
  Ints merged, part;  // sizes of x with its axes merged, and of the result
};

Places merge(const char* op, const Tensor& x, const std::vector<Pick>& picks) {
  Places out{{}, picks[0].numbers.shape(), {}, {}};
  for (const Pick& pick : picks)
    out.shape = broadcast_shapes(out.shape, pick.numbers.shape(), where(op));
  const auto count = static_cast<int>(picks.size());
  const int axis = picks[0].axis;
  std::int64_t total = 1;
  Tensor place, valid;
  for (int k = 0; k < count; ++k) {
    const std::int64_t size = x.size(axis + k);
    const Tensor n = from_front(op, picks[static_cast<std::size_t>(k)].numbers, size);
    const Tensor known = count > 1 ? require_inside(n, axis + k, size) : n;
    place = place.defined() ? place * size + known : known;
    const Tensor inside = (n >= 0) & (n < size);
    valid = valid.defined() ? valid & inside : inside;
    total *= size;
  }
  // A GPU continues after an index out of range, and the combined position may be in range: it is
  // moved out of range too.
  if (count > 1) place = tenon::where(valid, place, total);
  out.place = reshape(broadcast_to(place, out.shape), {-1});
  for (int a = 0; a < x.rank(); ++a) {
    if (a == axis) {
      out.merged.push_back(total);
      out.part.insert(out.part.end(), out.shape.begin(), out.shape.end());
    }
    if (a >= axis && a < axis + count) continue;
    out.merged.push_back(x.size(a));
    out.part.push_back(x.size(a));
  }
  return out;
}

Tensor picked(const char* op, const Tensor& x, const std::vector<Pick>& picks) {
  const Places p = merge(op, x, picks);
  return reshape(index_select(reshape(x, p.merged), picks[0].axis, p.place), p.part);
}

bool are_together(const std::vector<Pick>& picks) {
  for (std::size_t k = 1; k < picks.size(); ++k)
    if (picks[k].axis != picks[k - 1].axis + 1) return false;
  return true;
}

Tensor pick(const char* op, const Tensor& x, const std::vector<Pick>& picks) {
  if (are_together(picks)) return picked(op, x, picks);
  Ints order;
  for (const Pick& each : picks) order.push_back(each.axis);
  for (int a = 0; a < x.rank(); ++a)
    if (std::find(order.begin(), order.end(), a) == order.end()) order.push_back(a);
  std::vector<Pick> first = picks;
  for (std::size_t k = 0; k < first.size(); ++k) first[k].axis = static_cast<int>(k);
  return picked(op, permute(x, order), first);
}

// The elements at a mask's ones, with the mask's axes merged: these positions need no check.
Tensor masked(const Tensor& x, int axis, const Tensor& mask) {
  Ints merged = to_ints(x.shape());
  merged.erase(merged.begin() + axis, merged.begin() + axis + mask.rank());
  merged.insert(merged.begin() + axis, mask.numel());
  return index_select(reshape(x, merged), axis, flat_places_of(mask, x.device()));
}

Tensor part(const char* op, const Tensor& x, const std::vector<Index>& indices) {
  const Called called(op);
  require_indices(op, x, indices);
  const bool one_tensor = std::count_if(indices.begin(), indices.end(), [](const Index& index) {
                            return index.kind() == Index::Kind::Tensor;
                          }) == 1;
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
        if (one_tensor) {
          y = masked(y, axis++, index.tensor());
          break;
        }
        if (index.tensor().rank() == 0) {  // indexes an axis of its own: [0] or nothing
          y = unsqueeze(y, axis);
          picks.push_back({axis++, flat_places_of(index.tensor(), x.device())});
          break;
        }
        for (const Tensor& places : places_of(index.tensor(), x.device()))
          picks.push_back({axis++, places});
        break;
    }
  }
  return picks.empty() ? y : pick(op, y, picks);
}

// ---- Assignment ------------------------------------------------------------------------------

// `count` elements start, start + step, … of an axis; the step is positive.
struct Range {
  std::int64_t start = 0, step = 1, count = 0;
  bool reversed = false;  // given from the last to the first
};

Range range_of(const Slice& s, std::int64_t size) {
  const Tensor axis = arange(0, size);  // only its shape and attributes are used
  const Tensor part = sliced(axis, 0, s);
  if (part.node() == axis.node()) return {0, 1, size, false};
  const auto& attrs = part.node()->attrs.as<SliceAttrs>();
  Range r{attrs.start[0], attrs.step[0], part.size(0), false};
  if (r.step < 0) r = {r.start + (r.count - 1) * r.step, -r.step, r.count, true};
  return r;
}

bool is_whole(const Range& r, std::int64_t size) {
  return r.start == 0 && r.step == 1 && r.count == size;
}

// The range's elements of an axis.
Tensor part_of(const Tensor& x, int axis, const Range& r) {
  return slice(x, axis, r.start, r.start + (r.count - 1) * r.step + 1, r.step);
}

// A mask of the range's positions on x's axis that broadcasts to x.
Tensor places_on(const Tensor& x, int axis, const Range& r) {
  const Tensor from_start = arange(0, x.size(axis)) - r.start;
  Tensor inside = (from_start >= 0) & (from_start <= (r.count - 1) * r.step);
  if (r.step > 1) inside &= from_start % r.step == 0;
  Ints sizes(static_cast<std::size_t>(x.rank() - axis), 1);
  sizes[0] = x.size(axis);
  return reshape(inside, sizes);
}

// x with `value`, of the ranges' shape, written at the ranges of the axes from `axis` on. A
// contiguous range is concatenated with the parts on either side; a stepped range selects every
// element.
Tensor put_along(const Tensor& x, int axis, const std::vector<Range>& ranges, const Tensor& value) {
  while (axis < x.rank() && is_whole(ranges[static_cast<std::size_t>(axis)], x.size(axis))) ++axis;
  if (axis == x.rank()) return value;
  const Range& r = ranges[static_cast<std::size_t>(axis)];
  const Tensor placed = put_along(part_of(x, axis, r), axis + 1, ranges, value);
  const std::int64_t size = x.size(axis), end = r.start + r.count;
  if (r.step > 1 && r.count > 1) {
    const Tensor nearest =
        floor_divide(tenon::clamp(arange(0, size) - r.start, 0, (r.count - 1) * r.step), r.step);
    return tenon::where(places_on(x, axis, r), index_select(placed, axis, nearest), x);
  }
  std::vector<Tensor> parts;
  if (r.start > 0) parts.push_back(slice(x, axis, 0, r.start));
  parts.push_back(placed);
  if (end < size) parts.push_back(slice(x, axis, end, size));
  return concat(parts, axis);
}

Tensor require_value(const Tensor& x, const Tensor& value) {
  if (is_floating(value.dtype()) && !is_floating(x.dtype()))
    throw make_error<DTypeError>(where("index_put"), ": a value of ", value.dtype(),
                                 " for a tensor of ", x.dtype(), ": cast one of them");
  return cast(value, x.dtype());
}

// Numbers, slices and new axes only.
Tensor put_ranges(const Tensor& x, const std::vector<Index>& indices, const Tensor& value) {
  std::vector<Range> ranges;
  Ints shape, counts;  // of the indexed part, and with every axis of x
  int axis = 0;
  for (const Index& index : for_each_axis("index_put", x, indices)) {
    if (index.kind() == Index::Kind::NewAxis) {
      shape.push_back(1);
      continue;
    }
    Range range;
    if (index.kind() == Index::Kind::Number) {
      (void)select(x, axis, index.number());  // refuses an index out of range
      range = {index.number() < 0 ? index.number() + x.size(axis) : index.number(), 1, 1, false};
    } else {
      range = range_of(index.slice(), x.size(axis));
      shape.push_back(range.count);
    }
    counts.push_back(range.count);
    ranges.push_back(range);
    ++axis;
  }
  if (std::find(counts.begin(), counts.end(), 0) != counts.end()) return x;
  const Tensor given = broadcast_to(value, to_shape(shape));
  if (value.numel() == 1) {
    Tensor places = full({}, true, DType::Bool);
    for (int a = 0; a < x.rank(); ++a)
      if (!is_whole(ranges[static_cast<std::size_t>(a)], x.size(a)))
        places = places & places_on(x, a, ranges[static_cast<std::size_t>(a)]);
    return tenon::where(broadcast_to(places, x.shape()), reshape(value, {}), x);
  }
  Tensor placed = reshape(given, counts);
  Ints reversed;
  for (int a = 0; a < x.rank(); ++a)
    if (ranges[static_cast<std::size_t>(a)].reversed) reversed.push_back(a);
  if (!reversed.empty()) placed = flip(placed, reversed);
  return put_along(x, 0, ranges, placed);
}

// Writes values at flat positions of x; of equal positions the last one wins.
Tensor put_places(const Tensor& x, const Tensor& places, const Tensor& values) {
  return reshape(scatter(reshape(x, {-1}), 0, places, values), to_ints(x.shape()));
}

// Integer tensors on adjacent axes and whole axes otherwise: they select slabs of x, or elements.
std::vector<Pick> slabs_of(const Tensor& x, const std::vector<Index>& indices) {
  std::vector<Pick> picks;
  int axis = 0;
  for (const Index& index : for_each_axis("index_put", x, indices)) {
    const bool tensor = index.kind() == Index::Kind::Tensor && !is_mask(index);
    if (!tensor && (index.kind() != Index::Kind::Slice ||
                    !is_whole(range_of(index.slice(), x.size(axis)), x.size(axis))))
      return {};
    if (tensor) picks.push_back({axis, index.tensor()});
    ++axis;
  }
  return are_together(picks) ? picks : std::vector<Pick>{};
}

// Writes values at positions of one axis, the merged axis of the index tensors.
Tensor put_slabs(const Tensor& x, const std::vector<Pick>& picks, const Tensor& value) {
  const int axis = picks[0].axis;
  const Places p = merge("index_put", x, picks);
  Ints sizes = p.merged, column(p.merged.size(), 1);
  sizes[static_cast<std::size_t>(axis)] = column[static_cast<std::size_t>(axis)] = p.place.numel();
  const Tensor given = reshape(broadcast_to(value, to_shape(p.part)), sizes),
               at = broadcast_to(reshape(p.place, column), given.shape());
  return reshape(scatter(reshape(x, p.merged), axis, at, given), to_ints(x.shape()));
}

// A single mask, with a value that does not depend on the number of ones.
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
  const Called called("index_put");
  const Tensor& x = *this;
  require_indices("index_put", x, indices);
  if (!value.defined())
    throw make_error<ValueError>(where("index_put"), ": the value has none: it was never assigned");
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
  if (!accumulate)
    if (const std::vector<Pick> slabs = slabs_of(x, indices); !slabs.empty())
      return put_slabs(x, slabs, v);
  const Tensor places =
      part("index_put", tenon::reshape(arange(0, x.numel()), to_ints(x.shape())), indices);
  const Tensor at = tenon::reshape(places, {-1});
  const Tensor values = tenon::reshape(broadcast_to(v, places.shape()), {-1});
  if (!accumulate) return put_places(x, at, values);
  return tenon::reshape(tenon::scatter_add(tenon::reshape(x, {-1}), 0, at, values),
                        to_ints(x.shape()));
}

Tensor Tensor::index_put(const std::vector<Index>& indices, Scalar value, bool accumulate) const {
  const Called called("index_put");
  return index_put(indices, full({}, value, dtype()), accumulate);
}

}  // namespace tenon
