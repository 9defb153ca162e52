// The source of a kernel for the run-time compiler, and statements that sources have in common.
#pragma once

#include <string>

namespace tenon::cuda {

struct Source {
  std::string entry;  // name of the extern "C" __global__ function
  std::string text;
  int effort = 0;  // of the compiler, for kernels that take it longer than others: about tenths of
                   // a second
};

/// Separates the sources of one step's launches if Kernel::source() returns several.
inline constexpr char kNextLaunch[] = "\n// ---- next launch ----\n\n";

/// A statement of kernels that may be launched before the kernels in front of them have ended
/// (intrinsics.cuh). Code before it must not touch memory that other kernels touch.
inline constexpr char kAwaitKernels[] = "  tenon::cuda::await_kernels();\n";
/// A kernel whose source calls await_kernels(), or a function with such a name that does, waits
/// itself. Own kernels (graph/element_code.h) never do. Every other kernel is launched when the
/// kernels that it depends on have ended.
inline constexpr char kAwaits[] = "await_";

}  // namespace tenon::cuda
