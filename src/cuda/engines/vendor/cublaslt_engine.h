// The engine of NVIDIA's cuBLASLt for matrix products.
#pragma once

#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// Claims products of floating-point matrices whose strides the library can express, if the target
/// has the library. Deterministic algorithms only.
const Engine& cublaslt_engine(const Target& target);

}  // namespace tenon::cuda
