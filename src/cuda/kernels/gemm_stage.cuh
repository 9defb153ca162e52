// Staging: tiles of an operand from global memory into shared memory.
//
// A tile of [outer, k] elements lies with k contiguous ([outer][k + pad]) or with the outer axis
// contiguous ([k][outer + pad]), as the operand lies in memory, so that neighbouring threads read
// neighbouring addresses. The padding makes the fragment loads of gemm_math.cuh free of bank
// conflicts. Elements that need no conversion are copied asynchronously, 16 bytes at a time where
// the operand is aligned, else 4; 16-bit elements that are not aligned, and those to be converted,
// pass through registers: fetch() before the arithmetic, put() after it. What lies outside the
// operand becomes 0.
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/gemm_args.cuh"
#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

enum class Kind { Float32, BFloat16, Float16 };

template <Kind kind>
struct Bits {
  using type = unsigned short;
};
template <>
struct Bits<Kind::Float32> {
  using type = float;
};

template <Kind from, Kind to>
TENON_DEVICE typename Bits<to>::type convert(typename Bits<from>::type x) {
  if constexpr (from == to) {
    return x;
  } else {
    float wide;
    if constexpr (from == Kind::Float32)
      wide = x;
    else
      wide = from == Kind::BFloat16 ? bf16_to_float(x) : f16_to_float(x);
    if constexpr (to == Kind::Float32)
      return wide;
    else
      return to == Kind::BFloat16 ? float_to_bf16(wide) : float_to_f16(wide);
  }
}

/// The pattern of an operand: everything about it that is text.
template <Kind memory, Kind stored, bool along_k, int vector, int outer_digits, int inner_digits,
          int window>
struct Side {
  static constexpr Kind kMemory = memory, kStored = stored;
  static constexpr bool kAlongK = along_k;  // k contiguous in shared memory
  static constexpr int kVector = vector;    // elements a copy
  static constexpr int kOuterDigits = outer_digits, kInnerDigits = inner_digits;
  static constexpr int kWindow = window;
  using Memory = typename Bits<memory>::type;
  using Stored = typename Bits<stored>::type;
  static constexpr bool kAsync = memory == stored && vector * sizeof(Stored) >= 4;
};

template <class Offset>
struct alignas(16) Place {
  Offset offset;
  int u, v;
};

template <int digits, class Offset>
TENON_DEVICE Place<Offset> place(const GemmAxis& axis, int index) {
  if constexpr (digits == 1) {
    return {static_cast<Offset>(index) * static_cast<Offset>(axis.stride[0]), 0, 0};
  } else {
    unsigned d2 = static_cast<unsigned>(index);
    unsigned d1 = split<false>(d2, axis.size2);
    const unsigned d0 = split<false>(d1, axis.size1);
    return {static_cast<Offset>(d0) * static_cast<Offset>(axis.stride[0]) +
                static_cast<Offset>(d1) * static_cast<Offset>(axis.stride[1]) +
                static_cast<Offset>(d2) * static_cast<Offset>(axis.stride[2]),
            axis.u0 + static_cast<int>(d1) * axis.u_step,
            axis.v0 + static_cast<int>(d2) * axis.v_step};
  }
}

/// S: the Side; a tile of kOuter x kDepth; kPad elements after each line.
template <class S, int kOuter, int kDepth, int kPad, int kThreads, class Offset>
class Stager {
 public:
  using Stored = typename S::Stored;
  static constexpr int kLine = S::kAlongK ? kDepth : kOuter, kLines = S::kAlongK ? kOuter : kDepth;
  static constexpr int kPitch = kLine + kPad;
  static constexpr int kElements = kLines * kPitch;
  static constexpr int kBytes = kElements * static_cast<int>(sizeof(Stored));
  /// Places that many threads need: of all lines, or of all k of this tile and the next.
  static constexpr bool kOuterTable = S::kAlongK && S::kOuterDigits > 1,
                        kInnerTable = !S::kAlongK && S::kInnerDigits > 1;
  static constexpr int kPlaces = kOuterTable ? kOuter : kInnerTable ? 2 * kDepth : 0;
  static constexpr int kTableBytes = kPlaces * static_cast<int>(sizeof(Place<Offset>));

  /// `table`: kTableBytes of shared memory; a barrier must follow.
  TENON_DEVICE Stager(const GemmOperand& operand, const typename S::Memory* data, int outer0,
                      int outer_end, void* table)
      : o_(operand), data_(data), outer0_(outer0), outer_end_(outer_end) {
    table_ = static_cast<Place<Offset>*>(table);
    if constexpr (kOuterTable) {
      for (int i = static_cast<int>(threadIdx.x); i < kOuter; i += kThreads)
        table_[i] = place<S::kOuterDigits, Offset>(o_.outer, outer0 + i);
    }
    if constexpr (!S::kAlongK)
      if constexpr (kThreads % kAcross == 0)
        fixed_ = place<S::kOuterDigits, Offset>(o_.outer, outer0 + across(0));
  }

  /// Before a barrier: prepares for the tile at k0, the `number`th.
  TENON_DEVICE void prepare(int number, int k0) {
    if constexpr (kInnerTable) {
      const int i = static_cast<int>(threadIdx.x);
      if (i < kDepth)
        table_[number % 2 * kDepth + i] = place<S::kInnerDigits, Offset>(o_.inner, k0 + i);
    }
  }
  /// After it: the next calls are about that tile.
  TENON_DEVICE void turn_to(int number) { turn_ = number % 2 * kDepth; }

  /// Starts the copies of the tile at k0 (elements from k_end on are 0).
  TENON_DEVICE void copy(Stored* tile, int k0, int k_end) {
    if constexpr (S::kAsync)
      each(k0, k_end, [&](int, int position, bool inside, Offset offset) {
        const typename S::Memory* from = data_ + offset;  // read when inside only
        if constexpr (S::kVector * sizeof(Stored) == 16)
          copy_async_16(tile + position, from, inside);
        else
          copy_async_4(tile + position, from, inside);
      });
  }
  /// The way through registers.
  TENON_DEVICE void fetch(int k0, int k_end) {
    if constexpr (!S::kAsync)
      each(k0, k_end, [&](int i, int, bool inside, Offset offset) {
        held_[i] = inside ? data_[offset] : typename S::Memory(0);
      });
  }
  TENON_DEVICE void put(Stored* tile) {
    if constexpr (!S::kAsync) {
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        if (counts(i))
          tile[down(i) * kPitch + across(i)] = convert<S::kMemory, S::kStored>(held_[i]);
    }
  }

 private:
  static constexpr int kAcross = kLine / S::kVector;
  static constexpr int kTotal = kAcross * kLines;
  static constexpr int kCount = (kTotal + kThreads - 1) / kThreads;
  static_assert(kLine % S::kVector == 0, "lines of whole copies");

  static TENON_DEVICE bool counts(int i) {
    return kTotal % kThreads == 0 || static_cast<int>(threadIdx.x) + i * kThreads < kTotal;
  }
  /// First element of copy i along its line, and its line.
  static TENON_DEVICE int across(int i) {
    const int t = static_cast<int>(threadIdx.x);
    return (kThreads % kAcross == 0 ? t % kAcross : (t + i * kThreads) % kAcross) * S::kVector;
  }
  static TENON_DEVICE int down(int i) {
    const int t = static_cast<int>(threadIdx.x);
    return kThreads % kAcross == 0 ? t / kAcross + i * (kThreads / kAcross)
                                   : (t + i * kThreads) / kAcross;
  }

  TENON_DEVICE Place<Offset> outer_place(int i) const {
    if constexpr (kOuterTable) return table_[down(i)];
    if constexpr (!S::kAlongK && kThreads % kAcross == 0) return fixed_;
    return place<S::kOuterDigits, Offset>(o_.outer, outer0_ + (S::kAlongK ? down(i) : across(i)));
  }

  TENON_DEVICE bool inside_window(const Place<Offset>& outer, const Place<Offset>& inner,
                                  Offset& offset) const {
    if constexpr (S::kWindow == 0) return true;
    int u = outer.u + inner.u, v = outer.v + inner.v;
    if constexpr (S::kWindow == 2) {
      if (u < 0 || v < 0) return false;
      unsigned ru = static_cast<unsigned>(u), rv = static_cast<unsigned>(v);
      u = static_cast<int>(split<false>(ru, o_.step_u));
      v = static_cast<int>(split<false>(rv, o_.step_v));
      if (ru + rv != 0) return false;
      offset += static_cast<Offset>(u) * static_cast<Offset>(o_.stride_u) +
                static_cast<Offset>(v) * static_cast<Offset>(o_.stride_v);
    }
    return static_cast<unsigned>(u) < static_cast<unsigned>(o_.limit_u) &&
           static_cast<unsigned>(v) < static_cast<unsigned>(o_.limit_v);
  }

  /// f(i, position in the tile, inside, offset in memory) for every copy of this thread.
  template <class F>
  TENON_DEVICE void each(int k0, int k_end, F&& f) {
    constexpr bool one_k = S::kAlongK && kThreads % kAcross == 0;
    Place<Offset> inner{};
    if constexpr (one_k) inner = place<S::kInnerDigits, Offset>(o_.inner, k0 + across(0));
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (!counts(i)) continue;
      const int outer_index = outer0_ + (S::kAlongK ? down(i) : across(i));
      const int k = k0 + (S::kAlongK ? across(i) : down(i));
      if constexpr (kInnerTable)
        inner = table_[turn_ + down(i)];
      else if constexpr (!one_k)
        inner = place<S::kInnerDigits, Offset>(o_.inner, k);
      const Place<Offset> outer = outer_place(i);
      Offset offset = outer.offset + inner.offset;
      bool inside = outer_index < outer_end_ && k < k_end;
      inside = inside_window(outer, inner, offset) && inside;
      f(i, down(i) * kPitch + across(i), inside, offset);
    }
  }

  const GemmOperand& o_;
  const typename S::Memory* data_;
  Place<Offset>* table_;
  int turn_ = 0;
  int outer0_, outer_end_;
  Place<Offset> fixed_{};
  typename S::Memory held_[S::kAsync ? 1 : kCount];
};

}  // namespace tenon::cuda
