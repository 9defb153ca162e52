// 16-bit values on a GPU, real or emulated, against the CPU's: products are rounded after their
// bias, and composites once, however small their values are.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <tenon/compute.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "gpu.h"

using namespace tenon;

namespace {

using Floats = std::vector<float>;

template <class F>
void on_both(F&& values) {
  if (!test::has_gpu()) return;
  const Floats wanted = values();
  set_device("cuda");
  const Floats got = values();
  set_device("cpu");
  REQUIRE(got.size() == wanted.size());
  // Compares each element, not the norm, because the norm hides errors in tails. Two units of
  // bfloat16's or float16's last place at most, since functions of the two devices differ in the
  // last bit.
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    CHECK(got[k] == doctest::Approx(wanted[k]).epsilon(1e-3));
  }
}

Floats list(const Tensor& t) { return cast(t.compute(), DType::Float32).to_vector<float>(); }
Tensor half(const Floats& values, DType dtype = DType::Float16) {
  return cast(Tensor::from(values, {static_cast<std::int64_t>(values.size())}), dtype).compute();
}

}  // namespace

TEST_CASE("half: a product on a GPU is rounded once, after its bias") {
  if (!test::has_gpu()) return;
  set_device("cuda");
  for (const auto& [t, big] : {std::pair{DType::Float16, 2048.0F}, {DType::BFloat16, 256.0F}}) {
    const Tensor x = reshape(half({big, 1}, t), {1, 2}), w = reshape(half({1, 1}, t), {1, 2}),
                 b = half({1}, t);
    CHECK(list(linear(x, w, b)) == Floats{big + 2});
    const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{linear(in[0], in[1], in[2])};
    });
    for (int call = 0; call < 3; ++call) CHECK(list(f({x, w, b})[0]) == Floats{big + 2});
    const Tensor image = reshape(x, {1, 2, 1, 1});
    CHECK(list(conv2d(image, reshape(w, {1, 2, 1, 1}), b)) == Floats{big + 2});
    CHECK(list(conv_transpose2d(image, reshape(w, {2, 1, 1, 1}), b)) == Floats{big + 2});
    const Tensor rows = reshape(half({big, 1, 1}, t), {3, 1, 1}),
                 one = reshape(half({1}, t), {1, 1});
    CHECK(list(grad(sum(matmul(rows, one)), one)) == Floats{big + 2});
  }
  set_device("cpu");
}

// A GPU's conversions give the same NaN for all.
TEST_CASE("half: moved values keep their bits on the CPU, signalling NaN too") {
  using Bits = std::vector<std::uint16_t>;
  const auto bits = [](const Tensor& t) {
    const auto* data = static_cast<const std::uint16_t*>(t.data());
    return Bits(data, data + t.numel());
  };
  for (const auto& [t, given] :
       {std::pair{DType::BFloat16, Bits{0x7f81, 0xffa0, 0x7fc0, 0x7f80, 0x0001, 0x3f80}},
        {DType::Float16, Bits{0x7c01, 0xfd00, 0x7e00, 0x7c00, 0x0001, 0x3c00}}}) {
    const Tensor x = Tensor::from_data(given.data(), {2, 3}, t);
    CHECK(bits(flip(x, {0, 1})) == Bits(given.rbegin(), given.rend()));
    CHECK(bits(slice(x, 0, 0, 1)) == Bits(given.begin(), given.begin() + 3));
    CHECK(bits(reshape(flip(flip(x, {1}), {1}), {3, 2})) == given);
    CHECK(bits(where(gt(ones({2, 3}), 0), x, zeros({2, 3}, t))) == given);
    CHECK(bits(permute(permute(x, {1, 0}), {1, 0})) == given);
    CHECK(bits(concat({slice(x, 0, 0, 1), slice(x, 0, 1, 2)}, 0)) == given);
  }
  // Rounding removes the low bits: a NaN with only low bits set must not become infinite.
  for (const std::uint32_t wide : {0x7f800001u, 0xff80ffffu, 0x7fa00001u}) {
    const Tensor x = Tensor::from_data(&wide, {1}, DType::Float32);
    for (const DType t : {DType::BFloat16, DType::Float16}) CHECK(std::isnan(list(cast(x, t))[0]));
  }
}

TEST_CASE("half: tails on a GPU") {
  Floats values;
  for (int k = -80; k <= 80; ++k) values.push_back(static_cast<float>(k) * 0.0625F);
  for (const bool tanh : {false, true}) {
    CAPTURE(tanh);
    on_both([&] { return list(gelu(half(values), tanh)); });
    on_both([&] {
      const Tensor x = half(values);
      return list(grad(sum(cast(gelu(x, tanh), DType::Float32)), x));
    });
  }
}

TEST_CASE("half: sums of exponentials past the range of float16 on a GPU") {
  on_both([] { return list(slice(softmax(half(Floats(70000, 1)), 0), 0, 0, 4)); });
  on_both([] { return list(exp2(half({10, -3, 4.5F}, DType::BFloat16))); });
  on_both([] { return list(sinh(half({11.75F, -11.75F, 0.01F}))); });
  on_both([] { return list(cosh(half({11.75F, -11.75F, 0.01F}))); });
}

TEST_CASE("half: long sums of products on a GPU stay accurate") {
  if (!test::has_gpu()) return;
  set_device("cuda");
  constexpr std::int64_t kLong = 1000000;
  const Tensor tenths = full({kLong}, 0.1).compute(), many = ones({kLong}).compute();
  CHECK(list(matmul(tenths, many))[0] == doctest::Approx(kLong * 0.1).epsilon(1e-4));
  CHECK(list(sum(tenths * many))[0] == doctest::Approx(kLong * 0.1).epsilon(1e-4));
  CHECK(list(matmul(broadcast_to(tenths, {2, kLong}), many))[1] ==
        doctest::Approx(kLong * 0.1).epsilon(1e-4));
  set_device("cpu");
}
