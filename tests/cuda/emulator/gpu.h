// The emulated GPUs: settings, memory with guard zones, error texts. No streams and no kernels.
//
// Settings are environment variables, read at every call, so that a test can change them:
//   TENON_FAKE_CUDA_GPUS        number of GPUs (2)
//   TENON_FAKE_CUDA_CAPABILITY  ten times the compute capability (90)
//   TENON_FAKE_CUDA_MEMORY      MiB of memory of each GPU (16384; allocated when it is used)
//   TENON_FAKE_CUDA_DRIVER      version of the driver (13000)
//   TENON_FAKE_CUDA_FAIL        "cuMemAlloc_v2:3:2": the third call of that function from now on
//                               returns error 2
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "cuda/device/opening/driver_api.h"

namespace tenon_emulator {

using tenon::cuda::CUresult;

constexpr int gpu_limit = 16;

int setting(const char* variable, int otherwise);
/// The error that TENON_FAKE_CUDA_FAIL asks for at this call, or success.
CUresult injected(const char* function);

/// Remembers what happened, for cuGetErrorString, and returns `result`.
CUresult fail(CUresult result, const std::string& what);
const std::string& last_failure();

struct Range {
  std::size_t bytes = 0;
  int gpu = -1;              // -1: page-locked host memory
  std::uint64_t number = 0;  // of the allocation, counted from 1
};

/// Allocations by address. GPU memory is filled with NaN bytes and has guard zones on both sides.
class Memory {
 public:
  /// Null if the GPU has too little free memory.
  void* allocate(std::size_t bytes, int gpu);
  void* allocate_host(std::size_t bytes);
  CUresult release(void* memory, bool host);
  std::size_t used(int gpu) const;
  /// The allocation that contains [memory, memory + bytes), or null.
  const Range* find(const void* memory, std::size_t bytes) const;
  /// Fails with the name of `culprit` when a guard zone was written to, and restores it.
  CUresult check_guards(const std::string& culprit);

 private:
  std::map<std::uintptr_t, Range> ranges_;
  std::uint64_t allocations_ = 0;
};

Memory& memory();

}  // namespace tenon_emulator
