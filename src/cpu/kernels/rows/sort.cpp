// Sorts rows as unsigned keys with their indexes. Pairs of key and index are all different, so any
// sorting algorithm is stable.
//
// A range in the middle of the order is found by selection. If few of many first elements are
// wanted, a heap keeps them while the row is read. If more are wanted, a list keeps them and is
// shortened whenever its length has doubled. Whole long rows use a radix sort, whose time is
// proportional to their length (digits in which all keys agree are skipped). Short rows use the
// standard library's sort.
#include "cpu/kernels/rows/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include <tenon/error.h>

#include "base/index.h"
#include "base/per_thread.h"
#include "base/str.h"
#include "base/thread_pool.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kRadixLength = 256;  // below, histograms cost more than comparisons
constexpr std::int64_t kFew = 64;           // kept in a heap
constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;

template <class Key>
struct Placed {
  Key key;
  std::uint32_t place;
  bool operator<(const Placed& other) const {
    return key != other.key ? key < other.key : place < other.place;
  }
};

/// Keys have the order of the elements. Zeros of both signs are equal, and so are all NaNs.
template <class Key, class Real>
Key key_of_real(Real x) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  if (x != x) return ~Key{0};
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const Bits bits = x == 0 ? Bits{0} : std::bit_cast<Bits>(x);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

template <class Key, class T>
Key key_of(T x) {
  if constexpr (std::is_integral_v<T>) {
    constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
    using Signed = std::make_signed_t<Key>;
    return static_cast<Key>(static_cast<Signed>(x)) ^ kSign;
  } else if constexpr (sizeof(T) <= 4) {
    return key_of_real<Key>(static_cast<float>(x));
  } else {
    return key_of_real<Key>(x);
  }
}

/// The keys of a row, written a block at a time. Sorting is compiled for two types of keys instead
/// of for every element type.
template <class Key>
struct Keys {
  using Write = Key (*)(const std::byte* row, std::int64_t first, std::int64_t count, Key inverted,
                        Key* out);
  Write write_block = nullptr;
  const std::byte* row = nullptr;
  Key inverted = 0;  // all bits are set if the largest comes first

  /// Writes keys and returns the smallest of them.
  Key write(std::int64_t first, std::int64_t count, Key* out) const {
    return write_block(row, first, count, inverted, out);
  }
};

template <class Key, class T>
Key write_keys(const std::byte* row, std::int64_t first, std::int64_t count, Key inverted,
               Key* out) {
  const T* x = reinterpret_cast<const T*>(row) + first;
  Key least = ~Key{0};
  for (std::int64_t i = 0; i < count; ++i)
    least = std::min(least, out[i] = static_cast<Key>(key_of<Key>(x[i]) ^ inverted));
  return least;
}

constexpr std::int64_t kBlock = 32;  // keys that are written at once

/// Radix sort: one digit after the other, lowest first; `from` is sorted by index. The result is in
/// the returned vector.
template <class Key>
std::vector<Placed<Key>>& radix_sort(std::vector<Placed<Key>>& from, std::vector<Placed<Key>>& to) {
  constexpr int kPasses = 8 * static_cast<int>(sizeof(Key)) / kDigitBits;
  Key varies = 0;  // bits in which keys differ
  for (const Placed<Key>& item : from) varies |= item.key ^ from[0].key;
  to.resize(from.size());
  std::vector<Placed<Key>>*source = &from, *target = &to;
  for (int pass = 0; pass < kPasses; ++pass) {
    if ((varies >> (pass * kDigitBits) & (kDigits - 1)) == 0) continue;
    std::array<std::uint32_t, kDigits> count{};
    for (const Placed<Key>& item : *source)
      ++count[item.key >> (pass * kDigitBits) & (kDigits - 1)];
    std::uint32_t before = 0;
    for (int digit = 0; digit < kDigits; ++digit)
      before += std::exchange(count[static_cast<std::size_t>(digit)], before);
    for (const Placed<Key>& item : *source)
      (*target)[count[item.key >> (pass * kDigitBits) & (kDigits - 1)]++] = item;
    std::swap(source, target);
  }
  return *source;
}

/// Calls f(key, place) for the keys from `first` on that are smaller than bound(), which may
/// decrease meanwhile. Most blocks of a long row have no such key.
template <class Key, class Bound, class F>
void each_below(std::int64_t first, std::int64_t length, const Keys<Key>& row, Bound&& bound,
                F&& f) {
  for (std::int64_t i = first; i < length; i += kBlock) {
    const std::int64_t n = std::min(kBlock, length - i);
    Key keys[kBlock];
    if (row.write(i, n, keys) >= bound()) continue;
    for (std::int64_t j = 0; j < n; ++j)
      if (keys[j] < bound()) f(keys[j], static_cast<std::uint32_t>(i + j));
  }
}

template <class Key>
void take(std::int64_t count, const Keys<Key>& row, std::vector<Placed<Key>>& items) {
  items.resize(static_cast<std::size_t>(count));
  Placed<Key>* const out = items.data();
  for (std::int64_t i = 0; i < count; i += kBlock) {
    const std::int64_t n = std::min(kBlock, count - i);
    Key keys[kBlock];
    row.write(i, n, keys);
    for (std::int64_t j = 0; j < n; ++j) out[i + j] = {keys[j], static_cast<std::uint32_t>(i + j)};
  }
}

/// The first `count` items in the row's order. A later key that is not smaller than the largest
/// kept key is ignored.
template <class Key>
void keep_few(std::int64_t length, std::int64_t count, const Keys<Key>& row,
              std::vector<Placed<Key>>& kept) {
  take(count, row, kept);
  std::make_heap(kept.begin(), kept.end());
  each_below<Key>(
      count, length, row, [&] { return kept.front().key; },
      [&](Key key, std::uint32_t place) {
        std::pop_heap(kept.begin(), kept.end());
        kept.back() = {key, place};
        std::push_heap(kept.begin(), kept.end());
      });
  std::sort_heap(kept.begin(), kept.end());
}

/// The same for counts that are too large for a heap; 2 count <= length.
template <class Key>
void keep_many(std::int64_t length, std::int64_t count, const Keys<Key>& row,
               std::vector<Placed<Key>>& kept) {
  Key bound = 0;
  const auto cut_back = [&] {
    std::nth_element(kept.begin(), kept.begin() + (count - 1), kept.end());
    kept.resize(static_cast<std::size_t>(count));
    bound = kept.back().key;
  };
  take(2 * count, row, kept);
  cut_back();
  each_below<Key>(
      2 * count, length, row, [&] { return bound; },
      [&](Key key, std::uint32_t place) {
        kept.push_back({key, place});
        if (static_cast<std::int64_t>(kept.size()) == 2 * count) cut_back();
      });
  cut_back();
  std::sort(kept.begin(), kept.end());
}

/// Items [first, first + count) in the row's order. Counts of the keys' leading bits tell which
/// keys may be among them; most rows have few such keys, and only those are ordered.
template <class Key>
const Placed<Key>* select(std::int64_t length, std::int64_t first, std::int64_t count,
                          const Keys<Key>& row, std::vector<Placed<Key>>& kept) {
  constexpr int kBits = 11, kShift = 8 * static_cast<int>(sizeof(Key)) - kBits;
  std::array<std::uint32_t, std::size_t{1} << kBits> counts{};
  Key keys[kBlock];
  for (std::int64_t i = 0; i < length; i += kBlock) {
    const std::int64_t n = std::min(kBlock, length - i);
    row.write(i, n, keys);
    for (std::int64_t j = 0; j < n; ++j) ++counts[keys[j] >> kShift];
  }
  std::int64_t before = 0;
  std::size_t low = 0;
  while (before + counts[low] <= first) before += counts[low++];
  std::size_t high = low;
  std::int64_t until = before + counts[low];
  while (until < first + count) until += counts[++high];
  kept.resize(static_cast<std::size_t>(until - before));
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < length && found < until - before; i += kBlock) {
    const std::int64_t n = std::min(kBlock, length - i);
    row.write(i, n, keys);
    for (std::int64_t j = 0; j < n; ++j)
      if (const std::size_t digit = keys[j] >> kShift; digit >= low && digit <= high)
        kept[static_cast<std::size_t>(found++)] = {keys[j], static_cast<std::uint32_t>(i + j)};
  }
  const auto start = kept.begin() + (first - before);
  std::nth_element(kept.begin(), start, kept.end());
  if (count > 1) {
    std::nth_element(start, start + (count - 1), kept.end());
    std::sort(start, start + count);
  }
  return kept.data() + (first - before);
}

/// The row's items in order, from shape.first on.
template <class Key>
const Placed<Key>* sorted_items(const SortShape& shape, const Keys<Key>& row) {
  // The vectors keep their memory, so that later calls do not allocate.
  static const PerThread<std::array<std::vector<Placed<Key>>, 2>> of_thread;
  auto& [items, spare] = of_thread.get();
  if (shape.first > 0 && shape.count < shape.length / 4)
    return select(shape.length, shape.first, shape.count, row, items);
  if (shape.first + shape.count >= shape.length / 4) {
    take(shape.length, row, items);
    if (shape.length >= kRadixLength) return radix_sort(items, spare).data() + shape.first;
    std::sort(items.begin(), items.end());
    return items.data() + shape.first;
  }
  if (shape.count <= kFew && shape.count < shape.length / 8) {
    keep_few(shape.length, shape.count, row, items);
    return items.data();
  }
  keep_many(shape.length, shape.count, row, items);
  return items.data();
}

/// Copies elements of `item` bytes in the order of the items.
template <class Key>
void gather(const Placed<Key>* sorted, std::int64_t count, std::size_t bytes, const std::byte* row,
            std::byte* out) {
  const auto copy = [&](auto size) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(out + static_cast<std::size_t>(i) * size(), row + sorted[i].place * size(),
                  size());
  };
  switch (bytes) {
    case 1:
      return copy(std::integral_constant<std::size_t, 1>());
    case 2:
      return copy(std::integral_constant<std::size_t, 2>());
    case 4:
      return copy(std::integral_constant<std::size_t, 4>());
    default:
      return copy(std::integral_constant<std::size_t, 8>());
  }
}

template <class Key>
void sort_all(const SortShape& shape, typename Keys<Key>::Write write, std::size_t bytes,
              const std::byte* x, std::byte* values, std::int64_t* indices) {
  constexpr std::int64_t kElements = 4096;  // least number of elements for another thread
  const std::int64_t rows =
      std::max<std::int64_t>(kElements / std::max<std::int64_t>(shape.length, 1), 1);
  const auto length = static_cast<std::size_t>(shape.length) * bytes,
             kept = static_cast<std::size_t>(shape.count) * bytes;
  parallel_for(divide_up(shape.rows, rows), [&](std::int64_t block, int) {
    for (std::int64_t r = block * rows; r < std::min((block + 1) * rows, shape.rows); ++r) {
      const std::byte* row = x + static_cast<std::size_t>(r) * length;
      const Placed<Key>* sorted =
          sorted_items<Key>(shape, {write, row, shape.descending ? ~Key{0} : Key{0}});
      if (values != nullptr)
        gather(sorted, shape.count, bytes, row, values + static_cast<std::size_t>(r) * kept);
      if (indices != nullptr)
        for (std::int64_t i = 0; i < shape.count; ++i)
          indices[r * shape.count + i] = sorted[i].place;
    }
  });
}

}  // namespace

void sort_rows(const SortShape& shape, DType dtype, const std::byte* x, std::byte* values,
               std::int64_t* indices) {
  if (shape.rows == 0 || shape.count == 0) return;
  if (shape.length >> 32 != 0)
    throw ValueError(cat("sort: rows of ", shape.length, " elements; at most 2^32 - 1"));
  const auto sort = [&]<class T>(T) {
    using Key = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
    sort_all<Key>(shape, write_keys<Key, T>, sizeof(T), x, values, indices);
  };
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8:
      return sort(std::uint8_t{});
    case DType::Int8:
      return sort(std::int8_t{});
    case DType::Int32:
      return sort(std::int32_t{});
    case DType::Int64:
      return sort(std::int64_t{});
    case DType::Float16:
      return sort(float16{});
    case DType::BFloat16:
      return sort(bfloat16{});
    case DType::Float32:
      return sort(float{});
    case DType::Float64:
      return sort(double{});
  }
}

}  // namespace tenon::cpu
