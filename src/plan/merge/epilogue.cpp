// Moves map instructions over a product's result into the product's epilogue. Shared by the rules
// in reductions.cpp and product_columns.cpp.
#include "plan/merge/epilogue.h"

#include <algorithm>

#include "base/contains.h"
#include "base/index.h"
#include "plan/program/strides.h"
#include "plan/regions/groups.h"

namespace tenon {
namespace {

int push(MapProgram& map, const MapInstr& instr) {
  map.instrs.push_back(instr);
  return static_cast<int>(map.instrs.size()) - 1;
}

/// The instruction that computes a value which the product writes.
int source_of(Region& product, ValueId id) {
  MapProgram& map = product.map;
  for (const MapStore& store : map.stores)
    if (store.view.value == id) return store.source;
  for (std::size_t i = 0; i < map.instrs.size(); ++i)
    if (map.instrs[i].code == MapCode::Accumulator) return static_cast<int>(i);
  MapInstr result;
  result.code = MapCode::Accumulator;
  result.dtype = product.contraction.dtype;
  return push(map, result);
}

}  // namespace

bool is_written(const Region& region, ValueId id) { return contains(region.writes, id); }

Shape space_of_epilogue(const Region& product) {
  const Contraction& c = product.contraction;
  return epilogue_space(c.op, c.out_shape, c.channels_last);
}

bool reads_in_order(const Region& product, const MapProgram& map, const View& view) {
  if (!is_contiguous(view, map.space) || map.space.numel() != product.contraction.out_shape.numel())
    return false;
  return view.value == product.contraction.out ||
         std::any_of(product.map.stores.begin(), product.map.stores.end(),
                     [&](const MapStore& store) {
                       return store.view.value == view.value &&
                              is_contiguous(store.view, product.map.space);
                     });
}

std::vector<int> add_to_epilogue(Region& product, const MapProgram& added,
                                 const std::function<View(const View&)>& over_result) {
  MapProgram& map = product.map;
  if (!product.contraction.has_epilogue) map.space = space_of_epilogue(product);
  product.contraction.has_epilogue = true;
  std::vector<int> place;
  for (MapInstr instr : added.instrs) {
    if (instr.code == MapCode::RowReduce) {
      place.push_back(-1);
      continue;
    }
    if (instr.code == MapCode::Load && is_written(product, instr.view.value)) {
      place.push_back(source_of(product, instr.view.value));
      continue;
    }
    if (instr.code == MapCode::Load) instr.view = over_result(instr.view);
    for (int& arg : instr.args)
      if (arg >= 0) arg = place[at(arg)];
    instr.per_row = false;
    place.push_back(push(map, instr));
  }
  return place;
}

}  // namespace tenon
