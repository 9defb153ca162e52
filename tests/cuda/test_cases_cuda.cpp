// The case table on a card: values and gradients of every case, in every dtype that it claims,
// against the CPU's reference engine.
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include <tenon/device.h>
#include <tenon/error.h>
#include <tenon/eval.h>

#include "cases/modes.h"
#include "cuda/cuda.h"

using namespace tenon;

namespace {

bool have_card() {
  if (cuda::card_count() > 0) return true;
  std::printf("skipped: %s\n", cuda::facts().why_none.c_str());
  return false;
}

/// The case on the CPU's reference engine and on the card; inputs are the same bits.
void check_on_card(const cases::Case& c, DType dtype, double tolerance) {
  set_device("cpu");
  set_engine("reference");
  const cases::Values wanted = cases::values(c, dtype);
  set_device("cuda:0");
  set_engine("fast");
  cases::compare(c, cases::values(c, dtype), wanted, tolerance);
}

}  // namespace

TEST_CASE("cuda: cases against the CPU's reference, float32") {
  if (!have_card()) return;
  cases::each_case([](const cases::Case& c) { check_on_card(c, DType::Float32, c.tolerance); });
}

TEST_CASE("cuda: cases against the CPU's reference, float64") {
  if (!have_card()) return;
  cases::each_case([](const cases::Case& c) { check_on_card(c, DType::Float64, c.tolerance64); });
}

TEST_CASE("cuda: cases against the CPU's reference, bfloat16") {
  if (!have_card()) return;
  cases::each_case([](const cases::Case& c) {
    if (c.narrow) check_on_card(c, DType::BFloat16, c.tolerance * 2e4);
  });
}

TEST_CASE("cuda: cases against the CPU's reference, float16") {
  if (!have_card()) return;
  cases::each_case([](const cases::Case& c) {
    if (c.narrow) check_on_card(c, DType::Float16, c.tolerance * 2.5e3);
  });
}
