// The vocabulary of products' tiles, which native, simt, wgmma and conv kernels share: what a block
// computes, what that takes of a multiprocessor, and the text of the kernel's `struct Config`.
// Which tiles there are, which is taken, and the names that tables keep of choices are their
// engines'.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "device/gpu_model.h"

namespace tenon::cuda {

/// A block of `threads` computes m x n results, k deep a stage; thread_m x thread_n is the tile of
/// a thread or of a warp, as the kernel has it. What a kernel has no use for is 0.
struct Tile {
  int m, n, k, threads, stages, thread_m, thread_n;

  /// Groups of threads that share a tile's k, where `lanes` work on a part: 1, or 32 for warps.
  int groups(int lanes) const { return threads / (lanes * (m / thread_m) * (n / thread_n)); }
  /// Of the sums of so many groups, in shared memory when they are added up and written.
  int sums_bytes(int of_groups) const { return 4 * of_groups * m * (n + 8); }
};

/// Blocks that a multiprocessor holds at once, 0 or more: by shared memory, and by registers, of
/// which there are enough for so many of the kernel's threads.
inline std::int64_t resident_blocks(const GpuModel& gpu, const Tile& tile,
                                    std::int64_t shared_bytes, int threads_by_registers) {
  const std::int64_t by_memory = gpu.shared_bytes / shared_bytes,
                     by_registers = threads_by_registers / tile.threads;
  return by_memory < by_registers ? by_memory : by_registers;
}

/// The text of `struct Config`, a kernel's template argument. Lines stand in the order of calls.
class ConfigText {
 public:
  ConfigText& type(const char* name, const std::string& value);
  /// A constant of a type of the kernels': "Math::Tf32" of Math.
  ConfigText& value(const char* type, const char* name, const std::string& text);
  /// On one line.
  ConfigText& ints(std::initializer_list<std::pair<const char*, int>> constants);
  ConfigText& flags(std::initializer_list<std::pair<const char*, bool>> constants);
  /// kM, kN, kK, kThreads, kStages, kThreadM and kThreadN, those that the tile has.
  ConfigText& tile(const Tile& tile);
  std::string text() const { return "struct Config {\n" + lines_ + "};\n"; }

 private:
  std::string lines_;
};

/// For a name that is no configuration of the engine's.
[[noreturn]] void refuse_config(const char* engine, const std::string& name);

}  // namespace tenon::cuda
