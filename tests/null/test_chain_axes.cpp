// The axis of slices in each region's own terms, and the region for one slice.
#include <doctest/doctest.h>

#include "plan/merge/slices.h"

using namespace tenon;

namespace {

View view_of(ValueId value, std::initializer_list<std::int64_t> strides, std::int64_t offset = 0) {
  View view;
  view.value = value;
  view.offset = offset;
  int d = 0;
  for (const std::int64_t stride : strides) view.stride[d++] = stride;
  return view;
}

Value value_of(const Shape& shape) {
  Value value;
  value.shape = shape;
  return value;
}

/// Loads one view and stores it through another.
Region copy(const Shape& space, const View& from, const View& to) {
  Region region;
  region.map.space = space;
  MapInstr load;
  load.view = from;
  region.map.instrs.push_back(load);
  region.map.stores.push_back({0, to});
  region.reads = {from.value};
  region.writes = {to.value};
  return region;
}

Capabilities able() {
  Capabilities can;
  can.no_slices = nullptr;
  return can;
}

}  // namespace

TEST_CASE("chain axes: a merged axis is split where slices are cut along a part of it") {
  const std::vector<Value> values{value_of({20, 6, 5}), value_of({20, 6, 5})};
  Region part = copy({600}, view_of(0, {1}), view_of(1, {1}));
  std::vector<ChainAccess> known{{0, 5 * 4, 20}};  // the second axis
  REQUIRE(find_axis(part, able(), values, 6, known) == nullptr);
  CHECK(part.map.space == Shape{20, 6, 5});
  CHECK(part.axis == 1);
  REQUIRE(list_accesses(part, able(), values, 6, known) == nullptr);
  REQUIRE(known.size() == 2);
  CHECK(known[1].step == 20);
  CHECK(known[1].places == 20);
  Region chain;
  chain.samples = 6;
  chain.local = {1};
  std::vector<Value> shapes = values;
  const Region slice = sliced(part, able(), chain, 2, shapes);
  CHECK(slice.map.space == Shape{20, 2, 5});
  CHECK(slice.map.instrs[0].view.stride[0] == 30);  // in the whole tensor
  CHECK(slice.map.stores[0].view.stride[0] == 10);  // contains the slice only
}

TEST_CASE("chain axes: axes read in another order, along rows or summed over are refused") {
  const std::vector<Value> values{value_of({20, 30}), value_of({20, 30}), value_of({20})};
  const auto refused = [&](Region part) {
    std::vector<ChainAccess> known{{0, 30 * 4, 1}};
    if (find_axis(part, able(), values, 20, known) != nullptr) return true;
    return list_accesses(part, able(), values, 20, known) != nullptr;
  };
  const View in = view_of(0, {30, 1}), out = view_of(1, {30, 1});
  CHECK_FALSE(refused(copy({20, 30}, in, out)));
  CHECK(refused(copy({20, 30}, in, view_of(1, {1, 20}))) == false);  // the sliced axis itself
  CHECK(refused(copy({19, 30}, view_of(0, {30, 1}, 30), view_of(1, {30, 1}))));  // one row further
  CHECK(refused(copy({20, 30}, in, view_of(2, {0, 0}))));  // every slice writes the same elements
  Region sums = copy({20, 30}, in, out);
  sums.map.reduces.push_back({0, Op::Sum, 0b01, 2});
  CHECK(refused(sums));
  Region permuted = copy({30, 20}, view_of(0, {1, 30}), view_of(1, {1, 30}));
  CHECK_FALSE(refused(permuted));
  permuted.map.has_rows = true;
  CHECK(refused(permuted));
}
