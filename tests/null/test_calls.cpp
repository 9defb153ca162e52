// Equal steps share a kernel on the host, and on no GPU.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "big_graphs.h"
#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

std::size_t kernels_of(const Program& program) {
  std::set<const Kernel*> kernels;
  for (const Step& step : program.steps) kernels.insert(step.kernel.get());
  return kernels.size();
}

}  // namespace

TEST_CASE("calls: a deep network of equal layers has no more kernels than a shallow one") {
  const auto few = planned(deep_mlp(30), {.kind = Device::Kind::Cpu});
  const auto many = planned(deep_mlp(300), {.kind = Device::Kind::Cpu});
  CHECK(many->steps.size() > 9 * few->steps.size());
  CHECK(kernels_of(*many) == kernels_of(*few));
  CHECK(kernels_of(*many) < 16);
  REQUIRE(many->calls.size() == many->steps.size());
  for (std::size_t s = 0; s < many->steps.size(); ++s) {
    const KernelCall& call = many->calls[s];
    CHECK(call.kernel == many->steps[s].kernel.get());
    CHECK(call.bound == many->steps[s].bound.size());
  }
}

TEST_CASE("calls: steps that differ for their kernel have separate kernels") {
  const Tensor x = leaf({7, 5});
  const auto kernels = [&](const std::vector<Tensor>& different) {
    std::vector<Tensor> roots = different;
    roots.push_back(x);
    for (int k = 0; k < 50; ++k) roots.back() = sort(roots.back() * 2.0).values;
    return kernels_of(*planned(roots, {.kind = Device::Kind::Cpu}));
  };
  const std::size_t same = kernels({});
  CHECK(same == 4);  // inputs and intermediates; the last step's result is an output
  CHECK(kernels({sort(leaf({7, 6})).values}) == same + 1);
  CHECK(kernels({sort(leaf({7, 5}, DType::Int32)).values}) == same + 1);
  CHECK(kernels({sort(x, -1, true).values}) == same + 1);
  CHECK(kernels({x * 2.0, x * 3.0}) > same + 1);
}

TEST_CASE("calls: on a GPU each step has its own kernel") {
  const auto program = planned(deep_mlp(30));
  CHECK(kernels_of(*program) == program->steps.size());
  for (const KernelCall& call : program->calls) CHECK(call.bound == 0);
}
