// Rules fitted to measurements on an H200, as shares of a GPU's multiprocessors.
#include "cuda/engines/products/wgmma_config.h"

#include <algorithm>
#include <bit>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/launch/tile.h"
#include "cuda/kernels/gemm/gemm_wgmma_args.cuh"

namespace tenon::cuda {
namespace {

/// Every block has a part of the sums, and a cluster has at most eight blocks.
bool is_possible(const WgmmaSizes& s, const WgmmaConfig& config) {
  return config.splits >= 1 && config.splits * config.cluster <= 8 &&
         config.splits <= (s.whole ? 1 : wgmma_steps(s));
}

/// Multiprocessors of the GPU to which the numbers of tiles were fitted.
constexpr int kFitted = GpuModel().multiprocessors;

/// As many splits as clusters can run at once. A cluster is within one group of multiprocessors,
/// and the groups are not all equal: 132 multiprocessors hold 30 clusters of four or 15 of eight.
int splits_for(const GpuModel& gpu, const WgmmaSizes& s, const WgmmaConfig& config) {
  const std::int64_t steps = wgmma_steps(s);
  const std::int64_t tiles = divide_up(wgmma_tiles(s, config) * kFitted, gpu.multiprocessors);
  const int room = tiles <= 12 ? 8 : tiles <= 28 ? 4 : tiles <= 66 ? 2 : 1;
  int splits = 1;
  while (!s.whole && splits < room && steps >= 8 * splits) splits *= 2;
  return splits;
}

}  // namespace

WgmmaSizes wgmma_class(const WgmmaSizes& sizes) {
  WgmmaSizes s = sizes;
  s.m = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(s.m)));
  s.k = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(s.k)));
  return s;
}

std::int64_t wgmma_steps(const WgmmaSizes& s) { return divide_up(s.k * s.item, kWgmmaLine); }

std::int64_t wgmma_tiles(const WgmmaSizes& s, const WgmmaConfig& config) {
  return divide_up(s.m, config.rows * config.cluster) * divide_up(s.n, kWgmmaColumns);
}

int wgmma_stages(const WgmmaConfig& config, bool turns) {
  if (config.rows == 128) return 5;
  return turns ? 6 : 8;
}

double wgmma_microseconds(const GpuModel& gpu, const WgmmaSizes& s) {
  constexpr double kShare = 0.65;  // of the tensor cores' rate
  const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n),
             k = static_cast<double>(s.k);
  return microseconds(gpu, {.bytes = m * n * 4 + (m + n) * k * s.item,
                            .multiply_adds = m * n * k,
                            .rate = kShare * (s.item == 2 ? gpu.half : gpu.tf32)});
}

WgmmaConfig choose_wgmma(const GpuModel& gpu, const WgmmaSizes& sizes) {
  const WgmmaSizes s = wgmma_class(sizes);
  WgmmaConfig config;
  config.rows = s.m <= 64 ? 64 : 128;
  config.splits = splits_for(gpu, s, config);
  config.cluster = s.m > 128 && config.splits == 1 ? 2 : 1;
  return config;
}

std::vector<WgmmaConfig> wgmma_configs(const GpuModel& gpu, const WgmmaSizes& s) {
  const WgmmaConfig chosen = choose_wgmma(gpu, s);
  std::vector<WgmmaConfig> all = {chosen};
  const auto add = [&](WgmmaConfig other) {
    if (is_possible(s, other) && !contains(all, other)) all.push_back(other);
  };
  add({chosen.rows, s.m > 128 ? 3 - chosen.cluster : 1, 1});
  add({chosen.rows, 1, 2 * chosen.splits});
  add({chosen.rows, 1, chosen.splits / 2});
  add({64, 1, 1});
  return all;
}

std::string wgmma_config_name(const WgmmaConfig& c) {
  return cat(c.rows, "-", c.cluster, "/", c.splits);
}

WgmmaConfig wgmma_config_named(const WgmmaSizes& sizes, const std::string& name) {
  WgmmaConfig c;
  for (c.rows = 64; c.rows <= 128; c.rows += 64)
    for (c.cluster = 1; c.cluster <= 2; ++c.cluster)
      for (c.splits = 1; is_possible(sizes, c); ++c.splits)
        if (wgmma_config_name(c) == name) return c;
  refuse_config("wgmma", name);
}

bool wgmma_is_worth(const GpuModel& gpu, const WgmmaSizes& s) {
  const std::int64_t work = s.m * s.n * s.k;
  // Short sums pay only for large results, which are written at the memory's bandwidth.
  const std::int64_t shortest = s.m * s.n >= std::int64_t{1} << 22 ? 64 : 256;
  if (!s.casts && std::min(s.m, s.n) >= 16 && s.k >= shortest && work >= std::int64_t{1} << 27)
    return true;
  // Transposing the operands costs as much as the extra kernel over the result that cuBLASLt needs.
  if (s.casts && s.item == 4 && (s.m + s.n) * s.k > 2 * s.m * s.n) return false;
  const std::int64_t tiles = divide_up(s.m, 128) * divide_up(s.n, kWgmmaColumns);
  return std::min({s.m, s.n, s.k}) >= 256 && tiles * kFitted >= 48 * gpu.multiprocessors &&
         work >= std::int64_t{1} << 30;
}

}  // namespace tenon::cuda
