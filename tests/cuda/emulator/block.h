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

/// Gives the module its runtime. Called once, after loading.
void attach_runtime(const Module& module);

/// Returns the error, or an empty string: a deadlock, a trap, an access violation (then
/// *illegal_address is set). Runs one grid at a time: the caller must hold a lock.
std::string run_grid(const Launch& launch, bool* illegal_address);

}  // namespace tenon_emulator
