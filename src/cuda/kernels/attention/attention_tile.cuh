// Tiles of attention's operands in shared memory, and their products on tensor cores with float32
// sums. Elements are 16-bit, or float32 (attention_float.cuh).
//
// A type T of elements defines:
// - Element: the element as stored in memory.
// - Left, Right: the operands of a product in a lane's registers; left() and right() make them from
//   loaded registers.
// - Sums: adds products to accumulators.
// - kRoundsTiles: tiles are rounded in place, once for all readers.
// - kRows, kGradientRows: rows of a tile of the other side, forward and in the backward kernels.
#pragma once

#include "cuda/kernels/attention/attention_args.cuh"
#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

/// Tensor cores add the products directly to the accumulators.
template <class T, int tiles>
struct AttentionDirectSums {
  float (&d)[tiles][4];

  template <bool permuted>
  TENON_DEVICE void add(int n, const typename T::Left& a, const typename T::Right& b) {
    T::multiply(d[n], a.bits, b.bits);
  }
  TENON_DEVICE void finish() const {}
};

/// A left and a right operand of one tensor-core instruction.
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

/// A row-major tile in shared memory. Rows are padded by 16 bytes, so fragment loads have no bank
/// conflicts. Copies do not write the padding; beside() uses it.
template <class T, int rows, int cols>
struct AttentionTile {
  using Type = T;
  using Element = typename T::Element;
  static constexpr int kRows = rows, kCols = cols;
  static constexpr int kChunk = 16 / sizeof(Element);  // elements in 16 bytes
  static constexpr int kStep = 2 * kChunk;             // reduction length of one product
  static constexpr int kPitch = cols + kChunk;
  static constexpr int kElements = rows * kPitch;
  Element* at;

  /// Copies rows [0, left) of `real` elements each; everything beyond is zero.
  template <int real>
  TENON_DEVICE void stage(const Element* from, long long stride, long long left) const {
    constexpr int kChunks = cols / kChunk;
    for (int c = static_cast<int>(threadIdx.x); c < rows * kChunks; c += kAttentionThreads) {
      const int r = c / kChunks, e = c % kChunks * kChunk;
      const bool inside = r < left && e < real;
      copy_async_16(at + r * kPitch + e, inside ? from + r * stride + e : from, inside);
    }
  }
  /// Rounds the elements that this thread has staged to the operand's precision. Its copies have
  /// arrived.
  TENON_DEVICE void round() const {
    if constexpr (T::kRoundsTiles) {
      constexpr int kChunks = cols / kChunk;
      for (int c = static_cast<int>(threadIdx.x); c < rows * kChunks; c += kAttentionThreads)
        T::round(at + c / kChunks * kPitch + c % kChunks * kChunk);
    }
  }
  /// Two floats stored with a row, in its padding.
  TENON_DEVICE float* beside(int row) const {
    return reinterpret_cast<float*>(at + row * kPitch + cols);
  }
  /// The rows from row0 on as the left operand, one reduction step from k0.
  TENON_DEVICE typename T::Left load_left(int row0, int k0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned a[4];
    ldmatrix_x4(a, at + (row0 + lane % 16) * kPitch + k0 + lane / 16 * kChunk);
    return T::left(a[0], a[1], a[2], a[3]);
  }
  /// The rows from n0 on as 16 columns of the right operand; the reduction runs along the rows.
  TENON_DEVICE void load_columns(unsigned (&b)[4], int n0, int k0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, i = lane / 8;
    ldmatrix_x4(b, at + (n0 + i / 2 * 8 + lane % 8) * kPitch + k0 + i % 2 * kChunk);
  }
  /// 16-bit elements: the rows from k0 on as 16 reduction steps, the columns from n0 on.
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

/// d[n / 8] += left (16 rows from row0) · rightᵀ. `permuted`: each sum has the same bits as with
/// the two tiles exchanged.
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

/// The right operand for a reduction over the rows of a tile of 16-bit elements, 16 rows from k on.
/// The columns of the result are the columns of the tile.
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

/// d += p · right tile; p has 16 rows and one column for each row of the right tile. For float32
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

/// Two neighbouring elements of a row of a 16-bit tile or result, rounded to the tile's type.
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

/// Stores rows row0 + g and row0 + g + 8 of a warp's 16 x cols results to head h of batch b.
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
