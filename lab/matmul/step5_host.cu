// Host side of step 5: choice of tiles, launch.
#include "step5_host.h"

#include <algorithm>
#include <iterator>

#include "step5_wgmma.cuh"
#include "tensor_map.h"

namespace lab {
namespace {

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
    {"128x256 4 stages cluster 2 band 8", 256, 4, 2, true, 8},
    {"128x128 6 stages cluster 2 band 8", 128, 6, 2, true, 8},
    {"128x64 8 stages no cluster band 16", 64, 8, 1, true, 16},
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
