// The case table with passes of the planner switched off: results stay the same, and the other
// passes leave sound graphs and regions.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <tenon/compute.h>

#include "cases/modes.h"
#include "cases/passes.h"
#include "graph/node.h"
#include "graph/order.h"
#include "null/planning.h"
#include "plan/program/passes.h"

using namespace tenon;

namespace cases {
namespace {

void check_values(Precision precision, double factor) {
  each_case([&, number = std::size_t{0}](const Case& c) mutable {
    set_precision(precision);
    const Values wanted = values(c, DType::Float32);
    for (const std::string& pass : passes_off(number++)) {
      INFO("without " << pass);
      const WithoutPass off(pass);
      compare(c, values(c, DType::Float32), wanted, c.tolerance * factor);
    }
  });
}

PassSet set_of(const std::string& pass) {
  for (int k = 0; k < int{kPassCount}; ++k)
    if (pass == pass_info(k).name) return {static_cast<PassId>(k)};
  FAIL("no pass is called " << pass);
  return {};
}

/// Host code on tensors of a GPU is planned for the CPU, between transfers (tests/cuda).
bool calls_host(const std::vector<Tensor>& roots) {
  const std::vector<Node*> nodes = topological_order(roots);
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node* node) { return node->op == Op::HostCall; });
}

/// Plans the case for a CPU, a GPU, and a GPU with its libraries, and checks after each pass.
void check_plans(const Case& c, Precision precision, PassSet disabled) {
  set_precision(precision);
  const std::vector<Tensor> roots = results(c, DType::Float32);
  for (const bool on_gpu : {false, true})
    for (const bool has_libraries : {false, true}) {
      if ((has_libraries && !on_gpu) || (on_gpu && calls_host(roots))) continue;
      CAPTURE(on_gpu);
      CAPTURE(has_libraries);
      const auto program =
          test::planned(roots, {.kind = on_gpu ? Device::Kind::Cuda : Device::Kind::Cpu,
                                .disabled = disabled,
                                .checks_passes = true,
                                .convolves_channels_last = has_libraries,
                                .has_product_library = has_libraries});
      CHECK(!program->steps.empty());
    }
}

}  // namespace

TEST_CASE("cases: passes switched off, float32") { check_values(Precision::Fp32, 1); }
TEST_CASE("cases: passes switched off, products of bfloat16 operands") {
  check_values(Precision::Bf16, 2e3);
}

TEST_CASE("cases: passes switched off, plans of all devices are sound") {
  each_case([number = std::size_t{0}](const Case& c) mutable {
    const Precision precision = number % 2 == 0 ? Precision::Bf16 : Precision::Fp32;
    check_plans(c, precision, {});
    for (const std::string& pass : passes_off(number++)) {
      INFO("without " << pass);
      check_plans(c, precision, set_of(pass));
    }
  });
}

}  // namespace cases
