// Values with one number everywhere: the driver fills them, in every dtype and size. No kernel is
// compiled if the driver supports the pattern.
#include <doctest/doctest.h>

#include <tenon/device.h>
#include <tenon/ops.h>

#include <vector>

#include "base/str.h"
#include "cuda/cuda.h"
#include "cuda/jit/jit.h"
#include "gpu.h"

using namespace tenon;

namespace {

/// Makes tensors on the first GPU while it lives.
struct OnGpu {
  OnGpu() : before(current_device()) { set_device("cuda"); }
  ~OnGpu() { set_device(before); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  Device before;
};

}  // namespace

TEST_CASE("cuda fill: one number in every dtype and size") {
  if (!test::has_gpu()) return;
  const OnGpu on_gpu;
  for (const DType dtype : {DType::Bool, DType::UInt8, DType::Int8, DType::Int32, DType::Int64,
                            DType::Float16, DType::BFloat16, DType::Float32, DType::Float64})
    for (const std::int64_t count : {0, 1, 2, 3, 64, 1001})
      for (const double number : {0.0, 1.0, -0.5, 3.0}) {
        if (number < 0 && !is_floating(dtype)) continue;
        CAPTURE(cat(dtype, " ", count, " ", number));
        const Tensor got = full({count}, number, dtype).eval();
        const Tensor wide = cast(got, DType::Float64), each = cast(scalar(number), dtype);
        const double expected = cast(each, DType::Float64).item();
        const auto* values = wide.data_as<double>();
        for (std::int64_t i = 0; i < count; ++i) CHECK(values[i] == expected);
      }
}

TEST_CASE("cuda fill: initial values wait for no compiler") {
  if (!test::has_gpu()) return;
  const OnGpu on_gpu;
  const auto asked = [] {
    const cuda::JitStats stats = cuda::jit_stats();
    return stats.compiled + stats.built_in + stats.from_disk + stats.from_memory;
  };
  const std::int64_t before = asked();
  for (const double number : {0.0, 0.1, 65536.0}) {
    const Tensor single = variable(scalar(number)), real = variable(scalar(number, DType::Float64));
    const Tensor row = variable(full({7, 3}, number));
    CHECK(single.item() == static_cast<double>(static_cast<float>(number)));
    CHECK(real.item() == number);
    CHECK(row.data_as<float>()[20] == static_cast<float>(number));
  }
  CHECK(variable(ones({}, DType::Bool)).item() == 1);
  CHECK(variable(zeros({1000}, DType::Int64)).data_as<std::int64_t>()[999] == 0);
  CHECK(asked() == before);
}
