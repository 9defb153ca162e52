// Host side of step 5: tensor maps, choice of tiles, launch. cuTensorMapEncodeTiled is asked of the
// driver through the runtime, so that nothing links to libcuda.
#include "step5_host.h"

#include <algorithm>
#include <iterator>

#include "step5_wgmma.cuh"

namespace lab {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode encoder() {
  static const Encode found = [] {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address,
                                                                12000, cudaEnableDefault, &result);
    const bool good = status == cudaSuccess && result == cudaDriverEntryPointSuccess;
    return good ? reinterpret_cast<Encode>(address) : nullptr;
  }();
  return found;
}

/// A row-major matrix in boxes of box_rows rows of 64 elements (128 bytes, swizzled).
bool make_map(CUtensorMap* map, const bf16* base, int rows, int columns, int box_rows) {
  const cuuint64_t extent[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * sizeof(bf16)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows)}, step[] = {1, 1};
  return encoder() != nullptr &&
         encoder()(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<bf16*>(base), extent, pitch,
                   box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

int multiprocessors() {
  static const int count = [] {
    int device = 0, found = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, device);
    return found;
  }();
  return count;
}

template <class Tiles>
bool launch(const WgmmaChoice& choice, const bf16* a, const bf16* b, bf16* c, int m, int n, int k,
            cudaStream_t stream) {
  WgmmaProblem p;
  p.m = m, p.n = n, p.k = k, p.band = choice.band;
  const bool mapped =
      (Tiles::kTransA ? make_map(&p.a, a, k, m, 64) : make_map(&p.a, a, m, k, Tiles::kM)) &&
      (Tiles::kTransB ? make_map(&p.b, b, n, k, Tiles::kN / Tiles::kCluster)
                      : make_map(&p.b, b, k, n, 64)) &&
      make_map(&p.c, c, m, n, 64);
  if (!mapped) return false;
  const auto kernel = wgmma_kernel<Tiles>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tiles::kShared);
  const int height = Tiles::kM * Tiles::kCluster;
  const int tiles = (m + height - 1) / height * ((n + Tiles::kN - 1) / Tiles::kN);
  const int clusters = std::min(tiles, multiprocessors() / Tiles::kCluster);
  kernel<<<clusters * Tiles::kCluster, 384, Tiles::kShared, stream>>>(p);
  return cudaPeekAtLastError() == cudaSuccess;
}

constexpr WgmmaChoice kChoices[] = {
    {"128x256 4 stages cluster 2 band 8", 256, 4, 2, false, 8},
    {"128x256 4 stages cluster 2 band 4", 256, 4, 2, false, 4},
    {"128x256 4 stages cluster 2 band 16", 256, 4, 2, false, 16},
    {"128x256 3 stages cluster 2 band 8", 256, 3, 2, false, 8},
    {"128x256 4 stages no cluster band 16", 256, 4, 1, false, 16},
    {"128x128 6 stages cluster 2 band 8", 128, 6, 2, false, 8},
    {"128x128 6 stages no cluster band 16", 128, 6, 1, false, 16},
    {"128x64 8 stages no cluster band 16", 64, 8, 1, false, 16},
    {"128x256 4 stages cluster 2 band 8, B as [n, k]", 256, 4, 2, true, 8},
    {"128x128 6 stages cluster 2 band 8, B as [n, k]", 128, 6, 2, true, 8},
    {"128x64 8 stages no cluster band 16, B as [n, k]", 64, 8, 1, true, 16},
};

}  // namespace

const WgmmaChoice* wgmma_choices(int* count) {
  *count = static_cast<int>(std::size(kChoices));
  return kChoices;
}

const WgmmaChoice& wgmma_choice_for(int m, int n, bool trans_b) {
  const auto tiles = [&](int width) { return (m + 127) / 128 * ((n + width - 1) / width); };
  const int enough = multiprocessors();
  if (tiles(256) >= enough) return kChoices[trans_b ? 8 : 0];
  if (tiles(128) >= enough) return kChoices[trans_b ? 9 : 5];
  return kChoices[trans_b ? 10 : 7];
}

bool run_wgmma(const WgmmaChoice& choice, const bf16* a, const bf16* b, bf16* c, int m, int n,
               int k, cudaStream_t stream) {
  const auto is = [&](int tile_n, int stages, int cluster) {
    return choice.tile_n == tile_n && choice.stages == stages && choice.cluster == cluster;
  };
#define LAB_TRY(TILE_N, STAGES, CLUSTER, TRANS_B)                                                \
  if (is(TILE_N, STAGES, CLUSTER) && choice.trans_b == TRANS_B) {                                \
    return launch<WgmmaTiles<TILE_N, STAGES, CLUSTER, false, TRANS_B>>(choice, a, b, c, m, n, k, \
                                                                       stream);                  \
  }
  LAB_TRY(256, 4, 2, false)
  LAB_TRY(256, 3, 2, false)
  LAB_TRY(256, 4, 1, false)
  LAB_TRY(128, 6, 2, false)
  LAB_TRY(128, 6, 1, false)
  LAB_TRY(64, 8, 1, false)
  LAB_TRY(256, 4, 2, true)
  LAB_TRY(128, 6, 2, true)
  LAB_TRY(64, 8, 1, true)
#undef LAB_TRY
  return false;
}

}  // namespace lab
