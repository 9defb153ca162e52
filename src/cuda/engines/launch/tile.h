// Tiles of matrix products, shared by the native, simt, wgmma and conv kernels: what a block
// computes, which multiprocessor resources it needs, and the text of the kernel's `struct Config`.
// Each engine owns its list of tiles, the choice, and the names under which tune tables keep
// choices.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "device/gpu_model.h"

namespace tenon::cuda {

/// A block of `threads` threads computes m x n results and stages k elements deep. thread_m x
/// thread_n is the tile of a thread or of a warp, depending on the kernel. Unused members are 0.
struct Tile {
  int m, n, k, threads, stages, thread_m, thread_n;

  /// Number of thread groups that split a tile's k; `lanes` threads work on one part: 1, or 32 for
  /// warps.
  int groups(int lanes) const { return threads / (lanes * (m / thread_m) * (n / thread_n)); }
  /// Bytes of shared memory for the sums of `of_groups` groups while they are added and written.
  int sums_bytes(int of_groups) const { return 4 * of_groups * m * (n + 8); }
};

/// Blocks that a multiprocessor holds at once (0 or more), limited by shared memory and by
/// registers; the registers suffice for `threads` of the kernel's threads.
inline std::int64_t resident_blocks(const GpuModel& gpu, const Tile& tile,
                                    std::int64_t shared_bytes, int threads_by_registers) {
  const std::int64_t by_memory = gpu.shared_bytes / shared_bytes,
                     by_registers = threads_by_registers / tile.threads;
  return by_memory < by_registers ? by_memory : by_registers;
}

/// The text of `struct Config`, a kernel's template argument. Lines have the order of the calls.
class ConfigText {
 public:
  ConfigText& type(const char* name, const std::string& value);
  /// A constant of a kernel type: "Math::Tf32" of Math.
  ConfigText& value(const char* type, const char* name, const std::string& text);
  /// Integer constants on one line.
  ConfigText& ints(std::initializer_list<std::pair<const char*, int>> constants);
  ConfigText& flags(std::initializer_list<std::pair<const char*, bool>> constants);
  /// kM, kN, kK, kThreads, kStages, kThreadM and kThreadN; members that are 0 are left out.
  ConfigText& tile(const Tile& tile);
  std::string text() const { return "struct Config {\n" + lines_ + "};\n"; }

 private:
  std::string lines_;
};

/// Throws for a name that is not a configuration of the engine.
[[noreturn]] void refuse_config(const char* engine, const std::string& name);

}  // namespace tenon::cuda
