// The engines of the CUDA backend, in the order in which they are asked.
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/cuda.h"
#include "cuda/engines/contraction_engine.h"
#include "cuda/engines/cublaslt_engine.h"
#include "cuda/engines/cudnn_engine.h"
#include "cuda/engines/map_engine.h"
#include "cuda/engines/opaque_engine.h"
#include "cuda/engines/wgmma_engine.h"

namespace tenon::cuda {

std::span<const Engine* const> engines(const Target& target) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, std::vector<const Engine*>> lists;
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<const Engine*>& list = lists[{target.ordinal, target.arch}];
  if (list.empty())
    list = {&wgmma_engine(target),    &native_contraction_engine(target),
            &cublaslt_engine(target), &cudnn_engine(target),
            &map_engine(target),      &opaque_engine(target)};
  return list;
}

}  // namespace tenon::cuda
