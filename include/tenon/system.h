// The machine as Tenon sees it: processor, instruction sets, threads, memory, and how fast it
// measures.
//
// Facts for reports (`tenon doctor`, benchmark records); nothing in the library depends on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/export.h>

namespace tenon {

struct SystemInfo {
  std::string version;                ///< Tenon's own, "0.1.0"
  std::string build;                  ///< compiler, kind of build and architecture
  std::string cpu;                    ///< the model's name
  int cpus = 0;                       ///< in the machine
  int cpus_allowed = 0;               ///< that this process may use (affinity and quota respected)
  std::vector<std::string> features;  ///< instruction sets present that Tenon has kernels for
  std::string isa_available;          ///< the best kernels that this processor can run
  std::string isa;                    ///< the kernels in use (a limit may be set)
  std::vector<std::int64_t> caches;   ///< bytes of its data caches by level, where they are known
  /// Bytes of a core's caches that plans and kernels are cut for, on every machine alike, so that
  /// every machine gets the same bits.
  std::vector<std::int64_t> caches_assumed;
  std::int64_t memory_total = 0;      ///< bytes, of the machine or the container
  std::int64_t memory_available = 0;  ///< bytes that can be had now without swapping
};
TENON_API SystemInfo system_info();
/// Tenon's version, "major.minor.patch".
TENON_API const char* version();

/// What the processor reaches at best; the figures that shares of peak are told against.
struct SystemSpeed {
  int threads = 0;
  double fp32_flops = 0;  ///< multiply-adds from registers, FLOP/s
  double bf16_flops = 0;  ///< the same with bfloat16 operands
  double copy_bytes = 0;  ///< bytes read plus written per second, far beyond the caches
};
/// Measures for about a second with `threads` threads (0: those in use). Leave the machine idle
/// meanwhile.
TENON_API SystemSpeed measure_system(int threads = 0);

/// A GPU that Tenon can use.
struct GpuInfo {
  std::string device;  ///< "cuda:0"
  std::string name;    ///< "NVIDIA H200"
  int capability = 0;  ///< ten times the compute capability: 90
  int multiprocessors = 0;
  std::int64_t memory_total = 0, memory_free = 0;  ///< bytes
};
/// A library of NVIDIA's that is loaded at run time.
struct CudaLibrary {
  std::string name;  ///< "driver", "NVRTC", "cuBLASLt", "cuDNN"
  bool found = false;
  std::string path;     ///< where it was found, or where it was looked for
  std::string version;  ///< or why it cannot be used
};
struct CudaInfo {
  std::vector<GpuInfo> gpus;
  std::vector<CudaLibrary> libraries;
  std::string why_none;  ///< why no GPU can be used; "" when one can
  std::string built_in;  ///< kernels that this library holds compiled: "560 for sm_80, …"; "": none
};
TENON_API CudaInfo cuda_info();

/// Peak rates of a GPU, in FLOP/s and bytes (read plus written) per second.
struct GpuSpeed {
  double fp32_flops = 0, tf32_flops = 0, bf16_flops = 0, copy_bytes = 0;
};
/// Measures for about half a second. Throws DeviceError when there is no such GPU.
TENON_API GpuSpeed measure_gpu(int index = 0);

/// Where tuning results and downloads are kept: $TENON_CACHE, else $XDG_CACHE_HOME/tenon, else
/// ~/.cache/tenon. The folder need not exist.
TENON_API std::string cache_folder();

}  // namespace tenon
