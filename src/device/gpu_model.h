// GpuModel: what models of time know of a GPU. A plain value: filled for named GPUs from public
// figures, from a driver's properties for others, or from what `tenon doctor` measured
// (cuda/device/gpu_models.h); passes and engines only read it.
//
// Times order what may run, the tuner decides by measuring. Figures that depend on a kernel (which
// share of a rate it reaches) are its engine's, as ratios; rates and times are here and nowhere
// else (tests/guards/times.py).
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/dtype.h>

namespace tenon {

/// Defaults are an H200's. Public figures are NVIDIA's data sheets and tuning guides; what says
/// "fitted" was fitted to products, convolutions and kernels measured on an H200
/// (bench/results/h200-products.txt, docs/internals/cuda.md) and is taken for other GPUs as it is.
struct GpuModel {
  bool operator==(const GpuModel&) const = default;

  int multiprocessors = 132;
  double clock = 1.755e9;                             // cycles a second, under load
  std::int64_t cache_bytes = std::int64_t{50} << 20;  // the second-level cache
  double memory = 4.8e12;                             // bytes a second, read or written
  double memory_share = 0.73;                         // of that, what kernels reach (fitted)

  // Of one multiprocessor. Of its shared memory, what its blocks have.
  std::int64_t shared_bytes = 220 * 1024;
  double cache = 30;     // bytes a cycle, from the second-level cache (fitted; 64 is its port)
  double latency = 700;  // cycles until a load from there arrives, under load (fitted)
  double fp64 = 64, fp32 = 128;      // multiply-adds a cycle
  double tf32 = 1024, half = 2048;   // by tensor cores, dense
  double mma_share = 1400.0 / 2048;  // of those, what mma.sync reaches (tenon doctor)

  // Microseconds, inside a graph (fitted): a launch; until the last block of a launch has learnt
  // that it is; a short row that every block makes for itself.
  double launch_us = 1.14, last_block_us = 0.34, again_us = 0.23;

  double launch_cycles() const { return launch_us * 1e-6 * clock; }
  double cycles_to_microseconds(double cycles) const { return cycles / clock * 1e6; }
  /// Multiply-adds a cycle of one multiprocessor, by tensor cores where they compute so.
  double rate(DType compute, bool in_tf32) const {
    if (compute == DType::Float64) return fp64;
    if (compute == DType::Float32) return in_tf32 ? tf32 : fp32;
    return half;
  }
};

/// What kernels in a row have to do.
struct Work {
  double bytes = 0;  // moved
  double multiply_adds = 0;
  double rate = 1;  // of those, a cycle of one multiprocessor that the kernel reaches
  int launches = 1;
};

/// The roofline: what takes longer of moving and computing, and the launches. What does not fit the
/// cache comes from memory.
inline double microseconds(const GpuModel& gpu, const Work& work) {
  const double in_cache = gpu.cache * gpu.multiprocessors * gpu.clock;
  const double bytes_a_second = work.bytes > static_cast<double>(gpu.cache_bytes)
                                    ? std::min(in_cache, gpu.memory * gpu.memory_share)
                                    : in_cache;
  const double computing = work.multiply_adds / (work.rate * gpu.multiprocessors * gpu.clock);
  return 1e6 * std::max(work.bytes / bytes_a_second, computing) + work.launches * gpu.launch_us;
}

}  // namespace tenon
