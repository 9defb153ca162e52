// Kernels around a vendor library's call: they convert operands before the call and apply an
// epilogue after it.
//
// Contiguous rows, 16-byte accesses, bandwidth-bound. Results are overwritten. Arrays do not
// overlap, with one exception: the product may have the address of the epilogue's output, because a
// thread loads its elements before it stores them.
#pragma once

#include "cuda/kernels/bf16_parts.cuh"
#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/intrinsics.cuh"
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

/// Splits float32 rows into planes of their bfloat16 parts: part p of a row is at p * out_batch.
template <bool Aligned, bool Wide>
__device__ __forceinline__ void split_rows(const CastArgs& a) {
  typename Counter<Wide>::type n = thread_number<Wide>();
  if (n >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  const long long row = split<Wide>(n, a.groups);
  const long long column = static_cast<long long>(n) * kCastWidth;
  const float* from = static_cast<const float*>(a.in) + row * a.in_outer + column;
  Chunk<float> read;
  if constexpr (Aligned) {
    read = *reinterpret_cast<const Chunk<float>*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < kCastWidth; ++i) read.at[i] = column + i < a.inner ? from[i] : 0.0f;
  }
  Chunk<unsigned short> parts[3];
#pragma unroll
  for (int i = 0; i < kCastWidth; ++i) {
    const Bf16Parts x = bf16_parts(read.at[i]);
#pragma unroll
    for (int p = 0; p < 3; ++p) parts[p].at[i] = static_cast<unsigned short>(x.of[p]);
  }
  unsigned short* to = static_cast<unsigned short*>(a.out) + row * a.out_outer + column;
#pragma unroll
  for (int p = 0; p < 3; ++p)
    *reinterpret_cast<Chunk<unsigned short>*>(to + p * a.out_batch) = parts[p];
}

/// Transposes a tile of a float32 matrix; elements are rounded to tf32 or copied. 256 threads.
///
/// Aligned: rows of `in` begin at multiples of 16 bytes, and the number of columns is a multiple of
/// 4.
template <bool Aligned, bool Tf32>
__device__ __forceinline__ void transpose_rows(const TransposeArgs& a) {
  constexpr int kSteps = kTransposeSide * kTransposeSide / 4 / 256;
  __shared__ float tile[kTransposeSide][kTransposeSide + 1];
  unsigned left = blockIdx.x;
  const long long row = static_cast<long long>(split<false>(left, a.tiles)) * kTransposeSide;
  const long long column = static_cast<long long>(left) * kTransposeSide;
  // Each step loads 16 lines of 64 elements, four elements a thread.
  const int line = static_cast<int>(threadIdx.x) / 16,
            first = static_cast<int>(threadIdx.x) % 16 * 4;
  float4 x[kSteps];
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const long long r = row + line + s * 16, c = column + first;
    const float* from = a.in + r * a.in_pitch + c;
    x[s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (r >= a.rows) continue;
    if constexpr (Aligned) {
      if (c < a.columns) x[s] = *reinterpret_cast<const float4*>(from);
    } else {
      if (c < a.columns) x[s].x = from[0];
      if (c + 1 < a.columns) x[s].y = from[1];
      if (c + 2 < a.columns) x[s].z = from[2];
      if (c + 3 < a.columns) x[s].w = from[3];
    }
  }
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const float of[4] = {x[s].x, x[s].y, x[s].z, x[s].w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      tile[first + i][line + s * 16] = Tf32 ? scalar::float_of(to_tf32(of[i])) : of[i];
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int c = line + s * 16;
    if (column + c < a.columns && row + first < a.out_pitch)
      *reinterpret_cast<float4*>(a.out + (column + c) * a.out_pitch + row + first) =
          make_float4(tile[c][first], tile[c][first + 1], tile[c][first + 2], tile[c][first + 3]);
  }
}

/// Transposes a tile of a plane and converts through float. 256 threads.
template <class From, class To>
__device__ __forceinline__ void transpose_planes(const PlanesArgs& a) {
  constexpr int kSteps = kPlaneSide / 8;
  __shared__ float tile[kPlaneSide][kPlaneSide + 1];
  unsigned across = blockIdx.x;
  unsigned down = split<false>(across, a.across);
  const long long plane = static_cast<long long>(split<false>(down, a.down)) * a.rows * a.columns;
  const int row = static_cast<int>(down) * kPlaneSide,
            column = static_cast<int>(across) * kPlaneSide;
  const int line = static_cast<int>(threadIdx.x) / kPlaneSide,
            lane = static_cast<int>(threadIdx.x) % kPlaneSide;
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int r = row + line + s * 8, c = column + lane;
    if (r < a.rows && c < a.columns)
      tile[line + s * 8][lane] =
          From::load(a.in, plane + static_cast<long long>(r) * a.columns + c);
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int c = column + line + s * 8, r = row + lane;
    if (r < a.rows && c < a.columns)
      To::store(a.out, plane + static_cast<long long>(c) * a.rows + r, tile[lane][line + s * 8]);
  }
}

template <class T, int Width>
struct alignas(sizeof(T) * Width) Neighbours {
  T at[Width];
};

/// Applies the epilogue: Width neighbours a thread; the number of columns is a multiple of Width.
template <class T, int Width, bool Wide, class E>
__device__ __forceinline__ void apply_epilogue(const ProductArgs& a, const E& epilogue) {
  typename Counter<Wide>::type n = thread_number<Wide>();
  if (n >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  const T* product = static_cast<const T*>(a.product) + static_cast<long long>(n) * Width;
  typename Counter<Wide>::type rest = split<Wide>(n, a.groups);
  const long long batch = split<Wide>(rest, a.rows);
  const long long column = static_cast<long long>(n) * Width;
  typename E::Sums none = E::no_sums();
  if constexpr (Width == 1) {
    epilogue.store(batch, rest, column, product[0], none);
  } else {
    const Neighbours<T, Width> row = *reinterpret_cast<const Neighbours<T, Width>*>(product);
    epilogue.store_row(batch, rest, column, row.at, none);
  }
}

/// The same for a product that was stored in a 16-bit type.
template <class Element, int Width, bool Wide, class E>
__device__ __forceinline__ void apply_epilogue_to(const ProductArgs& a, const E& epilogue) {
  using Storage = typename Element::Storage;
  typename Counter<Wide>::type n = thread_number<Wide>();
  if (n >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  const Neighbours<Storage, Width> stored =
      reinterpret_cast<const Neighbours<Storage, Width>*>(a.product)[n];
  float row[Width];
#pragma unroll
  for (int i = 0; i < Width; ++i) row[i] = Element::load(stored.at, i);
  typename Counter<Wide>::type rest = split<Wide>(n, a.groups);
  const long long batch = split<Wide>(rest, a.rows);
  const long long column = static_cast<long long>(n) * Width;
  typename E::Sums none = E::no_sums();
  if constexpr (Width == 1) {
    epilogue.store(batch, rest, column, row[0], none);
  } else {
    epilogue.store_row(batch, rest, column, row, none);
  }
}

}  // namespace tenon::cuda
