// Which reductions of a product's whole result become part of its epilogue on a GPU, and the
// reasons noted for others. Needs no device.
#include <doctest/doctest.h>

#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// The number of results that products reduce while writing.
std::size_t reduced(const Program& p) {
  std::size_t count = 0;
  for (const Step& step : p.steps)
    if (step.region.kind == RegionKind::Contraction) count += step.region.map.reduces.size();
  return count;
}

void check_apart(const Program& p, const std::string& why) {
  const std::string text = print_fusion(p);
  CAPTURE(text);
  CHECK(reduced(p) == 0);
  CHECK(contains(text, why));
}

/// A step of a network that clips by the norm.
std::vector<Tensor> clipped_step(const std::string& model) {
  const nn::AnyModule net = models::create(model);
  optim::Sgd sgd(net, {.lr = 0.1, .momentum = 0.9});
  const Shape input = contains(model, "mlp") ? Shape{64, 784} : Shape{64, 1, 28, 28};
  const Tensor loss = mean(square(net(leaf(input))));
  return sgd.updates(optim::clip_grad_norm(grad(loss, sgd.parameters()), 1).grads);
}

}  // namespace

TEST_CASE("reduced results: a product, its sum of squares and its largest are one step") {
  const Tensor x = leaf({64, 120}), w = leaf({84, 120});
  // Whether one thread block or many would reduce this many elements, in any precision; not for
  // integers.
  for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Bf16}) {
    const PrecisionScope scope(precision);
    const Tensor y = linear(x, w);
    const auto p = planned({sum(square(y)), y});
    CAPTURE(print_fusion(*p));
    CHECK(p->steps.size() == 1);
    CHECK(reduced(*p) == 1);
    CHECK(contains(print_fusion(*p), "while writing it"));
  }
  const Tensor small = linear(leaf({4, 120}), w);
  CHECK(planned({sum(square(small)), small})->steps.size() == 1);
  const Tensor y = linear(x, w);
  const auto two = planned({sum(square(y * 0.5)), amax(y), y});
  CAPTURE(print_fusion(*two));
  CHECK(two->steps.size() == 1);
  CHECK(reduced(*two) == 2);
}

TEST_CASE("reduced results: a result that nobody else reads is not stored") {
  const auto p = planned({sum(square(linear(leaf({64, 120}), leaf({84, 120}))))});
  CAPTURE(print_steps(*p));
  CHECK(p->steps.size() == 1);
  CHECK(p->steps[0].region.contraction.out == kNoValue);
  CHECK_FALSE(contains(print_arena(*p), "float32[64, 84]"));
}

TEST_CASE("reduced results: a map over several results of one product") {
  const Tensor y = linear(leaf({64, 120}), leaf({84, 120})), z = tanh(y);
  const auto p = planned({y, z, sum(y * z)});
  CAPTURE(print_fusion(*p));
  CHECK(p->steps.size() == 1);
  CHECK(reduced(*p) == 1);
  for (const MapInstr& instr : p->steps[0].region.map.instrs) CHECK(instr.code != MapCode::Load);
}

TEST_CASE("reduced results: a factor of all elements may be computed elsewhere") {
  const Tensor y = linear(leaf({64, 120}), leaf({84, 120}));
  const auto p = planned({sum(square(y * (1.0 / leaf({1})))), y});
  CAPTURE(print_fusion(*p));
  CHECK(reduced(*p) == 1);
}

TEST_CASE("reduced results: clipping by the norm reads no large gradient of a weight for it") {
  struct Case {
    const char* model;
    std::size_t products;
  };
  for (const Case& c : {Case{"mlp:784-2100-2100-10", 2}, {"mlp:784-300-10", 1}}) {
    CAPTURE(c.model);
    const std::vector<Tensor> roots = clipped_step(c.model);
    const auto p = planned(roots);
    INFO(print_fusion(*p));
    CHECK(reduced(*p) == c.products);
    CHECK(p->steps.size() <= planned(roots, {.disabled = {kReductions}})->steps.size());
    for (const Step& step : p->steps)
      if (step.region.kind == RegionKind::Contraction && !step.region.map.reduces.empty())
        CHECK(contains(step.region.title, "matmul+square+sum"));
  }
  // Small gradients are read beside the last product.
  for (const char* model : {"lenet5", "keras_cnn"}) {
    CAPTURE(std::string(model));
    check_apart(*planned(clipped_step(model)),
                "a launch of its own beside other steps takes less time");
  }
}

TEST_CASE("reduced channels: a batch's moments and the sums of their gradient") {
  const PrecisionScope scope(Precision::Bf16);
  const Tensor scale = leaf({16}), shift = leaf({16});
  std::vector<Tensor> filters;
  const auto convolution = [&filters](const Tensor& image) {
    filters.push_back(leaf({16, 16, 3, 3}));
    return conv2d(image, filters.back(), {}, {.padding = {1, 1}});
  };
  Tensor image = leaf({128, 16, 32, 32});
  for (int layer = 0; layer < 2; ++layer) {
    const Tensor y = convolution(image);
    const Moments m = batch_moments(y);
    image = relu(batch_norm(y, m.mean, m.var, scale, shift, 1e-5));
  }
  const Tensor loss = mean(square(convolution(image)));
  std::vector<Tensor> roots = grad(loss, filters);
  roots.push_back(loss);
  const auto p = planned(roots);
  const std::string text = print_fusion(*p);
  CAPTURE(text);
  std::size_t deviations = 0, sums = 0;
  for (const Step& step : p->steps) {
    if (step.region.kind != RegionKind::Contraction) continue;
    for (const MapReduce& reduce : step.region.map.reduces)
      ++(reduce.deviations ? deviations : sums);
  }
  CHECK(deviations == 2);
  CHECK(sums == 6);
  CHECK(contains(text, "recomputes short vectors from a product's sums"));
  // Activations are stored in the precision of the multiplication.
  CHECK_FALSE(contains(print_arena(*p), "float32[128, 16, 32, 32]"));
  CHECK(p->steps.size() < planned(roots, {.disabled = {kReductions}})->steps.size());
}

TEST_CASE("reduced channels: values read once for each row are recomputed once for each row") {
  const PrecisionScope scope(Precision::Bf16);
  const Tensor y = conv2d(leaf({128, 16, 32, 32}), leaf({16, 16, 3, 3}), {}, {.padding = {1, 1}});
  const Moments m = batch_moments(y);
  const auto p = planned({sum(relu(y), {2, 3}) * rsqrt(m.var + 1e-5), m.mean});
  const std::string text = print_fusion(*p);
  CAPTURE(text);
  CHECK(contains(text, "recomputes short vectors from a product's sums"));
  for (const Step& step : p->steps)
    for (const MapInstr& instr : step.region.map.instrs)
      for (const int arg : instr.args)
        if (arg >= 0 && instr.per_row && instr.code == MapCode::Compute)
          CHECK(step.region.map.instrs[static_cast<std::size_t>(arg)].per_row);
}

TEST_CASE("reduced results: why not") {
  const Tensor x = leaf({64, 120}), w = leaf({84, 120});
  const Tensor y = linear(x, w);
  check_apart(*planned({sum(square(y)), y}, {.disabled = {kReductions}}), "");
  check_apart(*planned({sum(square(y)), y}, {.kind = Device::Kind::Cpu}),
              "its engine contraction does not reduce its result while writing it");
  check_apart(*planned({sum(square(y), {0}), y}), "");  // some axes only
  {
    const PrecisionScope scope(Precision::Bf16);
    const Tensor conv = conv2d(leaf({128, 64, 11, 11}), leaf({64, 64, 3, 3}));
    check_apart(*planned({sum(square(conv)), conv}), "its engine would be native, not conv");
  }
  // A value that another product computes later.
  const Tensor small = linear(leaf({4, 120}), w), later = sum(matmul(small, leaf({84, 300})));
  const auto waits = planned({sum(square(small * later)), small});
  CAPTURE(print_fusion(*waits));
  CHECK(reduced(*waits) == 1);  // that product's own
  CHECK(contains(print_fusion(*waits), "it would have to wait for sum"));
}

namespace {

/// An activation behind some convolutions, normalised by its moments; its channels come from a
/// product.
std::shared_ptr<const Program> normalised(std::int64_t samples, std::int64_t channels) {
  const PrecisionScope scope(Precision::Bf16);
  Tensor x = leaf({samples, 64, 28, 28});
  for (int k = 0; k < 3; ++k)
    x = conv2d(k > 0 ? relu(x) : x, leaf({64, 64, 3, 3}), {},
               {.stride = {1, 1}, .padding = {1, 1}});
  const Tensor y = conv2d(x, leaf({channels, 64, 1, 1}));
  const Moments m = batch_moments(y);
  return planned({batch_norm(y, m.mean, m.var, {}, {}, 1e-5), m.mean, m.var},
                 {.convolves_channels_last = true});
}

/// The number of rows that a product reduces together; 0: none.
int reduced_rows(const Program& p) {
  for (const Step& step : p.steps)
    if (step.region.kind == RegionKind::Contraction)
      for (const MapReduce& reduce : step.region.map.reduces) return reduce.rows;
  return 0;
}

}  // namespace

TEST_CASE("reduced results: moments of columns begin where a large product is written") {
  const auto p = normalised(64, 256);
  CAPTURE(print_fusion(*p));
  CHECK(reduced_rows(*p) == 64);
  CHECK(reduced(*p) == 2);
  CHECK(contains(print_fusion(*p), "reads sums of 64 rows"));
  // A row count that does not divide, and a 16-bit result. The plan records the question whatever
  // the answer: a plan for another batch may be derived from it only if the answer is the same
  // there.
  const auto odd = normalised(31, 256);
  CHECK(reduced_rows(*odd) == 0);
  const auto asks = [](const Program& plan, std::int64_t rows, bool divides) {
    return std::any_of(plan.limits.begin(), plan.limits.end(), [&](const SizeLimit& limit) {
      return limit.multiple && limit.most == 64 && limit.size == rows &&
             limit.holds(rows) == divides;
    });
  };
  CHECK(asks(*p, 64 * 28 * 28, true));
  CHECK(asks(*odd, 31 * 28 * 28, false));
  CHECK(reduced_rows(*normalised(64, 64)) == 0);
}

TEST_CASE("reduced results: sums of columns that an epilogue would round, or has no room for") {
  // Column sums of values computed from a product's result, beside the result itself.
  const auto rows_of = [](const auto& scaled) {
    const PrecisionScope scope(Precision::Bf16);
    Tensor x = leaf({64, 64, 28, 28});
    for (int k = 0; k < 3; ++k)
      x = conv2d(k > 0 ? relu(x) : x, leaf({64, 64, 3, 3}), {},
                 {.stride = {1, 1}, .padding = {1, 1}});
    const auto p =
        planned({scaled(conv2d(x, leaf({256, 64, 1, 1})))}, {.convolves_channels_last = true});
    INFO(print_fusion(*p));
    return reduced_rows(*p);
  };
  const auto sums = [](const Tensor& y) { return sum(y, {0, 2, 3}, true); };
  CHECK(rows_of([&](const Tensor& y) { return y * sums(y); }) == 64);
  for (const DType dtype : {DType::Float64, DType::Int32}) {
    CAPTURE(dtype);
    CHECK(rows_of([&](const Tensor& y) {
            return y * cast(sums(cast(y, dtype)), DType::Float32);
          }) == 0);
  }
  const auto computed_in = [&](DType dtype) {
    return [&sums, dtype](const Tensor& y) {
      const Tensor z = tanh(cast(y, dtype));
      return z * sums(z);
    };
  };
  CHECK(rows_of(computed_in(DType::Float32)) == 64);
  CHECK(rows_of(computed_in(DType::BFloat16)) == 0);
  const auto many = [&](int count) {
    return [&sums, count](const Tensor& y) {
      Tensor all = sums(y);
      for (int k = 1; k < count; ++k) all = all * sums(tanh(y * (k + 0.5)));
      return y * all;
    };
  };
  CHECK(rows_of(many(8)) == 64);
  CHECK(rows_of(many(9)) == 0);
}
