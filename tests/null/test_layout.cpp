// Which images a card keeps with the channels last, on plans.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "planning.h"

using namespace tenon;

namespace {

Tensor normalised(const Tensor& y, const Tensor& scale) {
  const Moments m = batch_moments(y);
  return batch_norm(y, m.mean, m.var, scale, scale, 1e-5);
}

// Two convolutions by one pixel with normalisation between and a sum around them, and gradients.
std::vector<Tensor> pointwise_block() {
  const Tensor x = test::leaf({4, 32, 6, 6}, DType::BFloat16),
               narrow = test::leaf({16, 32, 1, 1}, DType::BFloat16),
               wide = test::leaf({32, 16, 1, 1}, DType::BFloat16), scale = test::leaf({16}),
               wide_scale = test::leaf({32});
  const Tensor inner = relu(normalised(conv2d(x, narrow), scale));
  const Tensor y = relu(normalised(conv2d(cast(inner, DType::BFloat16), wide), wide_scale) + x);
  return grad(sum(y * y), std::vector<Tensor>{x, narrow, wide, scale, wide_scale});
}

std::ptrdiff_t count_contractions(const Program& program, bool products) {
  return std::count_if(program.steps.begin(), program.steps.end(), [products](const Step& step) {
    const Region& r = step.region;
    return r.kind == RegionKind::Contraction && (r.contraction.op == Op::Matmul) == products;
  });
}

bool is_natural(const View& view, const Shape& space) {
  return space.rank() == 0 || view.stride[space.rank() - 1] <= 1;
}

// Steps that read or write an image in another order than they sweep it.
std::ptrdiff_t count_turns(const Program& program) {
  return std::count_if(program.steps.begin(), program.steps.end(), [](const Step& step) {
    std::vector<Region> maps = step.region.parts;
    maps.push_back(step.region);
    return std::any_of(maps.begin(), maps.end(), [](const Region& r) {
      bool all = true;
      for (const MapInstr& i : r.map.instrs)
        all = all && (i.code != MapCode::Load || is_natural(i.view, r.map.space));
      for (const MapStore& s : r.map.stores) all = all && is_natural(s.view, r.map.space);
      return !all;
    });
  });
}

}  // namespace

TEST_CASE("layout: convolutions by one pixel are products of pixels by channels on a card") {
  const std::vector<Tensor> roots = pointwise_block();
  const auto card = test::planned(roots), cpu = test::planned(roots, {Device::Kind::Cpu});
  CAPTURE(print_steps(*card));
  CHECK(count_contractions(*card, true) == 6);
  CHECK(count_contractions(*card, false) == 0);
  CHECK(count_contractions(*cpu, true) == 0);
  CHECK(count_contractions(*cpu, false) == 6);
  for (const Step& step : card->steps) {
    const Contraction& c = step.region.contraction;
    if (step.region.kind != RegionKind::Contraction || c.a_shape[0] != 4 * 36) continue;
    CHECK(c.a.stride[1] == 1);
    CHECK(c.a.stride[0] == c.a_shape[1]);
  }
}

TEST_CASE("layout: images are turned where they enter and leave, and nowhere between") {
  const auto card = test::planned(pointwise_block());
  CAPTURE(print_steps(*card));
  CHECK(count_turns(*card) == 2);
}

TEST_CASE("layout: other convolutions keep their images, and full precision its order") {
  const Tensor x = test::leaf({2, 16, 6, 6}, DType::BFloat16);
  for (const Shape& w : {Shape{16, 16, 3, 3}, Shape{12, 16, 1, 1}, Shape{8, 16, 1, 1}}) {
    const auto card = test::planned({conv2d(x, test::leaf(w, DType::BFloat16))});
    CHECK(count_contractions(*card, false) == 1);
  }
  const auto full = test::planned({conv2d(test::leaf({2, 16, 6, 6}), test::leaf({16, 16, 1, 1}))});
  CHECK(count_contractions(*full, false) == 1);
}
