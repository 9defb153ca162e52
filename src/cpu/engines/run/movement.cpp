// Data movement by runs: elements that are contiguous in both arrays are copied in one call.
#include "cpu/engines/run/movement.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <tenon/error.h>

#include "base/axes.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "cpu/engines/run/tile_program.h"
#include "device/cpu_model.h"
#include "graph/node.h"
#include "plan/graph/outside.h"

namespace tenon::cpu {

namespace {

constexpr std::int64_t kChunkBytes = kCpu.second_cache / 4;

std::size_t bytes_of(std::int64_t n) { return static_cast<std::size_t>(n); }
std::int64_t item_of(DType dtype) { return static_cast<std::int64_t>(item_size(dtype)); }

/// Calls f(begin, end) on blocks of [0, count) of about kChunkBytes bytes; an element has `unit`
/// bytes.
template <class F>
void in_blocks(std::int64_t count, std::int64_t unit, F&& f) {
  const std::int64_t block =
      std::max<std::int64_t>(1, kChunkBytes / std::max<std::int64_t>(unit, 1));
  const std::int64_t blocks = (count + block - 1) / block;
  if (blocks == 1) return f(std::int64_t{0}, count);
  parallel_for(blocks,
               [&](std::int64_t b, int) { f(b * block, std::min(count, (b + 1) * block)); });
}

/// Checked elements of an index array. A rank-1 index has one element per row of `inner` elements.
class Indices {
 public:
  Indices(const MovedArray& index, const char* op, int axis, const Shape& x)
      : data_(index.data),
        wide_(index.dtype == DType::Int64),
        vector_(index.shape.rank() == 1),
        op_(op),
        axis_(axis),
        size_(x[axis]),
        inner_(inner_count(x, axis)),
        count_(index.shape[vector_ ? 0 : axis]) {}

  /// Number of indices along the axis.
  std::int64_t count() const { return count_; }
  /// The position of the index of element i.
  std::int64_t place(std::int64_t i) const { return vector_ ? i / inner_ % count_ : i; }

  std::int64_t at(std::int64_t i) const {
    const std::int64_t value = wide_ ? as_int64()[i] : as_int32()[i];
    if (value < 0 || value >= size_) refuse(value, i);
    return value;
  }
  /// Calls f(i, index) for n elements whose indices are contiguous from `first` on.
  template <class F>
  void each(std::int64_t first, std::int64_t n, F&& f) const {
    if (wide_) {
      each(as_int64(), first, n, f);
    } else {
      each(as_int32(), first, n, f);
    }
  }
  /// Refuses an index outside the axis before anything is written.
  void check_all(std::int64_t n) const {
    each(0, n, [](std::int64_t, std::int64_t) {});
  }
  /// True if the n elements of a row from i on share one index.
  bool same(std::int64_t i, std::int64_t n) const {
    return vector_ || (wide_ ? same(as_int64() + i, n) : same(as_int32() + i, n));
  }

 private:
  template <class T, class F>
  void each(const T* index, std::int64_t first, std::int64_t n, F&& f) const {
    const auto size = static_cast<std::uint64_t>(size_);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t value = index[first + i];
      if (static_cast<std::uint64_t>(value) >= size) refuse(value, first + i);
      f(i, value);
    }
  }
  template <class T>
  static bool same(const T* p, std::int64_t n) {
    constexpr std::int64_t kBlock = 64;
    const T first = p[0];
    for (std::int64_t start = 0; start < n; start += kBlock) {
      T difference = 0;
      const std::int64_t end = std::min(n, start + kBlock);
      for (std::int64_t j = start; j < end; ++j) difference |= p[j] ^ first;
      if (difference != 0) return false;
    }
    return true;
  }
  const std::int64_t* as_int64() const { return reinterpret_cast<const std::int64_t*>(data_); }
  const std::int32_t* as_int32() const { return reinterpret_cast<const std::int32_t*>(data_); }
  [[noreturn]] void refuse(std::int64_t value, std::int64_t i) const {
    throw index_outside(where(op_), value, axis_, size_, i);
  }

  const std::byte* data_;
  bool wide_, vector_;
  const char* op_;
  int axis_;
  std::int64_t size_, inner_, count_;
};

template <class T>
void fill_items(std::byte* out, std::int64_t count, const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  std::fill_n(reinterpret_cast<T*>(out), count, value);
}

/// Calls f with an integer of the width of an element of `item` bytes.
template <class F>
void with_item(std::int64_t item, F&& f) {
  switch (item) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

void fill(std::byte* out, std::int64_t count, const std::byte* element, std::int64_t item) {
  with_item(item, [&](auto unit) { fill_items<decltype(unit)>(out, count, element); });
}

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

/// Initialises a block of `out`: the base, or its one number everywhere.
void start_from(const MovedArray& base, std::byte* out, std::int64_t begin, std::int64_t count) {
  constexpr std::byte kZeros[8] = {};
  const std::int64_t item = item_of(base.dtype);
  if (base.shape.rank() > 0) {
    std::memcpy(out + begin * item, base.data + begin * item, bytes_of(count * item));
  } else if (std::memcmp(base.data, kZeros, bytes_of(item)) == 0) {
    std::memset(out + begin * item, 0, bytes_of(count * item));
  } else {
    fill(out + begin * item, count, base.data, item);
  }
}

/// Columns are independent of one another, so chunks of columns (and of the outer axes) run in
/// parallel, each in order. A chunk that owns its results initialises them itself, while they are
/// in cache. `combine(element, update)` is the new element. If `out` is the base itself, only the
/// indexed elements are written.
template <class T, class Combine>
void apply_updates(const char* op, const MovedArray& base, const MovedArray& index,
                   const MovedArray& updates, int axis, std::byte* out, const Shape& shape,
                   Combine&& combine) {
  const std::int64_t outer = outer_count(shape, axis), inner = inner_count(shape, axis);
  const Indices indices(index, op, axis, shape);
  const std::int64_t size = shape[axis], count = indices.count();
  const T* u = reinterpret_cast<const T*>(updates.data);
  T* y = reinterpret_cast<T*>(out);
  const std::int64_t columns = std::max<std::int64_t>(64, inner / 8),
                     blocks = (inner + columns - 1) / columns;
  const bool apart = blocks > 1 || outer == 1, in_place = base.data == out;
  if (in_place)
    indices.check_all(index.shape.numel());
  else if (apart)
    in_blocks(shape.numel(), item_of(base.dtype),
              [&](std::int64_t b, std::int64_t e) { start_from(base, out, b, e - b); });
  const auto apply = [&](std::int64_t o, std::int64_t from, std::int64_t begin, std::int64_t n,
                         std::int64_t step) {
    T* target = y + o * size * inner + begin;
    indices.each(indices.place(from), n, [&](std::int64_t i, std::int64_t at) {
      T& element = target[at * inner + i * step];
      element = combine(element, u[from + i]);
    });
  };
  const auto chunk = [&](std::int64_t c) {
    const std::int64_t o = c / blocks, begin = c % blocks * columns,
                       n = std::min(columns, inner - begin);
    if (!apart && !in_place) start_from(base, out, o * size * inner, size * inner);
    if (inner == 1 && count > 0) return apply(o, o * count, 0, count, 0);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t from = (o * count + j) * inner + begin;
      if (!indices.same(from, n)) {
        apply(o, from, begin, n, 1);
        continue;
      }
      T* target = y + (o * size + indices.at(indices.place(from))) * inner + begin;
      for (std::int64_t i = 0; i < n; ++i) target[i] = combine(target[i], u[from + i]);
    }
  };
  const std::int64_t bytes =
      (in_place ? count : size + count) * std::min(columns, inner) * item_of(base.dtype);
  in_blocks(outer * blocks, apart ? 4 * bytes : bytes, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) chunk(c);
  });
}

constexpr std::int64_t kFewElements = 16;  // shorter runs are copied by a loop, not by memcpy

// The axes of a padding; an axis without padding is merged into the one before.
struct PaddedAxes {
  int rank = 0;
  std::int64_t from[kMaxRank] = {}, to[kMaxRank] = {}, before[kMaxRank] = {};

  PaddedAxes(const Shape& in, const PadAttrs& margin, const Shape& out) {
    for (int d = 0; d < out.rank(); ++d) {
      const bool padded = margin.before[d] != 0 || in[d] != out[d];
      if (padded || rank == 0) {
        from[rank] = in[d], to[rank] = out[d], before[rank] = margin.before[d];
        ++rank;
        continue;
      }
      from[rank - 1] *= in[d], to[rank - 1] *= out[d], before[rank - 1] *= out[d];
    }
  }
};

}  // namespace

void concat(std::span<const MovedArray> inputs, int axis, std::byte* out, const Shape& out_shape) {
  const std::int64_t outer = outer_count(out_shape, axis);
  const std::int64_t unit =
      inner_count(out_shape, axis) * (inputs.empty() ? 0 : item_of(inputs[0].dtype));
  const std::int64_t pitch = out_shape[axis] * unit;
  std::int64_t before = 0;
  for (const MovedArray& x : inputs) {
    const std::int64_t run = x.shape[axis] * unit;
    std::byte* target = out + before;
    before += run;
    if (run == 0 || outer == 0) continue;
    if (outer == 1) {
      in_blocks(run, 1, [&](std::int64_t b, std::int64_t e) {
        std::memcpy(target + b, x.data + b, bytes_of(e - b));
      });
      continue;
    }
    in_blocks(outer, run, [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t o = b; o < e; ++o)
        std::memcpy(target + o * pitch, x.data + o * x.pitch.value_or(run), bytes_of(run));
    });
  }
}

void pad(const MovedArray& x, const PadAttrs& margin, std::byte* out, const Shape& out_shape) {
  if (out_shape.numel() == 0) return;
  const std::int64_t item = item_of(x.dtype);
  std::byte element[8];
  const std::int64_t bits = tile_number(x.dtype, margin.value);
  tile_table().store[static_cast<int>(x.dtype)](1, 1, element, &bits, 0, 1);
  const PaddedAxes axes(x.shape, margin, out_shape);
  const int last = axes.rank - 1;
  if (last < 0) {
    std::memcpy(out, x.data, bytes_of(item));
    return;
  }
  const std::int64_t length = axes.to[last], source_length = axes.from[last];
  // Columns [begin, end) of a row come from the input. Amounts may be negative, which crops.
  const std::int64_t shift = axes.before[last];
  const std::int64_t begin = std::clamp<std::int64_t>(shift, 0, length);
  const std::int64_t end = std::clamp<std::int64_t>(shift + source_length, begin, length);
  if (last == 1 && axes.before[0] == 0 && axes.to[0] == axes.from[0] && length <= kFewElements) {
    in_blocks(axes.to[0], length * item, [&](std::int64_t row0, std::int64_t row1) {
      with_item(item, [&](auto unit) {
        using T = decltype(unit);
        T value;
        std::memcpy(&value, element, sizeof value);
        const T* from = reinterpret_cast<const T*>(x.data) + row0 * source_length;
        T* to = reinterpret_cast<T*>(out) + row0 * length;
        for (std::int64_t row = row0; row < row1; ++row, from += source_length, to += length)
          for (std::int64_t j = 0; j < length; ++j)
            to[j] = j >= begin && j < end ? from[j - shift] : value;
      });
    });
    return;
  }
  in_blocks(out_shape.numel() / length, length * item, [&](std::int64_t row0, std::int64_t row1) {
    for (std::int64_t row = row0; row < row1; ++row) {
      std::int64_t rest = row, source = 0, stride = 1;
      bool inside = true;
      for (int d = last - 1; d >= 0; --d) {
        const std::int64_t c = rest % axes.to[d] - axes.before[d];
        rest /= axes.to[d];
        inside = inside && c >= 0 && c < axes.from[d];
        source += c * stride;
        stride *= axes.from[d];
      }
      std::byte* target = out + row * length * item;
      if (!inside || begin == end) {
        fill(target, length, element, item);
        continue;
      }
      fill(target, begin, element, item);
      std::memcpy(target + begin * item, x.data + (source * source_length + begin - shift) * item,
                  bytes_of((end - begin) * item));
      fill(target + end * item, length - end, element, item);
    }
  });
}

void gather(const MovedArray& x, const MovedArray& index, int axis, std::byte* out) {
  const Indices indices(index, "gather", axis, x.shape);
  const std::int64_t outer = outer_count(x.shape, axis), inner = inner_count(x.shape, axis);
  const std::int64_t size = x.shape[axis], count = indices.count(), item = item_of(x.dtype);
  if (outer * count * inner == 0) return;
  const auto pick = [&](std::int64_t row, std::int64_t n, auto unit) {
    using T = decltype(unit);
    const T* from = reinterpret_cast<const T*>(x.data) + row / count * size * inner;
    T* to = reinterpret_cast<T*>(out) + row * inner;
    const std::int64_t step = inner == 1 ? 0 : 1;  // neighbours in the result are so far apart in x
    indices.each(indices.place(row * inner), n,
                 [&](std::int64_t i, std::int64_t at) { to[i] = from[at * inner + i * step]; });
  };
  in_blocks(outer * count, inner * (item + 8), [&](std::int64_t row0, std::int64_t row1) {
    if (inner == 1) {  // along the last axis: whole rows of indices
      for (std::int64_t row = row0, end = 0; row < row1; row = end) {
        end = std::min(row1, (row / count + 1) * count);
        with_item(item, [&](auto unit) { pick(row, end - row, unit); });
      }
      return;
    }
    for (std::int64_t row = row0; row < row1; ++row) {
      const std::int64_t from = row * inner, plane = row / count * size;
      if (indices.same(from, inner)) {
        std::memcpy(out + from * item,
                    x.data + (plane + indices.at(indices.place(from))) * inner * item,
                    bytes_of(inner * item));
      } else {
        with_item(item, [&](auto unit) { pick(row, inner, unit); });
      }
    }
  });
}

void scatter_add(const MovedArray& base, const MovedArray& index, const MovedArray& updates,
                 int axis, std::byte* out, const Shape& out_shape) {
  const auto add = [&](auto zero) {
    using T = decltype(zero);
    apply_updates<T>("scatter_add", base, index, updates, axis, out, out_shape,
                     [](T a, T b) { return sum(a, b); });
  };
  switch (base.dtype) {
    case DType::UInt8:
    case DType::Int8:  // a sum that wraps around has the same bits with and without a sign
      return add(std::uint8_t{});
    case DType::Int32:
      return add(std::int32_t{});
    case DType::Int64:
      return add(std::int64_t{});
    case DType::Float32:
      return add(0.0f);
    case DType::Float64:
      return add(0.0);
    default:
      throw InternalError(cat("scatter_add has no loop for ", base.dtype));
  }
}

void scatter_extreme(const MovedArray& base, const MovedArray& index, const MovedArray& updates,
                     int axis, bool largest, std::byte* out, const Shape& out_shape) {
  // Without branches: which of two elements is larger cannot be predicted. One loop for both.
  const auto take = [&](auto zero) {
    using T = decltype(zero);
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const int sign = largest ? 1 : -1;
    apply_updates<T>(largest ? "scatter_max" : "scatter_min", base, index, updates, axis, out,
                     out_shape, [sign](T a, T b) {
                       const int order = static_cast<int>(b > a) - static_cast<int>(b < a);
                       const bool takes = (order == sign) | (b != b);
                       const Bits mask = Bits{0} - static_cast<Bits>(takes);
                       return std::bit_cast<T>((std::bit_cast<Bits>(b) & mask) |
                                               (std::bit_cast<Bits>(a) & ~mask));
                     });
  };
  switch (base.dtype) {
    case DType::Int64:
      return take(std::int64_t{});
    case DType::Float32:
      return take(0.0f);
    case DType::Float64:
      return take(0.0);
    default:
      throw InternalError(cat("no scattered extremes of ", base.dtype));
  }
}

void scatter(const MovedArray& base, const MovedArray& index, const MovedArray& updates, int axis,
             std::byte* out, const Shape& out_shape) {
  with_item(item_of(base.dtype), [&](auto unit) {
    using T = decltype(unit);
    apply_updates<T>("scatter", base, index, updates, axis, out, out_shape,
                     [](T, T update) { return update; });
  });
}

}  // namespace tenon::cpu
