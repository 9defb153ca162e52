// Precision by scope and by layer: it applies to the products of that layer, forward and backward,
// and to no others.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>

using namespace tenon;

namespace {

struct InPrecision {
  explicit InPrecision(Precision precision) { set_precision(precision); }
  ~InPrecision() { set_precision(Precision::Fp32); }
};

std::vector<float> values(const Tensor& t) { return t.eval().to_vector<float>(); }

struct Data {
  Tensor x, w;
  Data() {
    manual_seed(7);
    x = randn({9, 33}).eval();
    w = variable(randn({17, 33}));
  }
  Tensor product() const { return linear(x, w); }
  std::vector<float> gradient(const Tensor& y) const {
    const std::vector<Tensor> of{w};
    return values(grad(sum(y * y), of)[0]);
  }
};

}  // namespace

TEST_CASE("precision: a scope overrides the process's, for products and their gradients") {
  const Data d;
  const std::vector<float> exact = values(d.product()), exact_grad = d.gradient(d.product());
  const InPrecision bf16(Precision::Bf16);
  const std::vector<float> rounded = values(d.product());
  CHECK(rounded != exact);
  Tensor y;
  {
    const PrecisionScope scope(Precision::Fp32);
    y = d.product();
    const PrecisionScope inner(Precision::Bf16);
    CHECK(values(d.product()) == rounded);
  }
  CHECK(values(y) == exact);
  CHECK(d.gradient(y) == exact_grad);  // built outside the scope
  CHECK(values(d.product()) == rounded);
  set_precision(Precision::Fp32);
  const PrecisionScope scope(Precision::Bf16);
  CHECK(values(d.product()) == rounded);
}

TEST_CASE("precision: convolutions, and products of other dtypes") {
  manual_seed(8);
  const Tensor image = randn({2, 3, 9, 9}).eval(), filter = randn({4, 3, 3, 3}).eval();
  const std::vector<float> exact = values(conv2d(image, filter));
  const InPrecision bf16(Precision::Bf16);
  const std::vector<float> rounded = values(conv2d(image, filter));
  CHECK(rounded != exact);
  const PrecisionScope scope(Precision::Fp32);
  CHECK(values(conv2d(image, filter)) == exact);
  const Tensor wide = cast(image, DType::Float64), half = cast(image, DType::BFloat16);
  CHECK(conv2d(wide, cast(filter, DType::Float64)).dtype() == DType::Float64);
  CHECK(conv2d(half, cast(filter, DType::BFloat16)).dtype() == DType::BFloat16);
}

TEST_CASE("precision: a layer may have its own; the innermost one applies") {
  manual_seed(9);
  const nn::AnyModule net =
      nn::Sequential(nn::Linear(20, 30), nn::Sequential(nn::Linear(30, 30), nn::Linear(30, 5)));
  const Tensor x = randn({8, 20}).eval();
  const std::vector<float> exact = values(net(x));
  const InPrecision bf16(Precision::Bf16);
  const std::vector<float> rounded = values(net(x));
  net.set_precision(Precision::Fp32);
  CHECK(net.has_precision(Precision::Fp32));
  CHECK(values(net(x)) == exact);
  net.set_precision(Precision::Bf16, "1.0");
  const std::vector<float> mixed = values(net(x));
  CHECK(mixed != exact);
  CHECK(mixed != rounded);
  net.set_precision(Precision::Bf16, "0");
  net.set_precision(Precision::Bf16, "1");
  CHECK(values(net(x)) == rounded);
  CHECK_THROWS_WITH_AS(net.set_precision(Precision::Fp32, "1.2"), doctest::Contains("'1."),
                       ValueError);
}
