// Walks over the table of ops: rows are complete, names are unique, rules match the rows.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "graph/node.h"
#include "ops/table.h"

using namespace tenon;

TEST_CASE("table: every op has a row with its name, inference, and a gradient or a reason") {
  std::set<std::string> names;
  for (int k = 0; k < kOpCount; ++k) {
    const OpInfo& row = op_info(static_cast<Op>(k));
    CAPTURE(k);
    CHECK(static_cast<int>(row.op) == k);
    REQUIRE(row.name != nullptr);
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK((row.infer != nullptr));
    const bool several = has_trait(row.op, kSeveralResults);
    CHECK((row.infer_result != nullptr) == several);
    CHECK((row.result_count != nullptr) == several);
    if (row.kind != OpKind::Loop)  // those have theirs in grad/scan.h
      CHECK((row.vjp == nullptr && row.vjp_results == nullptr) == (row.no_grad_reason != nullptr));
    const bool composite = row.kind == OpKind::Composite;
    CHECK((row.decompose != nullptr) == (composite && !several));
    if (composite) CHECK((row.decompose_result != nullptr) == several);
    CHECK(row.arity >= -1);
    CHECK(row.arity <= 4);
    if (row.no_grad_reason != nullptr) CHECK(std::string(row.no_grad_reason).size() > 10);
  }
}

TEST_CASE("table: a node is small, and its attributes with it") {
  CHECK(sizeof(Node) <= 192);
  CHECK(sizeof(Attrs) <= 24);
}

TEST_CASE("table: attributes compare and hash by value") {
  const auto words = [](const Attrs& attrs) {
    std::vector<std::uint64_t> out;
    attrs.each_word([&out](std::uint64_t word) { out.push_back(word); });
    return out;
  };
  SliceAttrs slice;
  slice.start[2] = 3;
  const Attrs a = slice, b = slice;
  CHECK(a == b);
  CHECK(words(a) == words(b));
  slice.step[0] = -1;
  CHECK_FALSE(a == Attrs(slice));
  CHECK(words(a) != words(Attrs(slice)));
  CHECK_FALSE(Attrs(AxisAttrs{0}) == Attrs(ReduceAttrs{0}));  // the same words of another struct
  CHECK(words(AxisAttrs{0}) != words(ReduceAttrs{0}));
  CHECK(a.as<SliceAttrs>().start[2] == 3);
  CHECK_THROWS_AS(a.as<PadAttrs>(), InternalError);
}

TEST_CASE("table: element-wise rows name a function of src/scalar, and no others do") {
  for (const OpRow& row : kOpRows) {
    CAPTURE(row.name);
    const bool special = row.op == Op::Cast || row.op == Op::Where || row.op == Op::OwnElement;
    CHECK((row.function != nullptr) == (row.kind == OpKind::Elementwise && !special));
    CHECK((row.header == nullptr || row.function != nullptr));
  }
}
