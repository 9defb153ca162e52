// The share of the work that a block of the convolution kernels takes: tile, pixels, and for weight
// gradients the number of cells that are summed before partial results are added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "cuda/engines/convolutions/conv_shape.h"

namespace tenon::cuda {

struct ConvConfig {
  Tile tile{};  // thread_m x thread_n are a warp's
  // A block's pixels: images x rows x columns. For a weight gradient `images` is the number of
  // cells at a time.
  std::int64_t images = 1, rows = 1, columns = 1;
  std::int64_t chunk = 1;  // groups of units staged at a time; weight gradient: of a block
  std::int64_t cells = 1;  // weight gradient: cells of a block
  // Uses conv_rows.cuh. For a weight gradient: loads images by pieces (conv_pieces.cuh).
  bool by_rows = false;
  int store_vector = 1;  // neighbours that the epilogue gets (by_rows: that are loaded) at once
  int aligned = 1;       // pixels of the gradient that can be loaded at once
  std::int64_t shared_bytes = 0;
  double cycles = 0;  // expected
};

/// "32x128-256 1x11x11 4": tile and threads, images x rows x columns, groups of units; "/2": cells.
std::string config_name(const ConvConfig& config);

/// Positions of a patch that a block stages.
std::int64_t conv_patch_units(const ConvShape& shape, const ConvConfig& config);
/// Units from one row of the filters, or of the output gradient, to the next: odd.
std::int64_t conv_row_pitch(const ConvShape& shape, const ConvConfig& config);
/// Shared memory of a block of a convolution in bytes: operands, sums, and the maximum of both.
std::int64_t conv_staged_bytes(const ConvShape& shape, const ConvConfig& config);
std::int64_t conv_sums_bytes(const ConvConfig& config);
inline constexpr std::int64_t kMostPatchBytes = 99 * 1024;  // every GPU since 8.0 has it
/// Units from one position of a patch to the next: odd.
inline std::int64_t conv_patch_pitch(const ConvConfig& config) { return config.chunk | 1; }
/// Number of parts per channel that a block stores if the epilogue reduces channels.
inline std::int64_t conv_parts(const ConvConfig& config) {
  constexpr std::int64_t kLanes = 32;
  return std::max<std::int64_t>(config.tile.n / config.store_vector / kLanes, 1);
}
/// Slots that a block of a weight gradient has at a time, in whole slices of k.
std::int64_t conv_staged_pixels(const ConvShape& shape, const ConvConfig& config);
/// Slots of a weight gradient's cell for its pixels.
inline std::int64_t conv_slots(const ConvConfig& config) {
  const std::int64_t item = config.aligned == 1 ? 2 : config.aligned;
  return (config.rows * config.columns + item - 1) / item * item;
}

}  // namespace tenon::cuda
