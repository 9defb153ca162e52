// Chooses tile and number of blocks, on which a contraction's source and grid depend. The choice
// depends on sizes and the GPU's model. Sizes that grow with the batch are rounded up to powers of
// two, so another batch size rarely needs another compilation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/engines/launch/tile.h"
#include "cuda/engines/products/form.h"
#include "device/gpu_model.h"

namespace tenon::cuda {

enum class GemmMath : std::uint8_t { Fp32, Tf32, Bf16, F16 };
/// The kernels' name: "Math::Tf32".
const char* math_name(GemmMath math);

/// Counters for splits in one module; a launch uses one per tile.
inline constexpr int kGemmTickets = 16384;

struct GemmConfig {
  GemmMath math = GemmMath::Fp32;
  DType stored_a = DType::Float32, stored_b = DType::Float32;  // in shared memory
  Tile tile{};           // thread_m x thread_n are a thread's (Fp32) or a warp's
  int splits = 1;        // wanted; 1: the text has no splitting
  bool serial = false;   // blocks of a tile add their sums in turn, and keep one copy of the result
  bool swizzle = false;  // blocks in an order that shares operands in the second-level cache
  int shared_bytes = 0;
};

/// The time that the model expects of its choice.
double expected_microseconds(const GpuModel& gpu, const Contraction& c,
                             const ContractionForm& form);
GemmConfig choose_config(const GpuModel& gpu, const Contraction& c, const ContractionForm& form);

/// The configurations worth timing, most promising first: the best tiles by the model, each with
/// the numbers of splits around the best.
std::vector<GemmConfig> promising_configs(const GpuModel& gpu, const Contraction& c,
                                          const ContractionForm& form);
/// "64x64x32-256/4": m, n, k, threads, splits; "64x64x32-256/4 in turn" if the splits are added in
/// turn.
std::string config_name(const GemmConfig& config);
/// The configuration of that name, for any sizes. Throws NotSupported if there is none, or if its
/// splits have too many tiles.
GemmConfig config_named(const Contraction& c, const ContractionForm& form, const std::string& name);

/// All tiles that choose_config may take for this arithmetic: for tests.
std::span<const Tile> gemm_tiles(GemmMath math);
/// A configuration with this tile and number of splits: for tests and measurements.
GemmConfig config_with(const Contraction& c, const ContractionForm& form, const Tile& tile,
                       int splits, bool serial = false);

/// The smallest power of two that is not below x.
std::int64_t power_above(std::int64_t x);

}  // namespace tenon::cuda
