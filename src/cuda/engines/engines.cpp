// The engines of the CUDA backend, in the order in which the planner asks them.
#include <vector>

#include "cuda/cuda.h"
#include "cuda/engines/convolutions/conv_engine.h"
#include "cuda/engines/convolutions/image_engine.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/maps/fill_engine.h"
#include "cuda/engines/maps/map_engine.h"
#include "cuda/engines/opaque/opaque_engine.h"
#include "cuda/engines/products/bf16x6_engine.h"
#include "cuda/engines/products/native_engine.h"
#include "cuda/engines/products/simt_engine.h"
#include "cuda/engines/products/wgmma_engine.h"
#include "cuda/engines/vendor/cublaslt_engine.h"
#include "cuda/engines/vendor/cudnn_engine.h"
#include "plan/steps/loop_engine.h"

namespace tenon::cuda {
namespace {

struct EngineList {
  explicit EngineList(const Target& target)
      : engines{
            &wgmma_engine(target),    &bf16x6_engine(target), &simt_engine(target),
            &conv_engine(target),     &image_engine(target),  &native_contraction_engine(target),
            &cublaslt_engine(target), &cudnn_engine(target),  &fill_engine(target),
            &map_engine(target),      &opaque_engine(target), &loop_engine()} {}
  std::vector<const Engine*> engines;
};

}  // namespace

std::span<const Engine* const> engines(const Target& target) {
  return per_target<EngineList>(target).engines;
}

}  // namespace tenon::cuda
