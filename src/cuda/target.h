// Target: the GPU that device kernels are made for. Plain data, so that plans and sources can be
// made and tested without a GPU.
#pragma once

#include <cstdint>

#include "device/gpu_model.h"

namespace tenon::cuda {

struct Target {
  bool operator==(const Target&) const = default;

  int ordinal = -1;  // the GPU; -1: none, kernels are printed and never compiled or run
  int arch = 90;     // ten times the compute capability: 80, 90, 100, …
  int multiprocessors = GpuModel().multiprocessors;
  std::int64_t shared_bytes = 227 * 1024;  // shared memory that one block may ask for
  std::int64_t memory_bytes = 0;           // of the GPU; 0: unknown
  int launch_bytes = 32764;                // of arguments that a launch may take
  // The model that choices depend on: the GPU's own or, if kernels cannot be compiled, that of the
  // GPU that the library's built-in kernels were compiled for.
  GpuModel model;
  bool cublaslt = false;  // vendor libraries that were found
  bool cudnn = false;
};

}  // namespace tenon::cuda
