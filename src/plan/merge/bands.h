// Bands: which rows of each value the parts of a chain meet while it makes a few rows of images,
// and the regions that do so.
//
// A slice of a chain in bands is a band of rows of one entry (slices.h). Bands of the last part's
// result share its rows out. What a part before it makes is what the next one reads of it: rows in
// one piece, which overlap from band to band where windows do, and are made twice. A row outside
// the image is padding, so that a part pads above in the first bands, below in the last and between
// them not at all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/engine.h"
#include "plan/merge/slices.h"

namespace tenon {

struct Rows {
  std::int64_t first = 0, count = 0;
  bool operator==(const Rows&) const = default;
};

/// Row r of a result is made of the operand's rows [r * stride - pad, r * stride - pad + reach).
struct RowWindow {
  std::int64_t stride = 1, pad = 0, reach = 1;

  /// Rows that these are made of, some of which may lie outside.
  Rows of(Rows made) const {
    return {made.first * stride - pad, (made.count - 1) * stride + reach};
  }
};

/// A part's rows, as it names them itself.
struct PartRows {
  RowWindow window;
  ValueId operand = kNoValue;  // whose rows the window crosses; a map has none
  ValueId result = kNoValue;   // what else than a map writes; engines take both in one piece
  std::int64_t operand_rows = 0, rows = 0;
  std::vector<ChainAccess> accesses;  // values that have rows; of the operand, operand_rows

  /// Null for a value that the part meets whole or not at all.
  const ChainAccess* find(ValueId id) const;
};

/// Finds the axis of rows of a part whose axis of entries is known, from values that are known to
/// have rows: a map's space is split where rows are a part of one of its axes. Null, or why there
/// is none.
const char* find_rows(Region& part, const Capabilities& can, std::span<const Value> values,
                      std::int64_t rows, std::span<const ChainAccess> known);

/// How the part meets rows, Region::rows_axis being known. Null, or why it cannot run in bands.
const char* list_rows(const Region& part, std::span<const Value> values, PartRows& out);

/// A part in one band.
struct PartBand {
  Rows made, read;       // of its result, and of its operand inside the image
  std::int64_t pad = 0;  // rows of padding above those
};

/// What each part of a chain meets where the last one makes these rows. False where parts do not
/// hand on rows from one to the next. Of an image without ends, where it is not `clipped`.
bool list_bands(const Region& chain, std::span<const PartRows> parts, Rows result, bool clipped,
                std::vector<PartBand>& out);

/// The part as it runs in a band, made of what it is for one entry (rounded to 16 bits()). `values`
/// takes the shapes that go with it.
Region cut_to_band(const Region& part, const PartRows& rows, const PartBand& band,
                   const Region& chain, std::span<Value> values);

}  // namespace tenon
