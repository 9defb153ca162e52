// Bands: which rows of each value the parts of a chain read and write when the chain computes a few
// rows of a feature map, and the regions that do so.
//
// A slice of a chain in bands is a band of rows of one entry (slices.h). The bands divide the rows
// of the last part's result. Each earlier part computes the rows that the next part reads: a
// contiguous range. Where windows overlap, ranges of neighbouring bands overlap, and the shared
// rows are computed twice. Rows outside the image are padding, so a part pads above in the first
// bands, below in the last bands, and not at all in between.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/merge/slices.h"
#include "plan/program/engine.h"

namespace tenon {

struct Rows {
  std::int64_t first = 0, count = 0;
  bool operator==(const Rows&) const = default;
};

/// Row r of a result is computed from the operand's rows [r * stride - pad, r * stride - pad +
/// reach).
struct RowWindow {
  std::int64_t stride = 1, pad = 0, reach = 1;

  /// The operand's rows for these result rows; some may lie outside the operand.
  Rows of(Rows made) const {
    return {made.first * stride - pad, (made.count - 1) * stride + reach};
  }
};

/// The rows of a part, in the part's own terms.
struct PartRows {
  RowWindow window;
  ValueId operand = kNoValue;  // the operand whose rows the window moves over; a map has none
  ValueId result = kNoValue;   // the result, contiguous like the operand; for all parts but maps
  std::int64_t operand_rows = 0, rows = 0;
  std::vector<ChainAccess> accesses;  // values that have rows; for the operand's rows: operand_rows

  /// Null for a value that the part reads whole or not at all.
  const ChainAccess* find(ValueId id) const;
};

/// Finds the axis of rows in a part whose axis of entries is known, from values that are known to
/// have rows. Splits a map's space if rows are a part of one of its axes. Returns null, or the
/// reason if there is no such axis.
const char* find_rows(Region& part, const Capabilities& can, std::span<const Value> values,
                      std::int64_t rows, std::span<const ChainAccess> known);

/// How the part reads and writes rows; Region::rows_axis must be set. Returns null, or why it
/// cannot run in bands.
const char* list_rows(const Region& part, std::span<const Value> values, PartRows& out);

/// One part in one band.
struct PartBand {
  Rows made, read;       // rows of its result; rows of its operand inside the image
  std::int64_t pad = 0;  // rows of padding above
};

/// Computes the rows of every part if the last part computes the rows `result`. Returns false if
/// the rows that a part computes are not those that the next part reads. Without `clipped`, rows
/// are not limited to the image.
bool list_bands(const Region& chain, std::span<const PartRows> parts, Rows result, bool clipped,
                std::vector<PartBand>& out);

/// The part for one band, derived from the part for one entry (see sliced()). `values` receives the
/// shapes that go with it.
Region cut_to_band(const Region& part, const PartRows& rows, const PartBand& band,
                   const Region& chain, std::span<Value> values);

}  // namespace tenon
