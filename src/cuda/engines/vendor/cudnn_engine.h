// The engine of NVIDIA's cuDNN for convolutions and their gradients.
#pragma once

#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// Claims convolutions of floating images, where the target has the library. Deterministic plans
/// only; prepare() throws NotSupported where the library has none.
const Engine& cudnn_engine(const Target& target);

}  // namespace tenon::cuda
