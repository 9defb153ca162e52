// Run-time compilation: from CUDA C++ text to a function on a GPU.
//
// compile() returns at once: sources that are not in the disk cache are compiled by NVRTC on worker
// threads, so that the kernels of a plan, asked for one after another, compile side by side; the
// first launch waits. Sources may include the headers that travel in the library ("scalar/…",
// "cuda/kernels/…") and nothing else. The cache is keyed by the text, the headers, the architecture
// and the compiler's version; a damaged, unwritable or shared cache costs time, never a wrong
// kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/target.h"

namespace tenon::cuda {

struct Grid {
  std::uint32_t x = 1, y = 1, z = 1;
};

struct Source {
  std::string entry;  // name of the extern "C" __global__ function
  std::string text;
  int effort = 0;  // of the compiler, for kernels that take it longer than others: about tenths of
                   // a second
};

/// Between the texts of one step's launches, where Kernel::source() gives several.
inline constexpr char kNextLaunch[] = "\n// ---- next launch ----\n\n";

/// A statement of kernels that may be launched before those in front of them have ended
/// (intrinsics.cuh); what stands before it touches no memory that other kernels touch.
inline constexpr char kAwaitKernels[] = "  tenon::cuda::await_kernels();\n";
/// A kernel whose text calls that, or a function with such a name that does, waits itself; every
/// other is launched when what it depends on has ended.
inline constexpr char kAwaits[] = "await_";

/// A kernel on its way to a GPU. Immutable for callers; launches may come from several threads.
class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;
  virtual const Source& source() const = 0;
  /// Queues one launch on `stream` (a CUstream). `params` points to the arguments in order.
  /// Waits for the compilation when that is still under way. Throws NotSupported with the
  /// compiler's words when the source does not compile, DeviceError when the launch is refused or
  /// the process ends before the kernel is compiled.
  virtual void launch(void* stream, Grid grid, Grid block, std::uint32_t shared_bytes,
                      void* const* params) const = 0;
  /// The same with as many blocks as the GPU holds at once, but no more than `blocks`.
  virtual void launch_resident(void* stream, std::uint32_t blocks, std::uint32_t threads,
                               void* const* params) const = 0;
  /// Waits for the compilation only.
  virtual void wait() const = 0;
};

/// Starts the compilation for the target's GPU. With no GPU (ordinal -1) the result holds the
/// source and launch() throws DeviceError. The same source for the same GPU gives the same kernel.
std::shared_ptr<const CompiledKernel> compile(const Target& target, Source source);

/// From now on, compile() leaves that to the first launch, or whoever waits.
void compile_at_launch();

/// The sources that were asked for so far for a GPU (Target::ordinal; -1: for none).
std::vector<Source> sources_for(int ordinal);

/// Whether a CUfunction is a kernel of ours that waits itself.
bool awaits_kernels(const void* function);

/// Text of a header that travels in the library ("scalar/exp.h"); null when there is none.
const std::string* embedded_header(const std::string& name);

struct JitStats {
  std::int64_t compiled = 0, built_in = 0, from_disk = 0, from_memory = 0;
  double compile_ms = 0, longest_ms = 0;  // summed over threads; of one kernel
};
JitStats jit_stats();

}  // namespace tenon::cuda
