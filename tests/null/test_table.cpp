// Walks the table of ops: each row is whole, names are unique, and rules agree with what they say.
#include <doctest/doctest.h>

#include <set>
#include <string>

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
    CHECK((row.vjp == nullptr) == (row.no_grad_reason != nullptr));
    CHECK((row.decompose != nullptr) == (row.kind == OpKind::Composite));
    CHECK(row.arity >= -1);
    CHECK(row.arity <= 4);
    if (row.no_grad_reason != nullptr) CHECK(std::string(row.no_grad_reason).size() > 10);
  }
}
