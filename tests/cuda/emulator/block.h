// Runs a grid of an emulated kernel: blocks one after another, the threads of a block as fibers
// that switch only where CUDA makes threads wait for one another.
#pragma once

#include <string>

#include "abi.h"

namespace tenon_emulator {

struct Launch {
  const Module* module = nullptr;
  const Entry* entry = nullptr;
  Index3 grid{1, 1, 1}, block{1, 1, 1};
  unsigned shared_bytes = 0;
  void** params = nullptr;
};

/// Lends the module its runtime; once, after loading.
void attach_runtime(const Module& module);

/// Empty, or the error: a deadlock, a trap, an access violation (then *illegal_address is set). One
/// grid at a time: the caller holds a lock.
std::string run_grid(const Launch& launch, bool* illegal_address);

}  // namespace tenon_emulator
