// The machine as Tenon sees it: processor, instruction sets, threads, memory, GPUs, and measured
// speed.
//
// Facts for reports (`tenon doctor`, benchmark records). Nothing in the library depends on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/export.h>

namespace tenon {

/// The processor, the memory and the build, from system_info().
struct SystemInfo {
  std::string version;                ///< Tenon's version, "0.1.0"
  std::string build;                  ///< compiler, build type and architecture
  std::string cpu;                    ///< model name of the processor
  int cpus = 0;                       ///< logical CPUs of the machine
  int cpus_allowed = 0;               ///< CPUs that this process may use, by its affinity and quota
  std::vector<std::string> features;  ///< instruction sets present that Tenon has kernels for
  std::string isa_available;          ///< best kernels that this processor can run
  std::string isa;                    ///< kernels in use; $TENON_ISA may limit them
  std::vector<std::int64_t> caches;   ///< sizes of the data caches by level, in bytes, if known
  /// Cache sizes of a core, in bytes, for which plans and kernels choose tile sizes. They are the
  /// same on every machine, so that every machine gives the same bits.
  std::vector<std::int64_t> caches_assumed;
  std::int64_t memory_total = 0;      ///< memory of the machine or the container, in bytes
  std::int64_t memory_available = 0;  ///< memory available without swapping, in bytes
};
/// Facts about this machine.
TENON_API SystemInfo system_info();
/// Tenon's version, "major.minor.patch".
TENON_API const char* version();

/// Measured peak rates of the processor. Reports give shares of these peaks.
struct SystemSpeed {
  int threads = 0;        ///< threads of the measurement
  double fp32_flops = 0;  ///< float32 multiply-adds from registers, in FLOP/s
  double bf16_flops = 0;  ///< multiply-adds with bfloat16 operands, in FLOP/s
  double copy_bytes = 0;  ///< bytes read plus bytes written per second, for data beyond the caches
};
/// Measures the processor for about a second. `threads`: number of threads; 0: those in use. Run
/// nothing else on the machine during the measurement.
TENON_API SystemSpeed measure_system(int threads = 0);

/// A GPU that Tenon can use.
struct GpuInfo {
  std::string device;             ///< device name, "cuda:0"
  std::string name;               ///< product name, "NVIDIA H200"
  int capability = 0;             ///< compute capability times ten: 90
  int multiprocessors = 0;        ///< number of streaming multiprocessors
  std::int64_t memory_total = 0;  ///< GPU memory in bytes
  std::int64_t memory_free = 0;   ///< free GPU memory in bytes
};
/// A library of NVIDIA that is loaded at run time.
struct CudaLibrary {
  std::string name;     ///< "driver", "NVRTC", "cuBLASLt", "cuDNN" or "nvJPEG"
  bool found = false;   ///< whether the library was found and can be used
  std::string path;     ///< where it was found, or where it was searched
  std::string version;  ///< its version, or why it cannot be used
};
/// GPUs and libraries, from cuda_info().
struct CudaInfo {
  std::vector<GpuInfo> gpus;           ///< the GPUs that Tenon can use
  std::vector<CudaLibrary> libraries;  ///< the libraries
  std::string why_none;                ///< why no GPU can be used; "": one can
  std::string built_in;  ///< compiled kernels in this library: "560 for sm_80, …"; "": none
};
/// Facts about the GPUs and libraries of this machine.
TENON_API CudaInfo cuda_info();

/// Measured peak rates of a GPU.
struct GpuSpeed {
  double fp32_flops = 0;  ///< float32, in FLOP/s
  double tf32_flops = 0;  ///< TF32 tensor cores, in FLOP/s
  double bf16_flops = 0;  ///< bfloat16 tensor cores, in FLOP/s
  double copy_bytes = 0;  ///< bytes read plus bytes written per second
};
/// Measures the GPU "cuda:index" for about half a second. Throws DeviceError if there is no such
/// GPU.
TENON_API GpuSpeed measure_gpu(int index = 0);

/// The folder for tuning results and downloads: $TENON_CACHE, else $XDG_CACHE_HOME/tenon, else
/// ~/.cache/tenon. The folder may not exist yet.
TENON_API std::string cache_folder();

}  // namespace tenon
