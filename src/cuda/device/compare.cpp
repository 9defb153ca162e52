// Test data for kernels, and comparison of their results.
#include <algorithm>
#include <memory>
#include <string>

#include "cuda/cuda.h"
#include "cuda/device/gpu.h"
#include "cuda/device/opening/driver.h"
#include "cuda/engines/opaque/opaque_kernels.h"
#include "cuda/jit/jit.h"

namespace tenon::cuda {
namespace {

constexpr std::uint32_t kCompareThreads = 256, kCompareBlocks = 256;

std::string element_of(DType dtype) {
  const char* known = element_name(dtype);
  return known != nullptr ? known : "element::UInt8";  // bool
}

std::shared_ptr<const CompiledKernel> kernel(int index, const char* entry, const char* parameters,
                                             const std::string& call) {
  return compile(target_of(index),
                 {entry, cat("#include \"cuda/kernels/maps/compare.cuh\"\n\nusing "
                             "namespace tenon::cuda;\n\nextern \"C\" __global__ "
                             "void ",
                             entry, "(", parameters, ") {\n  ", call, ";\n}\n")});
}

}  // namespace

void fill_random(void* data, DType dtype, std::int64_t count, std::uint64_t seed, double scale,
                 int index) {
  const auto fill =
      kernel(index, "fill", "void* data, long long count, unsigned long long seed, float scale",
             cat("fill_numbers<", element_of(dtype), ", ", truth(is_floating(dtype)), ", ",
                 truth(is_bool(dtype)), ">(data, count, seed, scale)"));
  auto factor = static_cast<float>(scale);
  void* params[] = {&data, &count, &seed, &factor};
  fill->launch(context_of(index).work, {kCompareBlocks}, {kCompareThreads}, 0, params);
}

void poison(void* data, std::size_t bytes, int index) {
  if (bytes == 0) return;
  const Context& context = context_of(index);
  check(driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(data), 0xff, bytes, context.work),
        "overwriting memory on ", context.title());
}

Difference difference(const void* expected, const void* got, DType dtype, std::int64_t count,
                      int index) {
  const auto compare = kernel(
      index, "compare", "const void* expected, const void* got, long long count, double* sums",
      cat("compare_numbers<", element_of(dtype), ">(expected, got, count, sums)"));
  double sums[kCompareBlocks][3];
  const std::shared_ptr<void> on_gpu(memory().allocate(sizeof sums, index),
                                     [&](void* p) { memory().release(p, sizeof sums, index); });
  void* out = on_gpu.get();
  void* params[] = {&expected, &got, &count, &out};
  compare->launch(context_of(index).work, {kCompareBlocks}, {kCompareThreads}, 0, params);
  memory().to_host(sums, out, sizeof sums, index);
  Difference all;
  for (const double(&block)[3] : sums) {
    all.apart += block[0];
    all.size += block[1];
    all.broken += static_cast<std::int64_t>(block[2]);
  }
  return all;
}

}  // namespace tenon::cuda
