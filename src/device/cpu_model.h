// CpuModel: the assumed figures of a host CPU core, for the planner and for the CPU's engines and
// kernels, as GpuModel is for GPUs (tests/guards/times.py keeps such figures out of other files).
//
// The figures are constants, never measured: slices, blocks and parts are cut by them and sums are
// added in that order, so result bits must not depend on the machine. They describe x86 servers of
// the last ten years and are conservative elsewhere; `tenon doctor` shows them beside the machine's
// real figures. Rates are in cycles: only their ratios matter.
#pragma once

#include <cstdint>

namespace tenon {

struct CpuModel {
  std::int64_t line_bytes = 64;
  // Data caches of one core.
  std::int64_t first_cache = std::int64_t{32} << 10;
  std::int64_t second_cache = std::int64_t{1} << 20;
  // a core's share; data in it stays between steps
  std::int64_t last_cache = std::int64_t{4} << 20;

  // For one core while all others are busy.
  double multiply_adds = 16;  // a cycle, float32
  double memory = 4;          // bytes a cycle, to or from memory
  double cache = 32;          // bytes a cycle, to or from its own second-level cache
  double packing = 1;         // bytes a cycle, of filters or matrices packed into panels

  // Minimum work for one chunk, compared with about a microsecond to hand it out: microseconds, and
  // multiply-adds of a product; and the number of chunks with which many threads share work well.
  double chunk_us = 15;
  double chunk_multiply_adds = 5e5;
  std::int64_t many_chunks = 16;

  // The most multiply-adds for each byte that is read from cache instead of memory; above it
  // cutting steps into slices gains nothing, because products of slices lose as much time as the
  // bytes cost. Convolutions of 16 to 16 channels of 3x3 with the maps around them (24 and 36
  // multiply-adds a byte) took as long as without slices.
  std::int64_t most_work_of_byte = 16;

  // OpCost of an element's arithmetic that takes no longer than storing the element for one other
  // step and reading it there, both beyond a core's own caches.
  std::int64_t recompute_cost = 30;

  constexpr std::int64_t line_floats() const { return line_bytes / 4; }
  constexpr std::int64_t second_floats() const { return second_cache / 4; }
  constexpr std::int64_t last_floats() const { return last_cache / 4; }
  /// Multiply-adds that take no longer than writing and reading this many bytes of a result.
  constexpr std::int64_t multiply_adds_instead_of(std::int64_t bytes) const {
    return static_cast<std::int64_t>(2 * static_cast<double>(bytes) / memory * multiply_adds);
  }
  /// Bytes that can be moved to or from memory in the time of packing `bytes`.
  constexpr std::int64_t bytes_moved_during_packing(std::int64_t bytes) const {
    return static_cast<std::int64_t>(static_cast<double>(bytes) * memory / packing);
  }
};

inline constexpr CpuModel kCpu;

}  // namespace tenon
