// GpuModel: figures of a GPU for time models. A plain value, filled for known GPUs from public
// figures, for others from the driver's properties or from what `tenon doctor` measured
// (cuda/device/gpu_models.h). Passes and engines only read it.
//
// Estimated times rank the candidates; the tuner decides by measuring. Figures that depend on a
// kernel (the share of a rate that it reaches) belong to its engine, as ratios; rates and times are
// only here (tests/guards/times.py).
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/dtype.h>

namespace tenon {

/// Defaults are an H200's. Public figures come from NVIDIA's data sheets and tuning guides. Figures
/// marked "fitted" were fitted to products, convolutions and kernels measured on an H200
/// (bench/results/h200-products.txt, docs/internals/cuda.md) and are used unchanged for other GPUs.
struct GpuModel {
  bool operator==(const GpuModel&) const = default;

  int multiprocessors = 132;
  double clock = 1.755e9;                             // cycles a second, under load
  std::int64_t cache_bytes = std::int64_t{50} << 20;  // the second-level cache
  double memory = 4.8e12;                             // bytes a second, read or written
  double memory_share = 0.73;                         // the share of it that kernels reach (fitted)

  // For one multiprocessor. Shared memory is the part that thread blocks can use.
  std::int64_t shared_bytes = 220 * 1024;
  double cache = 30;     // bytes a cycle, from the second-level cache (fitted; 64 is its port)
  double latency = 700;  // cycles until a load from that cache arrives, under load (fitted)
  double fp64 = 64, fp32 = 128;      // multiply-adds a cycle
  double tf32 = 1024, half = 2048;   // by tensor cores, dense
  double mma_share = 1400.0 / 2048;  // the share of it that mma.sync reaches (tenon doctor)

  // Microseconds, inside a CUDA graph (fitted): one launch; the time until the last block of a
  // launch knows that it is the last; a short row that every block recomputes for itself.
  double launch_us = 1.14, last_block_us = 0.34, repeated_row_us = 0.23;

  double launch_cycles() const { return launch_us * 1e-6 * clock; }
  double cycles_to_microseconds(double cycles) const { return cycles / clock * 1e6; }
  /// Multiply-adds a cycle of one multiprocessor, on tensor cores if they support the dtype.
  double rate(DType compute, bool in_tf32) const {
    if (compute == DType::Float64) return fp64;
    if (compute == DType::Float32) return in_tf32 ? tf32 : fp32;
    return half;
  }
};

/// The work of consecutive kernels.
struct Work {
  double bytes = 0;  // moved
  double multiply_adds = 0;
  double rate = 1;  // multiply-adds a cycle of one multiprocessor that the kernel reaches
  int launches = 1;
};

/// The roofline model: the larger of moving time and computing time, plus the launches. Bytes that
/// do not fit the cache come from memory.
inline double microseconds(const GpuModel& gpu, const Work& work) {
  const double in_cache = gpu.cache * gpu.multiprocessors * gpu.clock;
  const double bytes_a_second = work.bytes > static_cast<double>(gpu.cache_bytes)
                                    ? std::min(in_cache, gpu.memory * gpu.memory_share)
                                    : in_cache;
  const double computing = work.multiply_adds / (work.rate * gpu.multiprocessors * gpu.clock);
  return 1e6 * std::max(work.bytes / bytes_a_second, computing) + work.launches * gpu.launch_us;
}

}  // namespace tenon
