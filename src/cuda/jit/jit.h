// Run-time compilation: from CUDA C++ source to a function on a GPU.
//
// compile() returns at once. Worker threads compile sources that are not in the disk cache with
// NVRTC, so that the kernels of a plan compile concurrently; the first launch waits. Sources may
// include only the headers that are embedded in the library ("scalar/…", "cuda/kernels/…"). The
// cache key is a digest of the source, the headers, the architecture and the compiler's version. A
// damaged, unwritable or shared cache costs time, but never gives a wrong kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/jit/source.h"
#include "cuda/target.h"

namespace tenon::cuda {

struct Grid {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// A kernel being compiled for, or loaded on, a GPU. Immutable for callers; launches may come from
/// several threads.
class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;
  virtual const Source& source() const = 0;
  /// Queues one launch on `stream` (a CUstream). `params` points to the arguments in order. Waits
  /// if the compilation is not finished. Throws NotSupported with the compiler's messages if the
  /// source does not compile, ValueError if the source contains own code, and DeviceError if the
  /// launch is refused or the process ends before the kernel is compiled.
  virtual void launch(void* stream, Grid grid, Grid block, std::uint32_t shared_bytes,
                      void* const* params) const = 0;
  /// The same with as many blocks as the GPU holds at once, but at most `blocks`.
  virtual void launch_resident(void* stream, std::uint32_t blocks, std::uint32_t threads,
                               void* const* params) const = 0;
  /// Waits for the compilation only.
  virtual void wait() const = 0;
};

/// Starts the compilation for the target's GPU. Without a GPU (ordinal -1) the result holds the
/// source, and launch() throws DeviceError. The same source for the same GPU returns the same
/// kernel.
std::shared_ptr<const CompiledKernel> compile(const Target& target, Source source);

/// From now on, compile() only records the source; the first launch or wait() compiles.
void compile_at_launch();

/// All sources requested so far for a GPU (Target::ordinal; -1: without a GPU).
std::vector<Source> sources_for(int ordinal);

/// True if a CUfunction is one of our kernels that wait themselves.
bool awaits_kernels(const void* function);

struct JitStats {
  std::int64_t compiled = 0, built_in = 0, from_disk = 0, from_memory = 0;
  double compile_ms = 0, longest_ms = 0;  // summed over threads; of one kernel
};
JitStats jit_stats();

}  // namespace tenon::cuda
