// The engine of NVIDIA's cuDNN for convolutions and their gradients.
#pragma once

#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// Claims convolutions of floating-point feature maps, if the target has the library. Deterministic
/// plans only; prepare() throws NotSupported if the library has none.
const Engine& cudnn_engine(const Target& target);

}  // namespace tenon::cuda
