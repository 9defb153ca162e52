// CpuModel: what plans and kernels take a core of the host for. One place, asked by the planner and
// by the CPU's engines and kernels alike, as GpuModel is for GPUs (tests/guards/times.py).
//
// Its figures are constants, never measured: slices, blocks and parts are cut by them, sums are
// added in that order, and a result's bits must be the same on every machine. They hold for x86
// servers of the last ten years and are cautious elsewhere; what a machine really has stands beside
// them in `tenon doctor`. Rates are in cycles: only their ratios decide.
#pragma once

#include <cstdint>

namespace tenon {

struct CpuModel {
  std::int64_t line_bytes = 64;
  // Data caches, of one core.
  std::int64_t first_cache = std::int64_t{32} << 10;
  std::int64_t second_cache = std::int64_t{1} << 20;
  std::int64_t last_cache = std::int64_t{4} << 20;  // a core's share: stays there between steps

  // Of one core with all others busy.
  double multiply_adds = 16;  // a cycle, float32
  double memory = 4;          // bytes a cycle, from or to memory
  double cache = 32;          // from or to its own second cache
  double packing = 1;         // bytes a cycle of filters or matrices packed into panels

  // What is worth a thread's while, against some microsecond to hand it out: so many microseconds,
  // so many multiply-adds of a product; and so many pieces share work among many threads.
  double chunk_us = 15;
  double chunk_multiply_adds = 5e5;
  std::int64_t many_chunks = 16;

  // Multiply-adds for each byte that is met in cache and not in memory, beyond which cutting steps
  // into slices gains nothing: products of slices lose as much as the bytes take. Convolutions of
  // 16 to 16 channels of 3x3 with the maps around them (24 and 36 a byte) took as long as without.
  std::int64_t most_work_of_byte = 16;

  // OpCost of an element's arithmetic that takes no longer than storing it for one other step and
  // reading it there, both beyond a core's own caches.
  std::int64_t remade_cost = 30;

  constexpr std::int64_t line_floats() const { return line_bytes / 4; }
  constexpr std::int64_t second_floats() const { return second_cache / 4; }
  constexpr std::int64_t last_floats() const { return last_cache / 4; }
  /// Multiply-adds that take no longer than writing and reading so many bytes of a result.
  constexpr std::int64_t multiply_adds_instead_of(std::int64_t bytes) const {
    return static_cast<std::int64_t>(2 * static_cast<double>(bytes) / memory * multiply_adds);
  }
  /// Bytes that cross memory in the time of packing so many.
  constexpr std::int64_t moved_while_packing(std::int64_t bytes) const {
    return static_cast<std::int64_t>(static_cast<double>(bytes) * memory / packing);
  }
};

inline constexpr CpuModel kCpu;

}  // namespace tenon
