// NHWC feature maps on a GPU, real or emulated: the same numbers as on the CPU, which keeps NCHW.
#include <doctest/doctest.h>

#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "gpu.h"

using namespace tenon;

namespace {

struct Sizes {
  std::int64_t images, channels, filters, height, width;
};

// Integers, few enough that sums of products are exact in bfloat16 and float32.
Tensor numbers(const Shape& shape, std::int64_t step, std::int64_t values) {
  std::vector<float> all;
  all.reserve(static_cast<std::size_t>(shape.numel()));
  const std::int64_t least = -(values / 2);
  for (std::int64_t k = 0; k < shape.numel(); ++k)
    all.push_back(static_cast<float>(k * step % values + least));
  return Tensor::from(all, shape);
}

// Convolutions by one pixel around one by nine, a sum around all, and what reads images in every
// other way: reductions, padding, slices, pooling, reshapes.
std::vector<std::vector<float>> results(const Sizes& s) {
  const Shape image{s.images, s.channels, s.height, s.width};
  const Tensor x = numbers(image, 5, 7), w = numbers({s.filters, s.channels, 1, 1}, 2, 3),
               back = numbers({s.channels, s.filters, 1, 1}, 4, 3),
               nine = numbers({s.filters, s.filters, 3, 3}, 7, 3);
  const Tensor inner = relu(conv2d(x, w));
  const Tensor outer = conv2d(inner, back) + x;
  const Tensor wide = conv2d(inner, nine, {}, {{1, 1}, {1, 1}});
  std::vector<Tensor> all{inner,
                          outer,
                          wide + inner,
                          sum(outer, {0, 2, 3}),
                          sum(outer, {1}),
                          sum(outer, {2, 3}),
                          sum(outer, {0}),
                          amax(outer, {1, 3}),
                          pad(outer, {1, 2, 0, 1, 3, 0}),
                          outer.size(3) > 2 ? slice(outer, 3, 0, s.width, 2) * 2.0 : outer * 2.0,
                          reshape(outer, {s.images, -1}) + 1.0,
                          permute(outer, {0, 2, 3, 1}) + 1.0,
                          max_pool2d(outer, {.kernel = {1, 1}})};
  const Tensor loss = sum(outer * numbers(image, 11, 3)) + sum(wide * numbers(wide.shape(), 3, 3));
  for (const Tensor& g : grad(loss, std::vector<Tensor>{x, w, back, nine})) all.push_back(g);
  eval(all);
  std::vector<std::vector<float>> values;
  values.reserve(all.size());
  for (const Tensor& t : all) values.push_back(t.to_vector<float>());
  return values;
}

}  // namespace

TEST_CASE("layout: channels-last images have the CPU's numbers") {
  if (!test::has_gpu()) return;
  for (const Sizes& s : {Sizes{2, 16, 24, 5, 7}, Sizes{1, 24, 16, 4, 4}, Sizes{3, 16, 16, 1, 1},
                         Sizes{2, 20, 16, 3, 3}}) {
    CAPTURE(s.channels);
    CAPTURE(s.height);
    const auto wanted = results(s);
    for (const Precision precision : {Precision::Bf16, Precision::Tf32, Precision::Fp32}) {
      set_device("cuda");
      set_precision(precision);
      const auto got = results(s);
      set_precision(Precision::Fp32);
      set_device("cpu");
      REQUIRE(got.size() == wanted.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        CAPTURE(k);
        CHECK(got[k] == wanted[k]);
      }
    }
  }
}
