// Step 4: tensor cores by mma.sync. Eight warps compute a 128 x 256 tile of C, each a 64 x 64 part
// as 4 x 8 products of m16n8k16. cp.async copies tiles of depth 64 into a ring of stages without
// registers. ldmatrix loads fragments sixteen steps of k ahead of the products, so that reading and
// multiplying overlap.
//
// A row of A's tile is 128 bytes and of B's 512. A 16-byte chunk is stored at chunk XOR row, so
// that the eight rows that ldmatrix reads at a time are in different banks. k and n must be
// multiples of 8; any m. Layouts as in step 1, bfloat16 in and out, float sums. Runs from sm_80 on.
// On Hopper mma.sync does not reach the tensor cores' rate, hence step 5.
#pragma once

#include "element.cuh"
#include "ptx.cuh"

namespace lab {

struct MmaTiles {
  static constexpr int kM = 128, kN = 256, kK = 64, kStages = 4;
  static constexpr int kBytesA = kM * kK * 2, kBytesB = kK * kN * 2;
  static constexpr int kShared = kStages * (kBytesA + kBytesB);

  /// Byte offsets of the 16-byte chunk (row, chunk) in a tile.
  __device__ static int offset_a(int row, int chunk) {
    return row * (kK * 2) + ((chunk ^ (row & 7)) << 4);
  }
  __device__ static int offset_b(int row, int chunk) {
    return row * (kN * 2) + ((chunk ^ (row & 7)) << 4);
  }
};

__global__ void __launch_bounds__(256, 1)
    mma_kernel(const bf16* a, const bf16* b, bf16* c, int m, int n, int k) {
  using Tiles = MmaTiles;
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned base_a = shared_address(shared);
  const unsigned base_b = base_a + Tiles::kStages * Tiles::kBytesA;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int warp_m = warp / 4 * 64, warp_n = warp % 4 * 64;
  const long long row0 = static_cast<long long>(blockIdx.y) * Tiles::kM;
  const long long column0 = static_cast<long long>(blockIdx.x) * Tiles::kN;
  const int tiles = (k + Tiles::kK - 1) / Tiles::kK;

  // A thread copies four chunks of A, 32 rows apart, and eight of B, eight rows apart.
  const int a_row = thread / 8, a_chunk = thread % 8, b_row = thread / 32, b_chunk = thread % 32;
  const bf16* from_a = a + (row0 + a_row) * k + a_chunk * 8;
  const bf16* from_b = b + static_cast<long long>(b_row) * n + column0 + b_chunk * 8;
  const long long a_stride = 32ll * k, b_stride = 8ll * n;
  const int rows_left = static_cast<int>(m - row0) - a_row;
  const bool column_inside = column0 + b_chunk * 8 < n;
  const unsigned to_a = base_a + Tiles::offset_a(a_row, a_chunk);  // rows 8 apart swizzle alike
  const unsigned to_b = base_b + Tiles::offset_b(b_row, b_chunk);
  const auto fetch = [&](int tile) {
    const int stage = tile % Tiles::kStages, left = k - tile * Tiles::kK;
    if (left > 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool inside = i * 32 < rows_left && a_chunk * 8 < left;
        copy_async_16(to_a + stage * Tiles::kBytesA + i * 32 * Tiles::kK * 2,
                      inside ? from_a + i * a_stride : a, inside);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const bool inside = column_inside && b_row + i * 8 < left;
        copy_async_16(to_b + stage * Tiles::kBytesB + i * 8 * Tiles::kN * 2,
                      inside ? from_b + i * b_stride : b, inside);
      }
      from_a += Tiles::kK;
      from_b += b_stride * (Tiles::kK / 8);
    }
    copy_async_commit();  // an empty group keeps the count of groups right at the end
  };

  unsigned part_a[2][4][4], part_b[2][4][4];  // one is multiplied while the other is read
  const auto read = [&](int which, int stage, int step) {
    const unsigned tile_a = base_a + stage * Tiles::kBytesA;
    const unsigned tile_b = base_b + stage * Tiles::kBytesB;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = warp_m + i * 16 + lane % 16;
      ldmatrix_x4(part_a[which][i], tile_a + Tiles::offset_a(row, step * 2 + lane / 16));
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = step * 16 + lane % 16, chunk = warp_n / 8 + j * 2 + lane / 16;
      ldmatrix_x4_trans(part_b[which][j], tile_b + Tiles::offset_b(row, chunk));
    }
  };

  constexpr int kSteps = Tiles::kK / 16;
  float sum[4][8][4] = {};
  for (int i = 0; i < Tiles::kStages - 1; ++i) fetch(i);
  copy_async_wait<Tiles::kStages - 2>();
  __syncthreads();
  read(0, 0, 0);
  for (int tile = 0; tile < tiles; ++tile) {
    fetch(tile + Tiles::kStages - 1);  // overwrites a tile that no thread reads any more
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) {
        read((step + 1) % 2, tile % Tiles::kStages, step + 1);
      } else {
        copy_async_wait<Tiles::kStages - 2>();
        __syncthreads();  // the next tile has arrived, and all threads have read this one
        read(0, (tile + 1) % Tiles::kStages, 0);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const unsigned(&right)[4] = part_b[step % 2][j / 2];
          mma_m16n8k16(sum[i][j], part_a[step % 2][i], right[j % 2 * 2], right[j % 2 * 2 + 1]);
        }
      }
    }
  }
  copy_async_wait<0>();

#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const long long row = row0 + warp_m + i * 16 + half * 8 + lane / 4;
        const long long column = column0 + warp_n + j * 8 + lane % 4 * 2;
        if (row < m && column < n) {
          *reinterpret_cast<__nv_bfloat162*>(c + row * n + column) =
              __floats2bfloat162_rn(sum[i][j][half * 2], sum[i][j][half * 2 + 1]);
        }
      }
    }
  }
}

inline void run_mma(const bf16* a, const bf16* b, bf16* c, int m, int n, int k,
                    cudaStream_t stream) {
  const dim3 grid((n + MmaTiles::kN - 1) / MmaTiles::kN, (m + MmaTiles::kM - 1) / MmaTiles::kM);
  cudaFuncSetAttribute(mma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MmaTiles::kShared);
  mma_kernel<<<grid, 256, MmaTiles::kShared, stream>>>(a, b, c, m, n, k);
}

}  // namespace lab
