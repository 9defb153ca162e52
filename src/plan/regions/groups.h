// Groups of items, each of which becomes one region (plan/steps/emit.h).
#pragma once

#include <string>
#include <vector>

#include "plan/program/program.h"
#include "plan/regions/items.h"

namespace tenon {

enum class Role : std::uint8_t {
  Element,    // one value for each element of the space
  PerRow,     // one value for each row
  RowReduce,  // reduces the row; the per-row result is usable in the same loop nest
  Column,     // reduces other axes; the result is an output only
};

struct Group {
  RegionKind kind = RegionKind::Map;
  std::vector<int> items;       // ascending
  int contraction = -1;         // the contraction whose epilogue the other items form
  Shape space;                  // uncollapsed iteration space of the map part
  int row_axes = 0;             // trailing axes that form the row; 0: no rows
  std::vector<int> recomputed;  // items of other groups that are recomputed here, ascending
  std::vector<std::string> notes;
};

struct Fused {
  std::vector<Group> groups;  // unordered
  std::vector<int> group_of;  // by item; -1 for leaves and numbers
  std::vector<Role> role;     // by item
  std::vector<SizeLimit> limits;
};

/// The three axes [batch, rows, columns] of a contraction's epilogue, for its op and the shape of
/// its result.
Shape epilogue_space(Op op, const Shape& result, bool channels_last);
Shape epilogue_space(const Item& contraction);

}  // namespace tenon
