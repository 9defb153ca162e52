// Around a vendor library's call: operands converted before it, an epilogue applied after it.
//
// Both sweep contiguous rows with 16-byte accesses; the bound is bandwidth. Results are overwritten
// and overlap nothing.
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/vendor_args.cuh"

namespace tenon::cuda {

/// kCastWidth elements that are loaded and stored at once.
template <class Storage>
struct alignas(16) Chunk {
  Storage at[kCastWidth];
};

/// Aligned: rows of `in` begin at multiples of 16 bytes and inner is a multiple of kCastWidth.
template <class From, class To, bool Aligned, bool Wide>
__device__ __forceinline__ void cast_rows(const CastArgs& a) {
  using Read = Chunk<typename From::Storage>;
  using Written = Chunk<typename To::Storage>;
  typename Counter<Wide>::type n = thread_number<Wide>();
  if (n >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  typename Counter<Wide>::type rest = split<Wide>(n, a.groups);
  const long long batch = split<Wide>(rest, a.outers);
  const long long column = static_cast<long long>(n) * kCastWidth;
  const typename From::Storage* from = static_cast<const typename From::Storage*>(a.in) +
                                       batch * a.in_batch + rest * a.in_outer + column;
  Read read;
  if constexpr (Aligned) {
    read = *reinterpret_cast<const Read*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < kCastWidth; ++i)
      read.at[i] = column + i < a.inner ? from[i] : static_cast<typename From::Storage>(0);
  }
  Written written;
#pragma unroll
  for (int i = 0; i < kCastWidth; ++i)
    To::store(written.at, i, static_cast<typename To::Value>(From::load(read.at, i)));
  typename To::Storage* to =
      static_cast<typename To::Storage*>(a.out) + batch * a.out_batch + rest * a.out_outer + column;
  *reinterpret_cast<Written*>(to) = written;
}

template <class T, int Width>
struct alignas(sizeof(T) * Width) Neighbours {
  T at[Width];
};

/// Width neighbours a thread; the number of columns is a multiple of it.
template <class T, int Width, bool Wide, class E>
__device__ __forceinline__ void apply_epilogue(const ProductArgs& a, const E& epilogue) {
  typename Counter<Wide>::type n = thread_number<Wide>();
  if (n >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  const T* product = static_cast<const T*>(a.product) + static_cast<long long>(n) * Width;
  typename Counter<Wide>::type rest = split<Wide>(n, a.groups);
  const long long batch = split<Wide>(rest, a.rows);
  const long long column = static_cast<long long>(n) * Width;
  if constexpr (Width == 1) {
    epilogue.store(batch, rest, column, product[0]);
  } else {
    const Neighbours<T, Width> row = *reinterpret_cast<const Neighbours<T, Width>*>(product);
    epilogue.store_row(batch, rest, column, row.at);
  }
}

}  // namespace tenon::cuda
