// Printing map programs as CUDA C++: whole kernels for map regions, and the epilogue of a
// contraction as a device struct.
#pragma once

#include <span>
#include <string>

#include "cuda/engines/launch/epilogue_arguments.h"
#include "cuda/target.h"
#include "plan/program/region.h"

namespace tenon::cuda {

/// The epilogue of a contraction: region.map over [batch, rows, columns] if the contraction has
/// one, and the plain store of its result if region.contraction.out is wanted.
///
/// `code` begins with its #include lines and defines `struct tenon::cuda::Epilogue`, whose members
/// are all 8 bytes, in the order of `arguments`, with
///   struct Sums;  // a thread's accumulators if the whole result is reduced; starts as no_sums()
///   __device__ void store(long long batch, long long row, long long column, float acc,
///                         Sums& sums) const;
///   template <int N>  // N in {2, 4, 8}: neighbours in a row, all inside, column a multiple of N
///   __device__ void store_row(long long batch, long long row, long long column,
///                             const float (&acc)[N], Sums& sums) const;
///   template <int N> struct Held;
///   template <int N>  // N in {1, 2, 4, 8}
///   __device__ Held<N> hold(long long batch, long long row, long long column) const;
///   template <int N>
///   __device__ void finish(long long batch, long long row, long long column,
///                          const float (&acc)[N], const Held<N>& held, Taken<N>& sums) const;
/// hold() loads the region's operands at a position; finish() computes, stores and accumulates
/// every result; store() and store_row() do both. The row functions use vector accesses where
/// strides and alignment allow. Output dtypes other than float32 are converted.
///
/// With kSums, the accumulators of all threads must be passed to
///   template <int kThreads>  // threads of the block; each block leaves one partial result
///   __device__ void end_block(const Sums& gathered) const;
/// or to partials[] and combine_partials() (cuda/kernels/maps/epilogue_sums.cuh).
///
/// With kChannels, which reduces each row of the result, there are only hold() and finish().
/// finish() returns the numbers of its elements in a Taken<N> (otherwise Taken<N> is Sums). They
/// are passed to
///   template <int N, int Lanes>
///   __device__ void leave(const Taken<N>& taken, const ChannelPart<Lanes>& part) const;
/// and then, in a second launch with a warp per channel, all partial results to
///   __device__ void save_channel(const ChannelParts& parts, int channel) const;
/// (cuda/kernels/maps/epilogue_channels.cuh).
///
/// With kColumnSums, a thread's accumulators of four neighbouring columns are passed to
///   template <int kRows> __device__ void Sums::put(float* to, int lane) const;
///   template <int kRows, int kPitch>
///   __device__ void save_columns(const float* from, long long block, long long column) const;
/// (cuda/kernels/maps/epilogue_columns.cuh); finish() is then called for four neighbours at a time.
///
/// `acc` is double if region.contraction.dtype is Float64, and long long if it is an integer. Base
/// addresses of values are 16-byte aligned.
struct PrintedEpilogue {
  std::string code;
  EpilogueArguments arguments;
  int channel_numbers = 0;  // of a part of a channel; a partial result of `arguments` is a float
};
PrintedEpilogue print_epilogue(const Region& region, std::span<const Value> values,
                               const Target& target);

}  // namespace tenon::cuda
