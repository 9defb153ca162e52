// Tensor maps for TMA, made by the driver through the runtime, so that nothing links to libcuda.
#pragma once

#include <cuda_bf16.h>

namespace lab {

/// A row-major matrix in boxes of box_rows rows of 64 elements (128 bytes, swizzled); `map` is a
/// CUtensorMap. False when the driver refuses.
bool make_map(void* map, const __nv_bfloat16* base, int rows, int columns, int box_rows);

/// Number of multiprocessors of the current GPU.
int multiprocessors();

}  // namespace lab
