// Model constants, fitted to measurements on an H100.
#include "cuda/engines/products/bf16x6_config.h"

#include <algorithm>
#include <utility>

#include "base/index.h"
#include "base/sort.h"
#include "base/str.h"
#include "cuda/engines/launch/tile.h"
#include "cuda/kernels/gemm/gemm_wgmma_args.cuh"

namespace tenon::cuda {
namespace {

constexpr int kMostBf16x6Blocks = 8;  // of a cluster

/// The actual sums of a size class may be half as long as the size of the class.
bool bf16x6_is_possible(const WgmmaSizes& s, const WgmmaConfig& config) {
  return config.splits * config.cluster <= kMostBf16x6Blocks &&
         (config.splits == 1 || 2 * config.splits <= wgmma_steps(s));
}

/// Number of clusters that run at once. A cluster is within one group of about sixteen
/// multiprocessors, and some groups are incomplete: 132 multiprocessors hold 30 clusters of four or
/// 15 of eight.
std::int64_t bf16x6_room_for(const GpuModel& gpu, int blocks) {
  if (blocks <= 2) return gpu.multiprocessors / blocks;
  return std::max(1, gpu.multiprocessors / 16 * (16 / blocks) * 15 / 16);
}

}  // namespace

int bf16x6_blocks(const GpuModel& gpu, const WgmmaSizes& s, const WgmmaConfig& config) {
  const int blocks = config.cluster * config.splits;
  const auto tiles = static_cast<int>(wgmma_tiles(s, config));
  return (config.splits > 1 ? tiles : std::min(tiles, gpu.multiprocessors / blocks)) * blocks;
}

double bf16x6_microseconds(const GpuModel& gpu, const WgmmaSizes& s, const WgmmaConfig& config) {
  constexpr double kShare = 0.7;        // of the tensor cores' rate
  constexpr double kAroundTile = 6000;  // cycles that fill the ring and write the sums
  constexpr double kAlone = 1.05;       // factor for blocks without a neighbour that shares columns
  const double multiply_adds =
      6.0 * 128 * kWgmmaColumns * kWgmmaPartsDepth / (kShare * gpu.half);  // cycles a stage
  const int blocks = config.cluster * config.splits;
  const std::int64_t rounds = divide_up(wgmma_tiles(s, config), bf16x6_room_for(gpu, blocks));
  const double stages = static_cast<double>(divide_up(wgmma_steps(s), config.splits));
  const double cycles = static_cast<double>(rounds) *
                        (stages * multiply_adds * (config.cluster == 1 ? kAlone : 1) + kAroundTile);
  return gpu.cycles_to_microseconds(cycles) + gpu.launch_us;
}

std::vector<WgmmaConfig> bf16x6_configs(const GpuModel& gpu, const WgmmaSizes& s) {
  constexpr std::size_t kMost = 4;
  std::vector<std::pair<double, WgmmaConfig>> all;
  for (int cluster = s.m > 128 ? 2 : 1; cluster >= 1; --cluster)
    for (int splits = 1; bf16x6_is_possible(s, {128, cluster, splits}); ++splits)
      all.emplace_back(bf16x6_microseconds(gpu, s, {128, cluster, splits}),
                       WgmmaConfig{128, cluster, splits});
  sort_stably(all, [](const auto& x, const auto& y) { return x.first < y.first; });
  if (all.size() > kMost) all.resize(kMost);
  std::vector<WgmmaConfig> best;
  best.reserve(all.size());
  for (const auto& [time, config] : all) best.push_back(config);
  return best;
}

WgmmaConfig bf16x6_config_named(const WgmmaSizes& sizes, const std::string& name) {
  WgmmaConfig c{128, 1, 1};
  for (; c.cluster <= 2; ++c.cluster)
    for (c.splits = 1; bf16x6_is_possible(sizes, c); ++c.splits)
      if (wgmma_config_name(c) == name) return c;
  refuse_config("bf16x6", name);
}

}  // namespace tenon::cuda
