// Operations of a whole warp: shuffles, matrix products, matrix loads. Pure functions of the 32
// lanes' arguments; block.cpp handles the waiting.
#pragma once

#include <cstdint>

#include "abi.h"

namespace tenon_emulator {

struct WarpCall {
  /// Computes the operation for all lanes at once from the calls of the lanes that are `present`.
  /// Returns what is wrong with the calls, or null.
  const char* (*apply)(const WarpCall* lanes, std::uint32_t present) = nullptr;
  void* out = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  int mode = 0, bytes = 0, argument = 0;
};

WarpCall sync_call();
WarpCall shuffle_call(Shuffle mode, void* value, int bytes, int argument);
WarpCall mma_call(Mma kind, float* d, const unsigned* a, const unsigned* b);
WarpCall load_matrix_call(int count, bool transposed, unsigned* registers, const void* row);

}  // namespace tenon_emulator
