// Staging: copies tiles of an operand from global into shared memory.
//
// A tile of [outer, k] elements keeps the contiguous axis of the operand in memory: k ([outer][k +
// pad]) or the outer axis ([k][outer + pad]). Neighbouring threads therefore read neighbouring
// addresses. The padding keeps the fragment loads of gemm_math.cuh free of bank conflicts. Elements
// outside the operand become 0.
//
// Elements that need no conversion are copied asynchronously, 16 bytes at a time where the operand
// is aligned, otherwise 4. Unaligned 16-bit elements, and elements to be converted, pass through
// registers: fetch() before the arithmetic, put() after it. Unaligned elements are moved in pairs
// (kPairs) only along k, where lines are multiples of 8 elements and there is neither a window nor
// a prologue.
//
// An operand with a prologue passes through registers too: fetch() loads its elements and the
// prologue's further operands; put() computes, rounds and stores. The positions of the further
// operands are summed digit by digit beside the operand's own offset (GemmLayout).
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/gemm/gemm_args.cuh"
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

/// The starts of a prologue's layouts for a block, in elements.
template <int layouts>
struct LayoutBases {
  long long of[layouts];
};
template <>
struct LayoutBases<0> {};

/// Loads two neighbouring 16-bit elements from a 2-byte aligned address.
TENON_DEVICE unsigned load_pair(const unsigned short* from) {
  const auto address = reinterpret_cast<unsigned long long>(from);
  const auto* words = reinterpret_cast<const unsigned*>(address & ~3ull);
  if ((address & 2) == 0) return words[0];
  return words[0] >> 16 | words[1] << 16;
}

/// The compile-time parameters of an operand. `pairs`: copies two elements that need not be
/// aligned.
template <Kind memory, Kind stored, bool along_k, int vector, int outer_digits, int inner_digits,
          int window, bool pairs = false>
struct Side {
  static constexpr Kind kMemory = memory, kStored = stored;
  static constexpr bool kAlongK = along_k;  // k contiguous in shared memory
  static constexpr int kVector = vector;    // elements per copy
  static constexpr int kOuterDigits = outer_digits, kInnerDigits = inner_digits;
  static constexpr int kWindow = window;
  using Memory = typename Bits<memory>::type;
  using Stored = typename Bits<stored>::type;
  using Prologue = NoPrologue;
  static constexpr bool kAsync = !pairs && memory == stored && vector * sizeof(Stored) >= 4;
  static constexpr bool kComputed = false, kPairs = pairs;
};

/// An operand with a prologue P, as print_prologue() writes it.
template <class P, Kind stored, bool along_k, int vector, int outer_digits, int inner_digits,
          int window>
struct ComputedSide {
  static constexpr Kind kStored = stored;
  static constexpr bool kAlongK = along_k;
  static constexpr int kVector = vector;
  static constexpr int kOuterDigits = outer_digits, kInnerDigits = inner_digits;
  static constexpr int kWindow = window;
  using Memory = typename P::Memory;
  using Stored = typename Bits<stored>::type;
  using Prologue = P;
  static constexpr bool kAsync = false, kComputed = true, kPairs = false;
};

/// N elements that are copied at once.
template <class T, int N>
struct alignas(sizeof(T) * N) Together {
  T v[N];
};
template <class T, int N>
__device__ constexpr int at_once() {
  return N * static_cast<int>(sizeof(T)) <= 16 ? N : 16 / static_cast<int>(sizeof(T));
}
/// N neighbours; the first is aligned in memory to all N or to 16 bytes.
template <int N, class T>
TENON_DEVICE void load_together(const T* memory, T (&x)[N]) {
  constexpr int width = at_once<T, N>();
#pragma unroll
  for (int i = 0; i < N; i += width) {
    const auto some = *reinterpret_cast<const Together<T, width>*>(memory + i);
#pragma unroll
    for (int j = 0; j < width; ++j) x[i + j] = some.v[j];
  }
}
template <int N, class T>
TENON_DEVICE void save_together(T* memory, const T (&x)[N]) {
  constexpr int width = at_once<T, N>();
#pragma unroll
  for (int i = 0; i < N; i += width) {
    Together<T, width> some;
#pragma unroll
    for (int j = 0; j < width; ++j) some.v[j] = x[i + j];
    *reinterpret_cast<Together<T, width>*>(memory + i) = some;
  }
}

/// The position of an index. Without a window, u says whether the index exists. With a window, a
/// pixel has masks of the taps that stay inside the image (bit r of u: row r, bit s of v: column
/// s), and a tap has its bit numbers. Indexes beyond the end have no bit set, or bit number 31,
/// which is never set. `more`: positions in the layouts of a prologue.
template <class Offset, int layouts = 0>
struct alignas(16) Place {
  Offset offset;
  unsigned u, v;
  Offset more[layouts];
};
template <class Offset>
struct alignas(16) Place<Offset, 0> {
  Offset offset;
  unsigned u, v;
};

enum class Role { Plain, Pixel, StridedPixel, Tap, StridedTap };

/// Bit t: x + t * step is a coordinate inside [0, limit) (strided: after an exact division).
template <bool strided>
TENON_DEVICE unsigned window_mask(int x, int step, int taps, int limit, const Divisor& divisor) {
  if (!strided && (step == 1 || step == -1)) {  // the bits from first to end
    const int lowest = step > 0 ? -x : x - limit + 1, highest = step > 0 ? limit - x : x + 1;
    const int first = lowest < 0 ? 0 : lowest, end = highest < taps ? highest : taps;
    return end > first ? (1u << end) - (1u << first) : 0u;
  }
  unsigned mask = 0;
#pragma unroll 1
  for (int t = 0; t < taps; ++t, x += step) {
    int y = x;
    bool whole = true;
    if constexpr (strided) {
      unsigned rest = static_cast<unsigned>(x < 0 ? 0 : x);
      y = static_cast<int>(split<false>(rest, divisor));
      whole = rest == 0 && x >= 0;
    }
    const bool inside = whole && static_cast<unsigned>(y) < static_cast<unsigned>(limit);
    mask |= static_cast<unsigned>(inside) << t;
  }
  return mask;
}

template <int digits, Role role, class Offset>
TENON_DEVICE Place<Offset> place(const GemmOperand& o, const GemmAxis& axis, int index, int end) {
  constexpr bool strided = role == Role::StridedPixel || role == Role::StridedTap;
  constexpr bool tap = role == Role::Tap || role == Role::StridedTap;
  const bool exists = index < end;
  if constexpr (digits == 1) {
    return {static_cast<Offset>(index) * static_cast<Offset>(axis.stride[0]), exists ? 1u : 0u, 0u};
  } else {
    unsigned d2 = static_cast<unsigned>(index);
    unsigned d1 = split<false>(d2, axis.size2);
    const unsigned d0 = split<false>(d1, axis.size1);
    Place<Offset> at{static_cast<Offset>(d0) * static_cast<Offset>(axis.stride[0]) +
                         static_cast<Offset>(d1) * static_cast<Offset>(axis.stride[1]) +
                         static_cast<Offset>(d2) * static_cast<Offset>(axis.stride[2]),
                     exists ? 1u : 0u, 0u};
    const int u = axis.u0 + static_cast<int>(d1) * axis.u_step,
              v = axis.v0 + static_cast<int>(d2) * axis.v_step;
    if constexpr (strided) {
      // The quotients u / step of a pixel and of a tap add up exactly only where their remainders
      // match.
      const auto whole_u = static_cast<Offset>(
                     divide<false>(static_cast<unsigned>(tap ? -u : u), o.step_u)),
                 whole_v = static_cast<Offset>(
                     divide<false>(static_cast<unsigned>(tap ? -v : v), o.step_v));
      const Offset more =
          whole_u * static_cast<Offset>(o.stride_u) + whole_v * static_cast<Offset>(o.stride_v);
      at.offset += tap ? -more : more;
    }
    if constexpr (tap) {
      at.u = exists ? d1 : 31u;
      at.v = d2;
    } else if constexpr (role != Role::Plain) {
      at.u = exists ? window_mask<strided>(u, o.tap_step_u, o.taps_u, o.limit_u, o.step_u) : 0u;
      at.v = window_mask<strided>(v, o.tap_step_v, o.taps_v, o.limit_v, o.step_v);
    }
    return at;
  }
}

/// The position of an axis's index in a layout; `stride` is the layout's stride along the axis.
template <int digits, Role role, class Offset>
TENON_DEVICE Offset place_in(const GemmOperand& o, const GemmAxis& axis, const GemmLayout& layout,
                             const long long (&stride)[3], int index) {
  constexpr bool strided = role == Role::StridedPixel || role == Role::StridedTap;
  constexpr bool tap = role == Role::Tap || role == Role::StridedTap;
  if constexpr (digits == 1) {
    return static_cast<Offset>(index) * static_cast<Offset>(stride[0]);
  } else {
    unsigned d2 = static_cast<unsigned>(index);
    unsigned d1 = split<false>(d2, axis.size2);
    const unsigned d0 = split<false>(d1, axis.size1);
    Offset offset = static_cast<Offset>(d0) * static_cast<Offset>(stride[0]) +
                    static_cast<Offset>(d1) * static_cast<Offset>(stride[1]) +
                    static_cast<Offset>(d2) * static_cast<Offset>(stride[2]);
    if constexpr (strided) {
      const int u = axis.u0 + static_cast<int>(d1) * axis.u_step,
                v = axis.v0 + static_cast<int>(d2) * axis.v_step;
      const auto whole_u = static_cast<Offset>(
                     divide<false>(static_cast<unsigned>(tap ? -u : u), o.step_u)),
                 whole_v = static_cast<Offset>(
                     divide<false>(static_cast<unsigned>(tap ? -v : v), o.step_v));
      const Offset more = whole_u * static_cast<Offset>(layout.stride_u) +
                          whole_v * static_cast<Offset>(layout.stride_v);
      offset += tap ? -more : more;
    }
    return offset;
  }
}

template <class Memory, bool pairs>
struct Fetched {
  using type = Memory;
};
template <class Memory>
struct Fetched<Memory, true> {
  using type = unsigned;
};
/// The elements that fetch() holds until put().
template <class S, int kCount, bool computed = S::kComputed>
struct HeldOperand {
  typename Fetched<typename S::Memory, S::kPairs>::type element[S::kAsync ? 1 : kCount];
};
template <class S, int kCount>
struct HeldOperand<S, kCount, true> {
  typename S::Memory element[kCount][S::kVector];
  typename S::Prologue::template Held<S::kVector> further[kCount];
  unsigned inside;  // one bit per copy
  static_assert(kCount <= 32, "a bit for each copy");
};

/// S: the Side; a tile of kOuter x kDepth with kPad padding elements after each line.
template <class S, int kOuter, int kDepth, int kPad, int kThreads, class Offset>
class Stager {
 public:
  using Stored = typename S::Stored;
  static constexpr int kLine = S::kAlongK ? kDepth : kOuter, kLines = S::kAlongK ? kOuter : kDepth;
  static constexpr int kPitch = kLine + kPad;
  static constexpr int kElements = kLines * kPitch;
  static constexpr int kBytes = kElements * static_cast<int>(sizeof(Stored));
  /// Tables of positions that many threads need: of all lines, or of all k of this tile and the
  /// next.
  static constexpr bool kOuterTable = S::kAlongK && S::kOuterDigits > 1,
                        kInnerTable = !S::kAlongK && S::kInnerDigits > 1;
  static constexpr int kPlaces = kOuterTable ? kOuter : kInnerTable ? 2 * kDepth : 0;
  using Prologue = typename S::Prologue;
  static constexpr int kLayouts = Prologue::kLayouts;
  using Where = Place<Offset, kLayouts>;
  static constexpr int kTableBytes = kPlaces * static_cast<int>(sizeof(Where));

  /// `data`: the operand's first element in the block's batch; `bases`: the starts of the
  /// prologue's layouts for the batch. `table`: kTableBytes of shared memory; a barrier must
  /// follow. Indexes end at `outer_end` and `k_end`.
  TENON_DEVICE Stager(const GemmOperand& operand, const Prologue& prologue,
                      const typename S::Memory* data, const LayoutBases<kLayouts>& bases,
                      int outer0, int outer_end, int k_end, void* table)
      : o_(operand),
        prologue_(prologue),
        bases_(bases),
        data_(data),
        outer0_(outer0),
        outer_end_(outer_end),
        k_end_(k_end) {
    table_ = static_cast<Where*>(table);
    if constexpr (kOuterTable) {
      for (int i = static_cast<int>(threadIdx.x); i < kOuter; i += kThreads)
        table_[i] = outer(outer0 + i);
    }
    if constexpr (!S::kAlongK)
      if constexpr (kThreads % kAcross == 0) fixed_ = outer(outer0 + across(0));
  }

  /// Prepares the `number`th tile, at k0. A barrier must follow.
  TENON_DEVICE void prepare(int number, int k0) {
    if constexpr (kInnerTable) {
      const int i = static_cast<int>(threadIdx.x);
      if (i < kDepth) table_[number % 2 * kDepth + i] = inner(k0 + i);
    }
  }
  /// Selects that tile for the next calls. Called after the barrier.
  TENON_DEVICE void turn_to(int number) { turn_ = number % 2 * kDepth; }

  /// Starts the copies of the tile at k0.
  TENON_DEVICE void copy(Stored* tile, int k0) {
    if constexpr (S::kAsync)
      each(k0, [&](int, int position, bool inside, const typename S::Memory* from, const Offset*) {
        if constexpr (S::kVector * sizeof(Stored) == 16)
          copy_async_16(tile + position, from, inside);
        else
          copy_async_4(tile + position, from, inside);
      });
  }
  /// Loads the tile at k0 into registers.
  TENON_DEVICE void fetch(int k0) {
    if constexpr (S::kComputed) {
      held_.inside = 0;
      each(k0, [&](int i, int, bool inside, const typename S::Memory* from, const Offset* more) {
        if (!inside) return;
        held_.inside |= 1u << i;
        load_together(from, held_.element[i]);
        const auto own =
            static_cast<long long>(from - static_cast<const typename S::Memory*>(o_.data));
        held_.further[i] = prologue_.template hold<S::kVector>(own, more);
      });
    } else if constexpr (S::kPairs) {
      each(k0, [&](int i, int, bool inside, const typename S::Memory* from, const Offset*) {
        held_.element[i] = inside ? load_pair(from) : 0u;
      });
    } else if constexpr (!S::kAsync) {
      each(k0, [&](int i, int, bool inside, const typename S::Memory* from, const Offset*) {
        held_.element[i] = inside ? *from : typename S::Memory(0);
      });
    }
  }
  TENON_DEVICE void put(Stored* tile) {
    if constexpr (!S::kAsync) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (!counts(i)) continue;
        Stored* to = tile + down(i) * kPitch + across(i);
        if constexpr (S::kComputed) {
          float y[S::kVector] = {};
          if ((held_.inside >> i & 1u) != 0) prologue_.apply(held_.element[i], held_.further[i], y);
          Stored rounded[S::kVector];
#pragma unroll
          for (int e = 0; e < S::kVector; ++e)
            rounded[e] = convert<Kind::Float32, S::kStored>(y[e]);
          save_together(to, rounded);
        } else if constexpr (S::kPairs) {
          *reinterpret_cast<unsigned*>(to) = held_.element[i];
        } else {
          *to = convert<S::kMemory, S::kStored>(held_.element[i]);
        }
      }
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
  /// The first element of copy i along its line; line(i) is its line.
  static TENON_DEVICE int across(int i) {
    const int t = static_cast<int>(threadIdx.x);
    return (kThreads % kAcross == 0 ? t % kAcross : (t + i * kThreads) % kAcross) * S::kVector;
  }
  static TENON_DEVICE int down(int i) {
    const int t = static_cast<int>(threadIdx.x);
    return kThreads % kAcross == 0 ? t / kAcross + i * (kThreads / kAcross)
                                   : (t + i * kThreads) / kAcross;
  }

  static constexpr Role kOuterRole = S::kWindow == 0   ? Role::Plain
                                     : S::kWindow == 1 ? Role::Pixel
                                     : S::kWindow == 2 ? Role::Tap
                                                       : Role::StridedPixel;
  static constexpr Role kInnerRole = S::kWindow == 0   ? Role::Plain
                                     : S::kWindow == 1 ? Role::Tap
                                     : S::kWindow == 2 ? Role::Pixel
                                                       : Role::StridedTap;
  TENON_DEVICE Where outer(int index) const {
    const Place<Offset> own =
        place<S::kOuterDigits, kOuterRole, Offset>(o_, o_.outer, index, outer_end_);
    if constexpr (kLayouts == 0) {
      return own;
    } else {
      Where at{own.offset, own.u, own.v, {}};
#pragma unroll
      for (int j = 0; j < kLayouts; ++j)
        at.more[j] = place_in<S::kOuterDigits, kOuterRole, Offset>(
            o_, o_.outer, prologue_.layouts[j], prologue_.layouts[j].outer, index);
      return at;
    }
  }
  TENON_DEVICE Where inner(int k) const {
    const Place<Offset> own = place<S::kInnerDigits, kInnerRole, Offset>(o_, o_.inner, k, k_end_);
    if constexpr (kLayouts == 0) {
      return own;
    } else {
      Where at{own.offset, own.u, own.v, {}};
#pragma unroll
      for (int j = 0; j < kLayouts; ++j)
        at.more[j] = place_in<S::kInnerDigits, kInnerRole, Offset>(
            o_, o_.inner, prologue_.layouts[j], prologue_.layouts[j].inner, k);
      return at;
    }
  }
  static TENON_DEVICE bool meet(const Where& x, const Where& y) {
    if constexpr (S::kWindow == 0) return (x.u & y.u) != 0;
    const Where &pixel = S::kWindow == 2 ? y : x, &tap = S::kWindow == 2 ? x : y;
    return ((pixel.u >> tap.u) & (pixel.v >> tap.v) & 1u) != 0;
  }

  /// Calls f(i, position in the tile, inside, address, offsets in the prologue's layouts) for every
  /// copy of this thread. The address is valid only if inside. Either the line or the position
  /// along it is the same for all copies, and so is its part of the address.
  template <class F>
  TENON_DEVICE void each(int k0, F&& f) {
    constexpr bool one = kThreads % kAcross == 0;
    // In batches: a copy into shared memory must not come between the loads of positions, because
    // each load would then wait for the previous one.
    constexpr int kBatch = kCount < 8 ? kCount : 8;
    Where fixed = fixed_;
    if constexpr (one && S::kAlongK) fixed = inner(k0 + across(0));
    const typename S::Memory* base = data_ + fixed.offset;
#pragma unroll
    for (int first = 0; first < kCount; first += kBatch) {
      const typename S::Memory* from[kBatch];
      bool inside[kBatch];
      Offset more[kBatch][kLayouts > 0 ? kLayouts : 1];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int i = first + b;
        if (i >= kCount || !counts(i)) continue;
        if constexpr (!one) {
          fixed = S::kAlongK ? inner(k0 + across(i)) : outer(outer0_ + across(i));
          base = data_ + fixed.offset;
        }
        const Where other = line(i, k0);
        inside[b] = S::kAlongK ? meet(other, fixed) : meet(fixed, other);
        from[b] = base + other.offset;
        if constexpr (kLayouts > 0) {
#pragma unroll
          for (int j = 0; j < kLayouts; ++j)
            more[b][j] = static_cast<Offset>(bases_.of[j]) + fixed.more[j] + other.more[j];
        }
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int i = first + b;
        if (i < kCount && counts(i))
          f(i, down(i) * kPitch + across(i), inside[b], from[b], more[b]);
      }
    }
  }
  /// The position of the line of copy i.
  TENON_DEVICE Where line(int i, int k0) const {
    if constexpr (kOuterTable) return table_[down(i)];
    if constexpr (kInnerTable) return table_[turn_ + down(i)];
    return S::kAlongK ? outer(outer0_ + down(i)) : inner(k0 + down(i));
  }

  const GemmOperand& o_;
  const Prologue& prologue_;
  const LayoutBases<kLayouts> bases_;
  const typename S::Memory* data_;
  Where* table_;
  int turn_ = 0;
  int outer0_, outer_end_, k_end_;
  Where fixed_{};
  HeldOperand<S, kCount> held_;
};

}  // namespace tenon::cuda
