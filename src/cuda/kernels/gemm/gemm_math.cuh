// The arithmetic on a block's tile: float32 FMAs, or tensor cores in tf32, bfloat16 and float16.
//
// The threads form kGroups groups, each with its own accumulators for a tile. Group g takes every
// kGroups-th slice of k of each staged tile, so that a small result still employs many warps.
// write() stores the accumulators in shared memory as [m][kN + 8]; gemm.cuh adds the groups in
// order.
#pragma once

#include "cuda/kernels/gemm/gemm_stage.cuh"

namespace tenon::cuda {

enum class Math { Fp32, Tf32, Bf16, F16 };

template <int N>
struct alignas(4 * N) Floats {
  float v[N];
};

/// Element (outer, k) of a staged tile.
template <bool along_k, int pitch, class T>
TENON_DEVICE const T* staged(const T* tile, int outer, int k) {
  return along_k ? tile + outer * pitch + k : tile + k * pitch + outer;
}

/// FMA: kTM x kTN accumulators a thread.
template <class C, int kPitchA, int kPitchB>
class FmaTile {
 public:
  static constexpr int kThreadsM = C::kM / C::kThreadM, kThreadsN = C::kN / C::kThreadN;
  static constexpr int kGroupThreads = kThreadsM * kThreadsN;
  static constexpr int kStep = 4;

  TENON_DEVICE FmaTile() {
    const int t = static_cast<int>(threadIdx.x) % kGroupThreads;
    x_ = t % kThreadsN;
    y_ = t / kThreadsN;
  }

  TENON_DEVICE void multiply(const float* a, const float* b, int k) {
    float fa[C::kThreadM][4], fb[C::kThreadN][4];
    load<C::A::kAlongK, kPitchA, C::kThreadM, kThreadsM>(fa, a, y_, k);
    load<C::B::kAlongK, kPitchB, C::kThreadN, kThreadsN>(fb, b, x_, k);
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int m = 0; m < C::kThreadM; ++m)
#pragma unroll
        for (int n = 0; n < C::kThreadN; ++n)
          acc_[m][n] = scalar::fused(fa[m][j], fb[n][j], acc_[m][n]);
  }

  TENON_DEVICE void write(float* tile) const {
#pragma unroll
    for (int m = 0; m < C::kThreadM; ++m)
#pragma unroll
      for (int n = 0; n < C::kThreadN; ++n)
        tile[index<C::A::kAlongK, kThreadsM>(y_, m) * (C::kN + 8) +
             index<C::B::kAlongK, kThreadsN>(x_, n)] = acc_[m][n];
  }

 private:
  /// The outer index of a thread's accumulator i: neighbours, for 16-byte loads along the outer
  /// axis; interleaved where the loads run along k.
  template <bool along_k, int threads>
  static TENON_DEVICE int index(int thread, int i) {
    return along_k ? thread + i * threads : (i / 4 * threads + thread) * 4 + i % 4;
  }

  template <bool along_k, int pitch, int count, int threads>
  static TENON_DEVICE void load(float (&f)[count][4], const float* tile, int thread, int k) {
    if constexpr (along_k) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const Floats<4> x = *reinterpret_cast<const Floats<4>*>(
            staged<along_k, pitch>(tile, index<along_k, threads>(thread, i), k));
#pragma unroll
        for (int j = 0; j < 4; ++j) f[i][j] = x.v[j];
      }
    } else {
      static_assert(count % 4 == 0, "whole 16-byte loads");
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int i = 0; i < count; i += 4) {
          const Floats<4> x = *reinterpret_cast<const Floats<4>*>(
              staged<along_k, pitch>(tile, index<along_k, threads>(thread, i), k + j));
#pragma unroll
          for (int e = 0; e < 4; ++e) f[i + e][j] = x.v[e];
        }
    }
  }

  int x_, y_;
  float acc_[C::kThreadM][C::kThreadN] = {};
};

/// Tensor cores: kThreadM x kThreadN is the tile of a warp, both multiples of 16.
template <class C, int kPitchA, int kPitchB>
class MmaTile {
 public:
  static constexpr int kWarpsM = C::kM / C::kThreadM, kWarpsN = C::kN / C::kThreadN;
  static constexpr int kGroupThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kStep = C::kMath == Math::Tf32 ? 8 : 16;
  using StoredA = typename C::A::Stored;
  using StoredB = typename C::B::Stored;

  TENON_DEVICE MmaTile() {
    const int t = static_cast<int>(threadIdx.x) % kGroupThreads;
    lane_ = t % 32;
    m0_ = t / 32 / kWarpsN * C::kThreadM;
    n0_ = t / 32 % kWarpsN * C::kThreadN;
  }

  TENON_DEVICE void multiply(const StoredA* a, const StoredB* b, int k) {
    unsigned fb[kTilesN][2];
#pragma unroll
    for (int n = 0; n < kTilesN; n += 2) load_b(fb[n], fb[n + 1], b, n0_ + n * 8, k);
#pragma unroll
    for (int m = 0; m < kTilesM; ++m) {
      unsigned fa[4];
      load_a(fa, a, m0_ + m * 16, k);
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) {
        if constexpr (C::kMath == Math::Tf32)
          mma_tf32_m16n8k8(acc_[m][n], fa, fb[n]);
        else if constexpr (C::kMath == Math::Bf16)
          mma_bf16_m16n8k16(acc_[m][n], fa, fb[n]);
        else
          mma_f16_m16n8k16(acc_[m][n], fa, fb[n]);
      }
    }
  }

  TENON_DEVICE void write(float* tile) const {
#pragma unroll
    for (int m = 0; m < kTilesM; ++m)
#pragma unroll
      for (int n = 0; n < kTilesN; ++n)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = m0_ + m * 16 + h * 8 + lane_ / 4, column = n0_ + n * 8 + lane_ % 4 * 2;
          *reinterpret_cast<Floats<2>*>(tile + row * (C::kN + 8) + column) =
              Floats<2>{{acc_[m][n][2 * h], acc_[m][n][2 * h + 1]}};
        }
  }

 private:
  static constexpr int kTilesM = C::kThreadM / 16, kTilesN = C::kThreadN / 8;

  static TENON_DEVICE unsigned pack(float lo, float hi) {
    return C::kMath == Math::Bf16 ? pack_bf16(lo, hi) : pack_f16(lo, hi);
  }
  /// Elements k and k + 1 as a pair.
  template <bool along_k, int pitch>
  static TENON_DEVICE unsigned pair(const float* tile, int outer, int k) {
    if constexpr (along_k) {
      const Floats<2> x = *reinterpret_cast<const Floats<2>*>(staged<true, pitch>(tile, outer, k));
      return pack(x.v[0], x.v[1]);
    } else {
      return pack(*staged<false, pitch>(tile, outer, k), *staged<false, pitch>(tile, outer, k + 1));
    }
  }

  TENON_DEVICE void load_a(unsigned (&f)[4], const StoredA* tile, int m, int k) const {
    constexpr bool along_k = C::A::kAlongK;
    const int g = lane_ / 4, t = lane_ % 4;
    if constexpr (C::kMath == Math::Tf32) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        f[i] = to_tf32(*staged<along_k, kPitchA>(tile, m + g + i % 2 * 8, k + t + i / 2 * 4));
    } else if constexpr (C::A::kStored == Kind::Float32) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        f[i] = pair<along_k, kPitchA>(tile, m + g + i % 2 * 8, k + 2 * t + i / 2 * 8);
    } else if constexpr (along_k) {
      ldmatrix_x4(f, staged<true, kPitchA>(tile, m + lane_ % 16, k + lane_ / 16 * 8));
    } else {
      ldmatrix_x4_trans(
          f, staged<false, kPitchA>(tile, m + lane_ / 8 % 2 * 8, k + lane_ / 16 * 8 + lane_ % 8));
    }
  }

  /// Loads columns n to n + 7 and n + 8 to n + 15.
  TENON_DEVICE void load_b(unsigned (&f0)[2], unsigned (&f1)[2], const StoredB* tile, int n,
                           int k) const {
    constexpr bool along_k = C::B::kAlongK;
    const int g = lane_ / 4, t = lane_ % 4;
    if constexpr (C::kMath == Math::Tf32) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        f0[i] = to_tf32(*staged<along_k, kPitchB>(tile, n + g, k + t + i * 4));
        f1[i] = to_tf32(*staged<along_k, kPitchB>(tile, n + 8 + g, k + t + i * 4));
      }
    } else if constexpr (C::B::kStored == Kind::Float32) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        f0[i] = pair<along_k, kPitchB>(tile, n + g, k + 2 * t + i * 8);
        f1[i] = pair<along_k, kPitchB>(tile, n + 8 + g, k + 2 * t + i * 8);
      }
    } else {
      unsigned f[4];
      if constexpr (along_k)
        ldmatrix_x4(
            f, staged<true, kPitchB>(tile, n + lane_ / 16 * 8 + lane_ % 8, k + lane_ / 8 % 2 * 8));
      else
        ldmatrix_x4_trans(
            f, staged<false, kPitchB>(tile, n + lane_ / 16 * 8, k + lane_ / 8 % 2 * 8 + lane_ % 8));
      f0[0] = f[0], f0[1] = f[1], f1[0] = f[2], f1[1] = f[3];
    }
  }

  int lane_, m0_, n0_;
  float acc_[kTilesM][kTilesN][4] = {};
};

}  // namespace tenon::cuda
