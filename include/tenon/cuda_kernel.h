// CudaKernel: a kernel in CUDA C++ of the program that uses the library. Operation (operation.h)
// makes an operation from it; docs/functions.md describes what the source may use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tenon/host_call.h>
#include <tenon/number.h>

namespace tenon {

/// What the launch of a kernel may depend on.
struct KernelTypes {
  std::span<const TensorType> inputs, results;  ///< Dtypes and shapes of the call.
  std::span<const Scalar> numbers;              ///< CudaKernel::numbers.
};

/// Three sizes of a launch.
struct CudaSizes {
  std::int64_t x = 1, y = 1, z = 1;
};

/// One launch of a kernel.
struct CudaLaunch {
  CudaSizes grid{};               ///< Thread blocks. Without any, nothing is launched.
  CudaSizes block{};              ///< Threads of a block, at most 1024 together.
  std::int64_t shared_bytes = 0;  ///< Dynamic shared memory of a block, in bytes.
  /// Further arguments of the kernel, after the addresses of inputs and results: whole numbers as
  /// `long long`, others as `double`.
  std::vector<Scalar> numbers{};
};

/// A kernel in CUDA C++ and how it is launched.
struct CudaKernel {
  /// The source. It defines `extern "C" __global__ void entry(…)`, which takes a pointer for each
  /// input, a pointer for each result, and the launch's numbers. Empty: no kernel.
  std::string source{};
  /// The name of that function.
  std::string entry{};
  /// The launch for the types of a call: a function, or a lambda that captures nothing. It is
  /// called when a call is built and when a plan is made, never when a plan is replayed.
  CudaLaunch (*launch)(const KernelTypes& types) = nullptr;
  /// Numbers for `launch`, such as a window size. The kernel gets those that `launch` returns.
  std::vector<Scalar> numbers{};
};

}  // namespace tenon
