// The engines of the CUDA backend, in the order in which they are asked.
#include <vector>

#include "cuda/cuda.h"
#include "cuda/engines/contraction_engine.h"
#include "cuda/engines/conv_engine.h"
#include "cuda/engines/cublaslt_engine.h"
#include "cuda/engines/cudnn_engine.h"
#include "cuda/engines/fill_engine.h"
#include "cuda/engines/map_engine.h"
#include "cuda/engines/opaque_engine.h"
#include "cuda/engines/per_target.h"
#include "cuda/engines/simt_engine.h"
#include "cuda/engines/wgmma_engine.h"

namespace tenon::cuda {
namespace {

struct EngineList {
  explicit EngineList(const Target& target)
      : engines{&wgmma_engine(target),    &simt_engine(target),
                &conv_engine(target),     &native_contraction_engine(target),
                &cublaslt_engine(target), &cudnn_engine(target),
                &fill_engine(target),     &map_engine(target),
                &opaque_engine(target)} {}
  std::vector<const Engine*> engines;
};

}  // namespace

std::span<const Engine* const> engines(const Target& target) {
  return per_target<EngineList>(target).engines;
}

}  // namespace tenon::cuda
