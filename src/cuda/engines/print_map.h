// Printing map programs as CUDA C++: whole kernels for map regions, and the epilogue of a
// contraction as a device struct.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/target.h"
#include "plan/region.h"

namespace tenon::cuda {

/// A struct that a kernel takes by value, as 8-byte words: pointers, sizes, strides. Sizes are
/// data, never text: another batch size gives the same source.
struct ArgumentBlock {
  std::vector<std::uint64_t> words;
  std::vector<std::pair<int, ValueId>> pointers;  // word number, value whose address goes there
};

/// The epilogue of a contraction: region.map over [batch, rows, columns] when the contraction has
/// one, and the plain store of its result when region.contraction.out is wanted.
///
/// `code`, whose #include lines stand first, defines `struct tenon::cuda::Epilogue` (nothing but
/// 8-byte members, in the order of `arguments`) with
///   __device__ void store(long long batch, long long row, long long column, float acc) const;
///   template <int N>  // N in {2, 4, 8}: neighbours in a row, all inside, column a multiple of N
///   __device__ void store_row(long long batch, long long row, long long column,
///                             const float (&acc)[N]) const;
///   template <int N> struct Held;
///   template <int N>  // N in {1, 2, 4, 8}
///   __device__ Held<N> hold(long long batch, long long row, long long column) const;
///   template <int N>
///   __device__ void finish(long long batch, long long row, long long column,
///                          const float (&acc)[N], const Held<N>& held) const;
/// hold() loads what the region reads there, finish() computes and stores every result; the other
/// two do both. Those on rows use wide
/// accesses where strides and alignment allow. Output dtypes other than float32 are converted.
/// `acc` is double when region.contraction.dtype is Float64, long long when that is an integer.
/// Base addresses of values are 16-byte aligned.
struct PrintedEpilogue {
  std::string code;
  ArgumentBlock arguments;
};
PrintedEpilogue print_epilogue(const Region& region, std::span<const Value> values,
                               const Target& target);

}  // namespace tenon::cuda
