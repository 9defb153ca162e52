// Whether the tests have a GPU, real or emulated.
#pragma once

#include <doctest/doctest.h>

#include "cuda/cuda.h"

namespace tenon::test {

/// True if there is a GPU; reports if there is none.
inline bool has_gpu() {
  if (cuda::gpu_count() > 0) return true;
  MESSAGE("skipped: no GPU");
  return false;
}

}  // namespace tenon::test
