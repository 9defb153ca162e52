// Planning ahead with variables that have no memory.
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/eval.h>
#include <tenon/ops.h>

#include <tenon/shapes_only.h>
#include "graph/node.h"

using namespace tenon;

TEST_CASE("shapes only: a variable has no memory, and its value is not computed") {
  Tensor weight;
  const Tensor drawn = rand({64, 32});
  {
    const ShapesOnly shapes;
    weight = variable(drawn, "weight");
    set_value(weight, zeros({64, 32}));
    CHECK(ShapesOnly::is_on());
  }
  CHECK_FALSE(ShapesOnly::is_on());
  CHECK(is_variable(weight));
  CHECK(weight.shape() == Shape{64, 32});
  CHECK(weight.device() == default_device());
  CHECK(weight.node()->value->bytes() == 0);
  CHECK_FALSE(drawn.node()->realised());
  CHECK(variable(drawn).node()->value->bytes() == 64 * 32 * sizeof(float));
}

TEST_CASE("shapes only: the plan equals that of variables with memory") {
  const auto plan = [](bool shapes_only) {
    std::optional<ShapesOnly> shapes;
    if (shapes_only) shapes.emplace();
    const Tensor weight = variable(zeros({64, 32}));
    const Tensor input = without_memory({8, 32}, DType::Float32, default_device());
    return compile([&](const std::vector<Tensor>& in) {
             const Tensor y = tanh(matmul(in[0], transpose(weight, 0, 1)));
             return std::vector<Tensor>{y, assign(weight, weight * 0.5f)};
           })
        .plan({input})
        .steps();
  };
  CHECK(plan(true) == plan(false));
}
