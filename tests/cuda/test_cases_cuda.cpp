// The case table on a GPU: values and gradients of every case, in every dtype that it claims,
// against the CPU's reference engine.
//
// On the emulated GPU compilation takes most of the time, and a dtype's kernels differ from
// float32's only in loads, stores and scalar functions. Gradients are therefore computed in float32
// there, and each 16-bit type has a quarter of the cases.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/device.h>
#include <tenon/error.h>
#include <tenon/grad.h>

#include "cases/modes.h"
#include "cases/passes.h"
#include "cuda/cuda.h"

using namespace tenon;

namespace {

bool have_gpu() {
  if (cuda::gpu_count() > 0) return true;
  std::printf("skipped: %s\n", cuda::facts().why_none.c_str());
  return false;
}

bool emulated() {
  static const bool is = cuda::facts().gpus.at(0).name == "Emulated GPU";
  return is;
}

/// The case on the CPU's reference engine and on the GPU; inputs are the same bits.
void check_on_gpu(const cases::Case& c, DType dtype, double tolerance) {
  const bool gradients = !emulated() || dtype == DType::Float32;
  set_device("cpu");
  set_engine("reference");
  const cases::Values wanted = cases::values(c, dtype, gradients);
  set_device("cuda:0");
  set_engine("fast");
  cases::compare(c, cases::values(c, dtype, gradients), wanted, tolerance);
}

}  // namespace

TEST_CASE("cuda: cases against the CPU's reference, float32") {
  if (!have_gpu()) return;
  cases::each_case([](const cases::Case& c) { check_on_gpu(c, DType::Float32, c.tolerance); });
}

TEST_CASE("cuda: cases against the CPU's reference, float64") {
  if (!have_gpu()) return;
  cases::each_case([](const cases::Case& c) { check_on_gpu(c, DType::Float64, c.tolerance64); });
}

TEST_CASE("cuda: cases against the CPU's reference, bfloat16") {
  if (!have_gpu()) return;
  cases::each_case([number = 0](const cases::Case& c) mutable {
    const bool mine = !emulated() || number++ % 4 == 0;
    if (c.in_16_bits && mine) check_on_gpu(c, DType::BFloat16, c.tolerance * 2e4);
  });
}

TEST_CASE("cuda: cases against the CPU's reference, float16") {
  if (!have_gpu()) return;
  cases::each_case([number = 0](const cases::Case& c) mutable {
    const bool mine = !emulated() || number++ % 4 == 2;
    if (c.in_16_bits && mine) check_on_gpu(c, DType::Float16, c.tolerance * 2.5e3);
  });
}

// In bfloat16, which most passes of a GPU are for. The emulated GPU runs an eighth of the cases,
// or all if TENON_TEST_PASSES is set.
TEST_CASE("cuda: cases with passes switched off") {
  if (!have_gpu()) return;
  const bool whole = !emulated() || std::getenv("TENON_TEST_PASSES") != nullptr;
  cases::each_case([whole, number = std::size_t{0}](const cases::Case& c) mutable {
    const std::size_t own = number++;
    if (!whole && own % 8 != 3) return;
    set_precision(Precision::Bf16);
    set_device("cuda:0");
    const cases::Values wanted = cases::values(c, DType::Float32);
    for (const std::string& pass : cases::passes_off(own / (whole ? 1 : 8))) {
      INFO("without " << pass);
      const cases::WithoutPass off(pass);
      cases::compare(c, cases::values(c, DType::Float32), wanted, c.tolerance * 2e3);
    }
  });
}

TEST_CASE("cuda: tensors move between devices, and their gradients come back") {
  if (!have_gpu()) return;
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5}, {5});
  const std::string other = cuda::gpu_count() > 1 ? "cuda:1" : "cuda:0";
  const Tensor there = to(x, device("cuda:0")) * 2.0;
  const Tensor beyond = to(there, device(other)) + 1.0;
  const Tensor back = to(beyond, device("cpu"));
  const Tensor slope = grad(sum(back * back), x);
  CHECK(back.to_vector<float>() == std::vector<float>{3, 5, 7, 9, 11});
  CHECK(slope.to_vector<float>() == std::vector<float>{12, 20, 28, 36, 44});
  CHECK(beyond.device() == device(other));
  CHECK(slope.device() == device("cpu"));
}
