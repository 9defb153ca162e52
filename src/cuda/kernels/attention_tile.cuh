// Tiles of attention's operands in shared memory, and products of one by another, by tensor cores
// with float32 sums: of 16-bit elements, and of float32 ones as attention_float.cuh multiplies
// them.
//
// Of a type of elements T: Element, how one lies in memory; Left and Right, the operands of a
// product as a lane holds them, made by left() and right() from registers as loaded; Sums, which
// adds products to accumulators; kRoundsTiles: tiles are rounded where they lie, once for all that
// read them; kRows, kGradientRows: of the other side's tiles, forward and in the backward kernels.
#pragma once

#include "cuda/kernels/attention_args.cuh"
#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

/// Products added by the tensor cores to the sums themselves.
template <class T, int tiles>
struct AttentionDirectSums {
  float (&d)[tiles][4];

  template <bool permuted>
  TENON_DEVICE void add(int n, const typename T::Left& a, const typename T::Right& b) {
    T::multiply(d[n], a.bits, b.bits);
  }
  TENON_DEVICE void finish() const {}
};

/// What the tensor cores take at once of a left and of a right operand.
struct AttentionLeft {
  unsigned bits[4];
};
struct AttentionRight {
  unsigned bits[2];
};

struct Attention16 {
  using Element = unsigned short;
  static constexpr bool kRoundsTiles = false;
  static constexpr int kRows = 64, kGradientRows = 64;
  using Left = AttentionLeft;
  using Right = AttentionRight;
  static TENON_DEVICE Left left(unsigned a, unsigned b, unsigned c, unsigned d) {
    return {{a, b, c, d}};
  }
  static TENON_DEVICE Right right(unsigned first, unsigned second) { return {{first, second}}; }
};
struct AttentionBf16 : Attention16 {
  template <int tiles>
  using Sums = AttentionDirectSums<AttentionBf16, tiles>;
  static TENON_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_bf16_m16n8k16(d, a, b);
  }
  static TENON_DEVICE unsigned pack(float lo, float hi) { return pack_bf16(lo, hi); }
  static TENON_DEVICE float wide(unsigned short x) { return bf16_to_float(x); }
};
struct AttentionF16 : Attention16 {
  template <int tiles>
  using Sums = AttentionDirectSums<AttentionF16, tiles>;
  static TENON_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_f16_m16n8k16(d, a, b);
  }
  static TENON_DEVICE unsigned pack(float lo, float hi) { return pack_f16(lo, hi); }
  static TENON_DEVICE float wide(unsigned short x) { return f16_to_float(x); }
};

template <class T>
constexpr bool kIs16Bit = sizeof(typename T::Element) == 2;

/// A tile in shared memory, row by row: fragments load without bank conflicts. Rows are 16 bytes
/// apart, which copies leave alone: beside().
template <class T, int rows, int cols>
struct AttentionTile {
  using Type = T;
  using Element = typename T::Element;
  static constexpr int kRows = rows, kCols = cols;
  static constexpr int kChunk = 16 / sizeof(Element);  // elements of 16 bytes
  static constexpr int kStep = 2 * kChunk;             // of the reduction in one product
  static constexpr int kPitch = cols + kChunk;
  static constexpr int kElements = rows * kPitch;
  Element* at;

  /// Rows [0, left) of `real` elements each; zeros beyond.
  template <int real>
  TENON_DEVICE void stage(const Element* from, long long stride, long long left) const {
    constexpr int kChunks = cols / kChunk;
    for (int c = static_cast<int>(threadIdx.x); c < rows * kChunks; c += kAttentionThreads) {
      const int r = c / kChunks, e = c % kChunks * kChunk;
      const bool inside = r < left && e < real;
      copy_async_16(at + r * kPitch + e, inside ? from + r * stride + e : from, inside);
    }
  }
  /// What this thread has staged, rounded to what is multiplied; its copies have come.
  TENON_DEVICE void round() const {
    if constexpr (T::kRoundsTiles) {
      constexpr int kChunks = cols / kChunk;
      for (int c = static_cast<int>(threadIdx.x); c < rows * kChunks; c += kAttentionThreads)
        T::round(at + c / kChunks * kPitch + c % kChunks * kChunk);
    }
  }
  /// Two numbers that go with a row.
  TENON_DEVICE float* beside(int row) const {
    return reinterpret_cast<float*>(at + row * kPitch + cols);
  }
  /// Rows row0.. as the left operand, a step of the reduction from k0.
  TENON_DEVICE typename T::Left load_left(int row0, int k0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned a[4];
    ldmatrix_x4(a, at + (row0 + lane % 16) * kPitch + k0 + lane / 16 * kChunk);
    return T::left(a[0], a[1], a[2], a[3]);
  }
  /// Rows n0.. as 16 columns of the right operand, whose reduction runs along the rows.
  TENON_DEVICE void load_columns(unsigned (&b)[4], int n0, int k0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, i = lane / 8;
    ldmatrix_x4(b, at + (n0 + i / 2 * 8 + lane % 8) * kPitch + k0 + i % 2 * kChunk);
  }
  /// 16-bit elements: rows k0.. as 16 steps of the reduction, columns n0...
  TENON_DEVICE void load_steps(unsigned (&b)[4], int k0, int n0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, i = lane / 8;
    ldmatrix_x4_trans(b, at + (k0 + i % 2 * 8 + lane % 8) * kPitch + n0 + i / 2 * 8);
  }
};

template <int tiles>
TENON_DEVICE void clear(float (&x)[tiles][4]) {
#pragma unroll
  for (int n = 0; n < tiles; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) x[n][e] = 0.0f;
}

/// d[n / 8] += left (16 rows from row0) times the columns that are the right tile's rows.
/// `permuted`: each sum has the bits that it has with the tiles in each other's place.
template <int columns, bool permuted = false, class Left, class Right>
TENON_DEVICE void multiply_rows(float (&d)[columns / 8][4], const Left& left, int row0,
                                const Right& right) {
  using T = typename Left::Type;
  typename T::template Sums<columns / 8> sums{d};
#pragma unroll
  for (int k = 0; k < Left::kCols; k += Left::kStep) {
    const typename T::Left a = left.load_left(row0, k);
#pragma unroll
    for (int n = 0; n < columns; n += 16) {
      unsigned b[4];
      right.load_columns(b, n, k);
      sums.template add<permuted>(n / 8, a, T::right(b[0], b[1]));
      sums.template add<permuted>(n / 8 + 1, a, T::right(b[2], b[3]));
    }
  }
  sums.finish();
}

/// What multiplies a tile of 16-bit elements whose rows are summed over, 16 of them from k: the
/// sums' columns are the tile's.
template <class T, class Right>
TENON_DEVICE void multiply_steps(float (&d)[Right::kCols / 8][4], const unsigned (&a)[4],
                                 const Right& right, int k) {
#pragma unroll
  for (int n = 0; n < Right::kCols; n += 16) {
    unsigned b[4];
    right.load_steps(b, k, n);
    const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
    T::multiply(d[n / 8], a, first);
    T::multiply(d[n / 8 + 1], a, second);
  }
}

/// d += p (16 rows, one column for each row of the right tile) times the right tile. Of float32
/// elements see attention_float.cuh.
template <int inner, class Right, class T = typename Right::Type>
TENON_DEVICE void multiply_weights(float (&d)[Right::kCols / 8][4], const float (&p)[inner / 8][4],
                                   const Right& right) {
  if constexpr (kIs16Bit<T>) {
#pragma unroll
    for (int k = 0; k < inner; k += 16) {
      const float(&low)[4] = p[k / 8], (&high)[4] = p[k / 8 + 1];
      const unsigned a[4] = {T::pack(low[0], low[1]), T::pack(low[2], low[3]),
                             T::pack(high[0], high[1]), T::pack(high[2], high[3])};
      multiply_steps<T>(d, a, right, k);
    }
  } else {
    T::template multiply_weights<T, inner>(d, p, right);
  }
}

/// Two neighbours in a row of a tile or of a result of 16 bits, rounded to what tiles keep.
template <class T>
TENON_DEVICE void store_pair(typename T::Element* to, float x, float y) {
  if constexpr (kIs16Bit<T>)
    *reinterpret_cast<unsigned*>(to) = T::pack(x, y);
  else
    T::template store_pair<T>(to, x, y);
}

template <class T>
TENON_DEVICE const typename T::Element* head_of(const AttentionOperand& x, long long b,
                                                long long h) {
  return static_cast<const typename T::Element*>(x.data) + b * x.stride[0] + h * x.stride[2];
}

/// Rows row0 + g and row0 + g + 8 of a warp's 16 x cols results, to head h of batch b.
template <class T, int tiles>
TENON_DEVICE void store_rows(const AttentionResult& out, const float (&x)[tiles][4], long long b,
                             long long h, long long row0, long long rows, int real) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const long long row = row0 + g + 8 * half;
    if (row >= rows) continue;
    typename T::Element* to = static_cast<typename T::Element*>(out.data) + b * out.stride[0] +
                              row * out.stride[1] + h * out.stride[2];
    if constexpr (kIs16Bit<T>) {
#pragma unroll
      for (int n = 0; n < tiles; ++n) {
        const int e = n * 8 + 2 * t;
        if (e < real) store_pair<T>(to + e, x[n][2 * half], x[n][2 * half + 1]);
      }
    } else {
      T::store_row(to, x, half, real);
    }
  }
}

}  // namespace tenon::cuda
