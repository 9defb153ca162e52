// Run-time arguments of the float32 matrix product without tensor cores; host and device share
// these structs.
#pragma once

namespace tenon::cuda {

/// Lines of `line` elements (a multiple of 4) along the result's axis; consecutive k are `pitch`
/// elements apart.
struct SimtOperand {
  const float* data = nullptr;
  int line = 0, pitch = 0;
};

struct SimtProblem {
  SimtOperand a, b;
  int m = 0, n = 0, k = 0;
  int tiles_m = 0, tiles_n = 0;
  int k_per_split = 0, splits = 1;  // block (x, y): tile x, k from y * k_per_split
  float* partials = nullptr;        // [tile][split][kM][kN] when splits > 1
  unsigned long long ticket = 0;    // first of the counters of this launch
};

}  // namespace tenon::cuda
