// Equal steps on other values share the kernels of the first step. Each must give the same result
// as alone. On a GPU, real or emulated.
#include <doctest/doctest.h>

#include <tenon/eval.h>
#include <tenon/ops.h>
#include <tenon/precision.h>

#include <functional>
#include <vector>

#include "compiler.h"
#include "cuda/cuda.h"

using namespace tenon;

namespace {

using Make = std::function<Tensor(const Tensor&, const Tensor&)>;

/// Of different numbers; several are evaluated in one program, then each in its own.
void check_alone(const Shape& a, const Shape& b, const Make& make) {
  constexpr int kAlike = 5;
  std::vector<Tensor> first, second, together;
  for (int k = 0; k < kAlike; ++k) {
    first.push_back(randn(a).eval());
    second.push_back(randn(b).eval());
    together.push_back(make(first.back(), second.back()));
  }
  eval(together);
  for (int k = 0; k < kAlike; ++k) {
    CAPTURE(k);
    const Tensor alone =
        make(first[static_cast<std::size_t>(k)], second[static_cast<std::size_t>(k)]);
    CHECK(alone.to_vector<float>() == together[static_cast<std::size_t>(k)].to_vector<float>());
  }
}

}  // namespace

TEST_CASE("alike kernels: each on its own values, with its own counters") {
  if (cuda::gpu_count() == 0) {
    MESSAGE("skipped: no GPU");
    return;
  }
  set_device("cuda");
  set_pass_enabled("join", false);
  manual_seed(3);
  // Few results of long sums: parts of a sum by several blocks.
  check_alone({24, 2048}, {2048, 40},
              [](const Tensor& x, const Tensor& w) { return matmul(x, w); });
  check_alone({24, 2048}, {40, 2048}, [](const Tensor& x, const Tensor& w) {
    return relu(matmul(x, transpose(w)) + sum(w, {1}));
  });
  check_alone({3000, 70}, {70}, [](const Tensor& x, const Tensor& y) { return sum(x * y, {0}); });
  check_alone({300, 70}, {300, 1},
              [](const Tensor& x, const Tensor& y) { return exp(x) * y / sum(exp(x), {1}, true); });
  // Products large enough for tensor cores; the emulator is slow on these.
  for (const Precision precision : {Precision::Bf16, Precision::Tf32}) {
    if (test::compiler_is_emulated()) break;
    set_precision(precision);
    check_alone({512, 512}, {512, 512},
                [](const Tensor& x, const Tensor& w) { return matmul(x, w); });
    check_alone({512, 1024}, {640, 1024}, [](const Tensor& x, const Tensor& w) {
      return relu(matmul(x, transpose(w)) + sum(w, {1}));
    });
    check_alone({512, 512}, {512, 512}, [](const Tensor& x, const Tensor& w) {
      return sum(relu(matmul(x, w)), {0, 1});
    });
  }
  set_precision(Precision::Fp32);
  set_pass_enabled("join", true);
  set_device("cpu");
}
