// Times the CPU contraction kernels on the shapes of three training networks. Prints each one's
// share of the multiply-add peak, which is measured in the same run. Not linked into the library.
//
//   cpu_kernels [threads] [f32|bf16] [part of the names to run]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/philox.h"
#include "base/thread_pool.h"
#include "cpu/kernels/contract.h"
#include "cpu/kernels/pool/pool2d.h"

using namespace tenon;
using namespace tenon::cpu;

namespace {

struct Buffer {
  float* data;
  explicit Buffer(std::int64_t floats) {
    const std::size_t bytes = (static_cast<std::size_t>(floats) * 4 + 4096) / 64 * 64;
    data = static_cast<float*>(std::aligned_alloc(64, bytes));
    for (std::int64_t i = 0; i < floats; ++i) {
      data[i] = uniform01(philox(1, static_cast<std::uint64_t>(i), 2).v[0]) - 0.5f;
    }
  }
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
};

struct Options {
  Math math = Math::F32;
  int threads = 1;
  const char* only = "";
  double peak = 1;
};

// Seconds: with one thread the thread's CPU time, so that other load disturbs little; otherwise
// wall time.
double now(const Options& options) {
  timespec time{};
  clock_gettime(options.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Best and median of enough repeats to take 0.15 s.
void report(const Options& options, const std::string& label, double flop,
            const std::function<void()>& run) {
  if (std::strstr(label.c_str(), options.only) == nullptr) return;
  std::vector<double> times;
  double total = 0;
  run();
  while (total < 0.15 || times.size() < 5) {
    const double start = now(options);
    run();
    times.push_back(now(options) - start);
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  const double best = times.front(), median = times[times.size() / 2];
  std::printf("%-42s %9.1f us (median %9.1f) %8.1f GFLOP/s %5.1f %% of peak\n", label.c_str(),
              best * 1e6, median * 1e6, flop / best * 1e-9, 100 * flop / best / options.peak);
}

// Operands are float32, as in a training step, or bfloat16.
void time_gemm(const Options& o, const char* label, std::int64_t m, std::int64_t n, std::int64_t k,
               bool a_t, bool b_t, DType dtype = DType::Float32) {
  Buffer a(m * k), b(k * n), c(m * n);
  if (dtype == DType::BFloat16) {
    std::vector<bfloat16> values(static_cast<std::size_t>(std::max(m, n) * k), bfloat16(0.25f));
    std::memcpy(a.data, values.data(), static_cast<std::size_t>(m * k) * 2);
    std::memcpy(b.data, values.data(), static_cast<std::size_t>(k * n) * 2);
  }
  const GemmShape shape{1, m, n, k};
  Buffer workspace(static_cast<std::int64_t>(gemm_workspace(shape, o.math, o.threads, false) / 4));
  const Operand left{a.data, dtype, a_t ? 1 : k, a_t ? m : 1, 0, nullptr};
  const Operand right{b.data, dtype, b_t ? 1 : n, b_t ? k : 1, 0, nullptr};
  char text[128];
  std::snprintf(text, sizeof text, "%s %lldx%lldx%lld%s%s", label, static_cast<long long>(m),
                static_cast<long long>(n), static_cast<long long>(k), a_t ? " At" : "",
                b_t ? " Bt" : "");
  report(o, text, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
         [&] {
           gemm({.shape = shape,
                 .a = left,
                 .b = right,
                 .c = c.data,
                 .ldc = n,
                 .math = o.math,
                 .workspace = workspace.data});
         });
}

// The three products of y = x w^T in a training step.
void time_linear(const Options& o, const char* label, std::int64_t batch, std::int64_t in,
                 std::int64_t out) {
  const std::string name = label;
  time_gemm(o, (name + " fwd").c_str(), batch, out, in, false, true);
  time_gemm(o, (name + " dx").c_str(), batch, in, out, false, false);
  time_gemm(o, (name + " dw").c_str(), out, in, batch, true, false);
}

ConvShape conv_shape(std::int64_t n, std::int64_t c, std::int64_t size, std::int64_t k,
                     std::int64_t kernel, int pad, int stride) {
  ConvShape s;
  s.n = n;
  s.c = c;
  s.h = s.w = size;
  s.k = k;
  s.r = s.s = kernel;
  s.p = s.q = (size + 2 * pad - kernel) / stride + 1;
  s.stride_h = s.stride_w = stride;
  s.pad_h = s.pad_w = pad;
  return s;
}

void time_conv(const Options& o, const char* label, const ConvShape& s, bool input_grad = true) {
  Buffer x(s.n * s.c * s.h * s.w), w(s.k * s.c * s.r * s.s), y(s.n * s.k * s.p * s.q);
  const double flop =
      2.0 * static_cast<double>(s.n * s.k * s.p * s.q) * static_cast<double>(s.c * s.r * s.s);
  const std::string name = label;
  const auto workspace = [&](ConvPass pass) {
    return static_cast<std::int64_t>(conv2d_workspace(s, pass, o.math, o.threads) / 4);
  };
  Buffer forward(workspace(ConvPass::Forward)), dx(workspace(ConvPass::InputGrad)),
      dw(workspace(ConvPass::WeightGrad));
  report(o, name + " fwd", flop, [&] {
    conv2d_forward(s, {x.data, DType::Float32}, {w.data, DType::Float32}, y.data, o.math, {},
                   forward.data);
  });
  if (input_grad) {
    report(o, name + " dx", flop, [&] {
      conv2d_input_grad(s, {y.data, DType::Float32}, {w.data, DType::Float32}, x.data, o.math, {},
                        dx.data);
    });
  }
  report(o, name + " dw", flop, [&] {
    conv2d_weight_grad(s, {x.data, DType::Float32}, {y.data, DType::Float32}, w.data, o.math, {},
                       dw.data);
  });
}

void time_pool(const Options& o, const char* label, std::int64_t n, std::int64_t c,
               std::int64_t size, int kernel, int stride) {
  PoolShape s;
  s.n = n;
  s.c = c;
  s.h = s.w = size;
  s.p = s.q = (size - kernel) / stride + 1;
  s.kernel_h = s.kernel_w = kernel;
  s.stride_h = s.stride_w = stride;
  const std::int64_t in = n * c * size * size, out = n * c * s.p * s.q;
  Buffer x(in), y(out), dx(in);
  const std::string name = label;
  const double elements =
      static_cast<double>(in);  // shown as "FLOP": elements of the input a second
  report(o, name + " max fwd", elements, [&] { max_pool2d(s, x.data, y.data); });
  report(o, name + " max bwd", elements, [&] { max_pool2d_backward(s, x.data, y.data, dx.data); });
  report(o, name + " avg fwd", elements, [&] { avg_pool2d(s, x.data, y.data); });
  report(o, name + " avg bwd", elements, [&] { avg_pool2d_backward(s, y.data, dx.data); });
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  o.threads = argc > 1 ? std::atoi(argv[1]) : available_cpus();
  o.math = argc > 2 && std::strcmp(argv[2], "bf16") == 0 ? Math::Bf16 : Math::F32;
  o.only = argc > 3 ? argv[3] : "";
  set_num_threads(o.threads);
  o.peak = measure_fma_peak(o.math, o.threads);
  std::printf("%s, %s, %d threads, peak %.1f GFLOP/s\n", cpu_info().model.c_str(), name(best_isa()),
              o.threads, o.peak * 1e-9);
  report(o, "empty parallel_for of 2 chunks", 0, [] {
    for (int i = 0; i < 100; ++i) parallel_for(2, [](std::int64_t, int) {});
  });
  for (const std::int64_t size : {64, 128, 256, 512, 1024, 2048})
    time_gemm(o, "square", size, size, size, false, false);
  for (const std::int64_t size : {1024, 2048})
    time_gemm(o, "square of bf16", size, size, size, false, false, DType::BFloat16);
  time_conv(o, "lenet conv1", conv_shape(64, 1, 28, 6, 5, 2, 1), false);
  time_conv(o, "lenet conv2", conv_shape(64, 6, 14, 16, 5, 0, 1));
  time_conv(o, "lenet conv3", conv_shape(64, 16, 5, 120, 5, 0, 1));
  time_linear(o, "lenet fc1", 64, 120, 84);
  time_linear(o, "lenet fc2", 64, 84, 10);
  time_pool(o, "lenet pool1", 64, 6, 28, 2, 2);
  time_pool(o, "lenet pool2", 64, 16, 10, 2, 2);
  time_conv(o, "keras conv1", conv_shape(128, 1, 28, 32, 3, 0, 1), false);
  time_conv(o, "keras conv2", conv_shape(128, 32, 13, 64, 3, 0, 1));
  time_conv(o, "keras conv3", conv_shape(128, 64, 5, 64, 3, 0, 1));
  time_linear(o, "keras fc1", 128, 576, 64);
  time_linear(o, "keras fc2", 128, 64, 10);
  time_pool(o, "keras pool1", 128, 32, 26, 2, 2);
  time_pool(o, "keras pool2", 128, 64, 11, 2, 2);
  time_linear(o, "fcn fc1", 1024, 784, 2048);
  time_linear(o, "fcn fc2", 1024, 2048, 4096);
  time_linear(o, "fcn fc3", 1024, 4096, 1024);
  time_linear(o, "fcn fc4", 1024, 1024, 10);
  time_gemm(o, "serving", 1, 4096, 2048, false, true);
  time_gemm(o, "serving", 1, 4096, 2048, false, false);
  time_gemm(o, "serving", 8, 4096, 2048, false, true);
  time_conv(o, "resnet 3x3", conv_shape(8, 64, 56, 64, 3, 1, 1));
  time_conv(o, "resnet 3x3 /2", conv_shape(8, 128, 28, 256, 3, 1, 2));
  time_conv(o, "resnet 1x1", conv_shape(8, 256, 14, 1024, 1, 0, 1));
  time_conv(o, "resnet stem", conv_shape(8, 3, 224, 64, 7, 3, 2), false);
  time_conv(o, "resnet last", conv_shape(8, 512, 7, 512, 3, 1, 1));
  time_pool(o, "resnet stem pool", 8, 64, 112, 3, 2);
  return 0;
}
