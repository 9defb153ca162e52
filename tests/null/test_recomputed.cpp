// Differences from channel means are recomputed by their readers on a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "planning.h"

using namespace tenon;

namespace {

// The number of values of the convolution result's size that steps write.
std::ptrdiff_t large_values(const Program& program, const Shape& shape) {
  return std::count_if(program.values.begin(), program.values.end(), [&shape](const Value& v) {
    return v.shape == shape && v.kind == Value::Kind::Arena;
  });
}

std::vector<Tensor> normalised_convolution() {
  const Tensor x = test::leaf({4, 8, 12, 12}), w = test::leaf({24, 8, 3, 3}),
               scale = test::leaf({24}), shift = test::leaf({24});
  const Tensor y = conv2d(x, w);
  const Moments m = batch_moments(y);
  const Tensor out = relu(batch_norm(y, m.mean, m.var, scale, shift, 1e-5));
  std::vector<Tensor> roots = grad(sum(out * out), std::vector<Tensor>{w, scale, shift});
  roots.push_back(sum(out));
  return roots;
}

}  // namespace

TEST_CASE("recomputed: batch normalisation on a GPU writes no differences from the mean") {
  const Shape shape{4, 24, 10, 10};
  const std::vector<Tensor> roots = normalised_convolution();
  const auto gpu = test::planned(roots);
  CHECK(large_values(*gpu, shape) == 3);
  for (const Step& step : gpu->steps) CHECK(step.region.title != "sub");
}
