// Weights with a rounded copy: the copy is current whichever step assigned the weight last, and
// steps that read the copy compute what they would compute from the weight.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include "../base/distance.h"
#include "base/str.h"
#include "cuda/cuda.h"
#include "gpu.h"
#include "graph/node.h"

using namespace tenon;
using test::distance;
using test::has_gpu;

namespace {

constexpr std::int64_t kIn = 520, kOut = 512, kBatch = 32;

/// Selects the GPU and a precision for its lifetime.
struct OnGpu {
  explicit OnGpu(Precision precision) {
    set_device("cuda");
    set_precision(precision);
    manual_seed(4);
  }
  ~OnGpu() {
    set_precision(Precision::Fp32);
    set_device("cpu");
  }
};

std::vector<float> rounded_values(const Tensor& weight, DType dtype) {
  return cast(cast(weight, dtype), DType::Float32).eval().to_vector<float>();
}

void check_copy(const Tensor& weight, DType dtype) {
  const Tensor copy = weight.node()->leaf->rounded;
  REQUIRE(copy.defined());
  REQUIRE(copy.dtype() == dtype);
  CHECK(cast(copy, DType::Float32).eval().to_vector<float>() == rounded_values(weight, dtype));
}

struct Network {
  nn::AnyModule net = nn::Sequential(nn::Linear(kIn, kOut), nn::Tanh(), nn::Linear(kOut, 10));
  optim::Sgd sgd{net, {.lr = 0.05, .momentum = 0.9}};
  Tensor weight = net.parameters()[0];
  CompiledFunction step = make_step();
  CompiledFunction scores =
      compile([this](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; });

  /// In the current precision.
  CompiledFunction make_step() {
    return compile([this](const std::vector<Tensor>& in) {
      const Tensor loss = cross_entropy(net(in[0]), in[1]);
      std::vector<Tensor> out = sgd.updates(grad(loss, sgd.parameters()));
      out.push_back(loss);
      return out;
    });
  }
};

std::vector<Tensor> batch() {
  return {randn({kBatch, kIn}).eval(), remainder(cast(arange(0, kBatch), DType::Int64), 10).eval()};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("cuda rounded: an update writes the copy along with the weight") {
  if (!has_gpu()) return;
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    const OnGpu gpu(precision);
    const DType dtype = precision == Precision::Bf16 ? DType::BFloat16 : DType::Float16;
    Network n;
    const std::vector<Tensor> data = batch();
    for (int k = 0; k < 4; ++k) {  // captured from the second on
      n.step(data);
      check_copy(n.weight, dtype);
    }
    CHECK_FALSE(
        n.net.parameters()[2].node()->leaf->rounded.defined());  // small: rounded while loading
    // The step reads the copy and casts no weight.
    const std::string plan = n.step.plan(data).steps();
    CHECK(contains(plan, cat(dtype, Shape{kOut, kIn})));
    CHECK_FALSE(contains(plan, cat("cast over [", kOut * kIn, "]")));
  }
}

TEST_CASE("cuda rounded: the copy follows a weight that another step assigns") {
  if (!has_gpu()) return;
  const OnGpu gpu(Precision::Bf16);
  Network n;
  const std::vector<Tensor> data = batch();
  n.scores(data);
  n.step(data);
  const Tensor other = randn({kOut, kIn}).eval();
  set_value(n.weight, other);
  CHECK(n.weight.node()->leaf->rounded.node()->leaf->rounded_at != n.weight.node()->assigned_at());
  const std::vector<float> seen = n.scores(data)[0].to_vector<float>();
  check_copy(n.weight, DType::BFloat16);
  // The same as an evaluation without copies.
  CHECK(distance(Tensor::from(seen, {kBatch, 10}), n.net(data[0]).eval()) < 1e-2);
  eval({assign(n.weight, n.weight * 0.5)});
  n.step(data);
  check_copy(n.weight, DType::BFloat16);
}

TEST_CASE(
    "cuda rounded: training is the same without copies, and each precision has its own copy") {
  if (!has_gpu()) return;
  const OnGpu gpu(Precision::Bf16);
  Network n, plain;
  for (std::size_t k = 0; k < n.net.parameters().size(); ++k)
    set_value(plain.net.parameters()[k], n.net.parameters()[k]);
  const std::vector<Tensor> data = batch();
  for (int k = 0; k < 3; ++k) {
    n.step(data);
    const Tensor loss = cross_entropy(plain.net(data[0]), data[1]);
    eval(plain.sgd.updates(grad(loss, plain.sgd.parameters())));
  }
  CHECK_FALSE(plain.weight.node()->leaf->rounded.defined());
  CHECK(distance(n.weight, plain.weight) < 1e-3);
  set_precision(Precision::Fp16);
  const CompiledFunction half = n.make_step();
  half(data);
  check_copy(n.weight, DType::Float16);
  // Functions of two precisions alternate: each reads its own copy of the current weight.
  n.step(data);
  const std::vector<float> seen = n.scores(data)[0].to_vector<float>();
  half(data), n.step(data), half(data);
  set_precision(Precision::Bf16);
  CHECK(n.scores(data)[0].to_vector<float>() != seen);
  CHECK(distance(n.scores(data)[0], n.net(data[0]).eval()) < 1e-5);
  set_precision(Precision::Fp32);
  const CompiledFunction exact = n.make_step();
  exact(data);
  CHECK(exact.plan(data).steps().find("float16") == std::string::npos);
}

TEST_CASE("cuda rounded: sums of rounded operands read the rounded values") {
  if (!has_gpu()) return;
  const OnGpu gpu(Precision::Bf16);
  const Tensor x = randn({300, 320}).eval(), w = variable(randn({520, 320}));
  const Tensor bias = variable(randn({520})), g = randn({300, 520}).eval();
  // The gradient g * t reaches the weight through a product and the bias through a sum.
  CompiledFunction step = compile([&](const std::vector<Tensor>& in) {
    const Tensor loss = sum(linear(in[0], w, bias) * in[1] * tanh(in[1]));
    const std::vector<Tensor> of{w, bias, in[0]};
    return grad(loss, of);
  });
  const std::string plan = step.plan({x, g}).steps();
  CHECK(contains(plan, "bfloat16[300, 520]"));
  CHECK_FALSE(contains(plan, "-> v2:float32[300, 520]"));
  const Tensor exact = sum(cast(g, DType::Float64) * tanh(cast(g, DType::Float64)), {0});
  const std::vector<float> seen = step({x, g})[1].to_vector<float>();
  CHECK(distance(Tensor::from(seen, {520}), cast(exact, DType::Float32).eval()) < 2e-3);
}

TEST_CASE("rounded: on the CPU an inference reads copies, and a step that assigns keeps none") {
  set_precision(Precision::Bf16);
  manual_seed(4);
  Network n;
  const std::vector<Tensor> data = batch();
  const auto scores = [&] { return n.scores(data)[0].to_vector<float>(); };
  const auto without_copy = [&] { return n.net(data[0]).eval().to_vector<float>(); };
  n.step(data);
  CHECK_FALSE(n.weight.node()->leaf->rounded.defined());
  CHECK(scores() == without_copy());  // the same bits
  check_copy(n.weight, DType::BFloat16);
  CHECK(contains(n.scores.plan(data).steps(), cat(DType::BFloat16, Shape{kOut, kIn})));
  CHECK_FALSE(n.net.parameters()[2].node()->leaf->rounded.defined());  // small
  const std::vector<float> before = scores();
  n.step(data);
  CHECK(scores() == without_copy());
  CHECK(scores() != before);
  check_copy(n.weight, DType::BFloat16);
  set_precision(Precision::Fp32);
}
