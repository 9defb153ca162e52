// The harness's interface to the steps of the ladder, and its measurements.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

#include "vendor.h"

namespace lab {

/// One way to multiply. run() queues C = A · B on the stream.
struct Way {
  std::string name;
  bool trans_a = false, trans_b = false;  // how it expects the operands
  std::function<bool(const void* a, const void* b, void* c, cudaStream_t stream)> run;
};

struct Step {
  const char* name;
  const char* idea;
  bool float32;  // bfloat16 is every step's
  int multiple;  // extents of k and n must be multiples of it
};

constexpr Step kSteps[] = {
    {"thread", "one thread an element", true, 1},
    {"shared", "tiles in shared memory", true, 1},
    {"registers", "tiles in registers, 16-byte accesses", true, 8},
    {"mma", "tensor cores: mma.sync, ldmatrix, cp.async", false, 8},
    {"wgmma", "TMA and wgmma, warps with roles", false, 8},
};
constexpr int kStepCount = 5;

/// The ways of a step for a product: the step's own choice, or with `all` every way.
std::vector<Way> ways_of(int step, const Product& product, bool all);

/// Peak rates of a GPU's multipliers in FLOP/s: float32 multiply-adds in registers, and wgmma on
/// random bfloat16 tiles that stay in shared memory.
struct Peaks {
  double float32 = 0, bfloat16 = 0;
};
Peaks measure_peaks();

}  // namespace lab
