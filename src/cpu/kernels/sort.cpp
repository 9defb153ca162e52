// Rows are sorted as unsigned keys with their places: keys and places are all different, so that
// any sort of them is stable.
//
// A few of many are kept in a heap as the row passes by, more in a list that is cut back when it
// has doubled; whole long rows go through a radix sort, which takes time in proportion to their
// length (digits in which all keys agree are skipped); short ones through the library's sort.
#include "cpu/kernels/sort.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"
#include "base/thread_pool.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kRadixLength = 1024;  // below, histograms cost more than comparisons
constexpr std::int64_t kFew = 64;            // kept in a heap
constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;

template <class Key>
struct Placed {
  Key key;
  std::uint32_t place;
  bool operator<(const Placed& other) const {
    return key != other.key ? key < other.key : place < other.place;
  }
};

/// Keys are ordered as the elements are; zeros of both signs are equal, and so are all NaNs.
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

/// By one digit of the keys after the other, lowest first; `from` is sorted by places. The result
/// is in the vector that is returned.
template <class Key>
std::vector<Placed<Key>>& radix_sort(std::vector<Placed<Key>>& from, std::vector<Placed<Key>>& to) {
  constexpr int kPasses = 8 * static_cast<int>(sizeof(Key)) / kDigitBits;
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(kPasses) * kDigits, 0);
  for (const Placed<Key>& item : from)
    for (int pass = 0; pass < kPasses; ++pass)
      ++counts[static_cast<std::size_t>(pass * kDigits) +
               (item.key >> (pass * kDigitBits) & (kDigits - 1))];
  to.resize(from.size());
  std::vector<Placed<Key>>*source = &from, *target = &to;
  for (int pass = 0; pass < kPasses; ++pass) {
    std::uint32_t* const count = counts.data() + pass * kDigits;
    if (std::find(count, count + kDigits, from.size()) != count + kDigits) continue;
    std::uint32_t before = 0;
    for (int digit = 0; digit < kDigits; ++digit) before += std::exchange(count[digit], before);
    for (const Placed<Key>& item : *source)
      (*target)[count[item.key >> (pass * kDigitBits) & (kDigits - 1)]++] = item;
    std::swap(source, target);
  }
  return *source;
}

/// Calls f(key, place) for the keys from `first` on that are smaller than bound(), which may sink
/// as they pass by: most blocks of a long row have none.
template <class Key, class KeyAt, class Bound, class F>
void each_below(std::int64_t first, std::int64_t length, KeyAt&& key_at, Bound&& bound, F&& f) {
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t i = first; i < length; i += kBlock) {
    const std::int64_t n = std::min(kBlock, length - i);
    Key keys[kBlock], least = ~Key{0};
    for (std::int64_t j = 0; j < n; ++j) least = std::min(least, keys[j] = key_at(i + j));
    if (least >= bound()) continue;
    for (std::int64_t j = 0; j < n; ++j)
      if (keys[j] < bound()) f(keys[j], static_cast<std::uint32_t>(i + j));
  }
}

template <class Key, class KeyAt>
void take(std::int64_t count, KeyAt&& key_at, std::vector<Placed<Key>>& items) {
  items.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    items[static_cast<std::size_t>(i)] = {key_at(i), static_cast<std::uint32_t>(i)};
}

/// The first `count` of the row's order: a key that comes later and is no smaller than the largest
/// kept stays out.
template <class Key, class KeyAt>
void keep_few(std::int64_t length, std::int64_t count, KeyAt&& key_at,
              std::vector<Placed<Key>>& kept) {
  take(count, key_at, kept);
  std::make_heap(kept.begin(), kept.end());
  each_below<Key>(
      count, length, key_at, [&] { return kept.front().key; },
      [&](Key key, std::uint32_t place) {
        std::pop_heap(kept.begin(), kept.end());
        kept.back() = {key, place};
        std::push_heap(kept.begin(), kept.end());
      });
  std::sort_heap(kept.begin(), kept.end());
}

/// The same for more than a heap is good for; 2 count <= length.
template <class Key, class KeyAt>
void keep_many(std::int64_t length, std::int64_t count, KeyAt&& key_at,
               std::vector<Placed<Key>>& kept) {
  Key bound = 0;
  const auto cut_back = [&] {
    std::nth_element(kept.begin(), kept.begin() + (count - 1), kept.end());
    kept.resize(static_cast<std::size_t>(count));
    bound = kept.back().key;
  };
  take(2 * count, key_at, kept);
  cut_back();
  each_below<Key>(
      2 * count, length, key_at, [&] { return bound; },
      [&](Key key, std::uint32_t place) {
        kept.push_back({key, place});
        if (static_cast<std::int64_t>(kept.size()) == 2 * count) cut_back();
      });
  cut_back();
  std::sort(kept.begin(), kept.end());
}

/// The row's items in order, as far as shape.count of them.
template <class Key, class KeyAt>
const Placed<Key>* sorted_items(const SortShape& shape, KeyAt&& key_at) {
  // They keep their memory: a settled step allocates nothing.
  thread_local std::vector<Placed<Key>> items, spare;
  if (shape.count <= kFew && shape.count < shape.length / 8) {
    keep_few(shape.length, shape.count, key_at, items);
    return items.data();
  }
  if (shape.count < shape.length / 4) {
    keep_many(shape.length, shape.count, key_at, items);
    return items.data();
  }
  take(shape.length, key_at, items);
  if (shape.length >= kRadixLength) return radix_sort(items, spare).data();
  std::sort(items.begin(), items.end());
  return items.data();
}

template <class T>
void sort_row(const SortShape& shape, const T* x, T* values, std::int64_t* indices) {
  using Key = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
  const Key turned = shape.descending ? ~Key{0} : Key{0};
  const Placed<Key>* sorted = sorted_items<Key>(
      shape, [=](std::int64_t i) { return static_cast<Key>(key_of<Key>(x[i]) ^ turned); });
  for (std::int64_t i = 0; i < shape.count; ++i) {
    if (values != nullptr) values[i] = x[sorted[i].place];
    if (indices != nullptr) indices[i] = sorted[i].place;
  }
}

template <class T>
void sort_all(const SortShape& shape, const std::byte* x, std::byte* values,
              std::int64_t* indices) {
  constexpr std::int64_t kBlock = 4096;  // elements that are worth handing to another thread
  const std::int64_t rows =
      std::max<std::int64_t>(kBlock / std::max<std::int64_t>(shape.length, 1), 1);
  parallel_for((shape.rows + rows - 1) / rows, [&](std::int64_t block, int) {
    for (std::int64_t r = block * rows; r < std::min((block + 1) * rows, shape.rows); ++r)
      sort_row(shape, reinterpret_cast<const T*>(x) + r * shape.length,
               values == nullptr ? nullptr : reinterpret_cast<T*>(values) + r * shape.count,
               indices == nullptr ? nullptr : indices + r * shape.count);
  });
}

}  // namespace

void sort_rows(const SortShape& shape, DType dtype, const std::byte* x, std::byte* values,
               std::int64_t* indices) {
  if (shape.rows == 0 || shape.count == 0) return;
  if (shape.length >> 32 != 0)
    throw ValueError(cat("sort: rows of ", shape.length, " elements; at most 2^32 - 1"));
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8:
      return sort_all<std::uint8_t>(shape, x, values, indices);
    case DType::Int8:
      return sort_all<std::int8_t>(shape, x, values, indices);
    case DType::Int32:
      return sort_all<std::int32_t>(shape, x, values, indices);
    case DType::Int64:
      return sort_all<std::int64_t>(shape, x, values, indices);
    case DType::Float16:
      return sort_all<float16>(shape, x, values, indices);
    case DType::BFloat16:
      return sort_all<bfloat16>(shape, x, values, indices);
    case DType::Float32:
      return sort_all<float>(shape, x, values, indices);
    case DType::Float64:
      return sort_all<double>(shape, x, values, indices);
  }
}

}  // namespace tenon::cpu
