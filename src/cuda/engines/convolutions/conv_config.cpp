// What follows from the share of a block: units, bytes of shared memory, a name.
#include "cuda/engines/convolutions/conv_config.h"

#include "base/index.h"
#include "base/str.h"

namespace tenon::cuda {

std::int64_t conv_patch_units(const ConvShape& s, const ConvConfig& c) {
  return c.images * s.reach(s.rows, c.rows) * s.reach(s.columns, c.columns);
}

std::int64_t conv_staged_bytes(const ConvShape& shape, const ConvConfig& config) {
  const std::int64_t units = config.chunk * shape.taps(), table = (units + 4) / 4;
  return 16 * (table + conv_patch_units(shape, config) * conv_patch_pitch(config) +
               config.tile.m * conv_row_pitch(shape, config));
}

std::int64_t conv_sums_bytes(const ConvConfig& config) {
  return config.tile.sums_bytes(config.tile.groups(32));
}

std::int64_t conv_staged_pixels(const ConvShape& s, const ConvConfig& c) {
  const std::int64_t slice = 2 * s.vector;
  return divide_up(c.images * conv_slots(c), slice) * slice;
}

std::int64_t conv_row_pitch(const ConvShape& shape, const ConvConfig& config) {
  const std::int64_t units = shape.filter_gradient
                                 ? conv_staged_pixels(shape, config) / shape.vector
                                 : divide_up(config.chunk * shape.taps(), 2) * 2;
  return units | 1;
}

std::string config_name(const ConvConfig& c) {
  return cat(c.tile.m, "x", c.tile.n, "-", c.tile.threads, " ", c.images, "x", c.rows, "x",
             c.columns, " ", c.chunk, "/", c.cells, c.by_rows ? " rows" : "");
}

}  // namespace tenon::cuda
