// Speed of a matrix product: by definition on one CPU thread, with Tenon on the CPU, and with Tenon
// on a GPU.
//
// All three do the same multiply-adds. They differ in how often they load a number from memory.
// lab/matmul shows the same optimization on the GPU step by step, from one thread for each element
// to the peak of the tensor cores. TFLOP/s on one NVIDIA H200, random data, measured alternately
// with cuBLAS (docs/internals/matmul.md):
//
//   step                                  type   1024³   4096³   8192³   of cuBLAS at 8192³
//   one thread an element                 fp32     6.4     5.8     5.1     10 %
//   tiles in shared memory                fp32     8.4     8.5     8.5     16 %
//   tiles in registers                    fp32    18.9    44.8    45.1     87 %
//   tensor cores, mma.sync                bf16      86     360     368     50 %
//   copy engine and wgmma                 bf16     292     671     686     98 %
#include <chrono>
#include <vector>

#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

namespace {

// out[i, j] = sum over k of a[i, k] · b[k, j], by definition. Every multiply-add loads two numbers,
// and b is read down its columns, with a stride of n.
void by_definition(const std::vector<float>& a, const std::vector<float>& b,
                   std::vector<float>& out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      out[i * n + j] = sum;
    }
  }
}

template <class Work>
double milliseconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return took.count();
}

void report(const char* what, std::int64_t n, double ms) {
  const double flop =
      2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  std::printf("%-34s %9.3f ms  %10.2f GFLOP/s\n", what, ms, flop / ms * 1e-6);
}

// Time of the second evaluation. The first one plans the program and compiles GPU kernels.
double milliseconds_when_planned(const Tensor& a, const Tensor& b) {
  compute({matmul(a, b)});
  synchronize();
  return milliseconds([&] {
    compute({matmul(a, b)});
    synchronize();
  });
}

double relative_distance(const std::vector<float>& x, const std::vector<float>& y) {
  double off = 0, all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - y[i];
    off += d * d;
    all += static_cast<double>(y[i]) * y[i];
  }
  return std::sqrt(off / all);
}

}  // namespace

int main() {
  constexpr std::int64_t kSize = 256;
  const Tensor a = randn({kSize, kSize}), b = randn({kSize, kSize});
  compute({a, b});
  const std::vector<float> a_host = a.to_vector<float>(), b_host = b.to_vector<float>();
  std::vector<float> expected(static_cast<std::size_t>(kSize * kSize));
  report("by definition, one CPU thread", kSize, milliseconds([&] {
           by_definition(a_host, b_host, expected, static_cast<std::size_t>(kSize));
         }));
  report("Tenon on the CPU", kSize, milliseconds_when_planned(a, b));
  check(relative_distance(matmul(a, b).to_vector<float>(), expected) < 1e-5,
        "the CPU gives the same product");

  Device gpu;
  try {
    gpu = device("cuda");
  } catch (const DeviceError& error) {
    std::printf("no GPU here: %s\n", error.what());
    return 0;
  }
  const Tensor a_gpu = to(a, gpu), b_gpu = to(b, gpu);
  check(relative_distance(matmul(a_gpu, b_gpu).to_vector<float>(), expected) < 1e-5,
        "the GPU gives the same product");
  report("Tenon on the GPU", kSize, milliseconds_when_planned(a_gpu, b_gpu));

  // A GPU needs a larger product: at 256³ most of the time is launch and synchronization latency.
  constexpr std::int64_t kLarge = 4096;
  set_device(gpu);
  const Tensor u = randn({kLarge, kLarge}), v = randn({kLarge, kLarge});
  compute({u, v});
  for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Bf16}) {
    set_precision(precision);
    report(name(precision), kLarge, milliseconds_when_planned(u, v));
  }
}
