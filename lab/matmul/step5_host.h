// Host side of step 5: tensor maps, choice of tiles, launch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace lab {

struct WgmmaChoice {
  const char* name;
  int tile_n, stages, cluster;
  bool trans_b;
  int band;
};

/// The choices that can be measured, and the one for a size: the widest tile that still gives every
/// multiprocessor work.
const WgmmaChoice* wgmma_choices(int* count);
const WgmmaChoice& wgmma_choice_for(int m, int n, bool trans_b);

/// C[m, n] = A[m, k] · B[k, n], or B stored [n, k] if the choice says so. False if the driver
/// refuses a tensor map or the launch.
bool run_wgmma(const WgmmaChoice& choice, const __nv_bfloat16* a, const __nv_bfloat16* b,
               __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream);

}  // namespace lab
