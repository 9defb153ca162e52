// Collects what regions read and write from their instructions.
#include "plan/program/region.h"

#include "base/contains.h"

namespace tenon {
namespace {

void once(std::vector<ValueId>& list, ValueId id) {
  if (id != kNoValue && !contains(list, id)) list.push_back(id);
}

}  // namespace

void list_values(const Region& region, std::vector<ValueId>& reads, std::vector<ValueId>& writes) {
  reads.clear();
  writes.clear();
  for (const MapProgram* map : {&region.map, &region.prologue_a, &region.prologue_b})
    for (const MapInstr& instr : map->instrs) once(reads, instr.view.value);
  for (const MapStore& store : region.map.stores) once(writes, store.view.value);
  for (const MapReduce& reduce : region.map.reduces) once(writes, reduce.value);
  if (region.kind == RegionKind::Contraction) {
    once(reads, region.contraction.a.value);
    once(reads, region.contraction.b.value);
    once(writes, region.contraction.out);
  }
  if (region.kind == RegionKind::Opaque) {
    for (ValueId id : region.opaque.inputs) once(reads, id);
    for (ValueId id : region.opaque.outs) once(writes, id);
  }
}

}  // namespace tenon
