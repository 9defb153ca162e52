// Measures the peak rates of a GPU with kernels that do nothing else.
//
// Tensor-core rates are those of mma.sync, which every GPU from sm_80 on has. GPUs with other
// matrix instructions reach more with those.
#include <algorithm>
#include <memory>

#include "cuda/cuda.h"
#include "cuda/device/gpu.h"
#include "cuda/device/gpu_models.h"
#include "cuda/device/opening/driver.h"
#include "cuda/jit/jit.h"

namespace tenon::cuda {
namespace {

constexpr double kSeconds = 0.02;  // of one measurement
constexpr int kTries = 3;          // other load can only make a measurement slower

std::shared_ptr<const CompiledKernel> kernel(const Target& target, const std::string& name,
                                             const std::string& parameters,
                                             const std::string& call) {
  return compile(target,
                 {name, cat("#include \"cuda/kernels/rates.cuh\"\n\n"
                            "extern \"C\" __global__ void ",
                            name, "(", parameters, ") {\n  tenon::cuda::", call, ";\n}\n")});
}

// Events that take time stamps.
class Timer {
 public:
  explicit Timer(const Context& context) : context_(context) {
    check(driver().cuEventCreate(&start_, 0), "making an event on ", context.title());
    check(driver().cuEventCreate(&stop_, 0), "making an event on ", context.title());
  }
  ~Timer() {
    if (start_ != nullptr) driver().cuEventDestroy(start_);
    if (stop_ != nullptr) driver().cuEventDestroy(stop_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  template <class Queue>
  double seconds(Queue&& queue) {
    const Driver& api = driver();
    check(api.cuEventRecord(start_, context_.work), "timing ", context_.title());
    queue();
    check(api.cuEventRecord(stop_, context_.work), "timing ", context_.title());
    check(api.cuEventSynchronize(stop_), "timing ", context_.title());
    float milliseconds = 0;
    check(api.cuEventElapsedTime(&milliseconds, start_, stop_), "timing ", context_.title());
    return std::max(1e-6, milliseconds * 1e-3);
  }

 private:
  const Context& context_;
  CUevent start_ = nullptr, stop_ = nullptr;
};

// The rate of a loop of `work(rounds)` operations; rounds grow until a measurement takes long
// enough.
template <class Run>
double rate(Timer& timer, double work_a_round, Run&& run) {
  std::int64_t rounds = 64;
  timer.seconds([&] { run(rounds); });  // loads the kernel and raises the clocks
  double spent = timer.seconds([&] { run(rounds); });
  rounds = std::max<std::int64_t>(
      rounds, static_cast<std::int64_t>(static_cast<double>(rounds) * kSeconds / spent));
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    spent = timer.seconds([&] { run(rounds); });
    best = std::max(best, work_a_round * static_cast<double>(rounds) / spent);
  }
  return best;
}

double copy_rate(Timer& timer, const Target& target, const CompiledKernel& copy, int index) {
  // Much larger than the cache, and a small share of the memory.
  const std::int64_t bytes =
      std::min<std::int64_t>(8 * std::max<std::int64_t>(target.model.cache_bytes, 1 << 20),
                             gpu_at(index).memory_total / 16) /
      4096 * 4096;
  const auto size = static_cast<std::size_t>(bytes);
  const std::shared_ptr<void> from(memory().allocate(size, index),
                                   [&](void* p) { memory().release(p, size, index); });
  const std::shared_ptr<void> to(memory().allocate(size, index),
                                 [&](void* p) { memory().release(p, size, index); });
  const Context& context = context_of(index);
  check(driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(from.get()), 0, size, context.work),
        "clearing memory on ", context.title());
  void *to_pointer = to.get(), *from_pointer = from.get();
  std::int64_t count = bytes / 16;
  void* params[] = {&to_pointer, &from_pointer, &count};
  const auto blocks = static_cast<std::uint32_t>(target.multiprocessors * 8);
  const auto once = [&] { copy.launch(context.work, {blocks}, {256}, 0, params); };
  timer.seconds(once);
  double best = 0;
  for (int i = 0; i < 3 * kTries; ++i)
    best = std::max(best, 2.0 * static_cast<double>(bytes) / timer.seconds(once));
  return best;
}

/// The rates that time models use from now on.
GpuModel with_rates(GpuModel gpu, const Rates& rates) {
  constexpr double kCopyShare = 3.9 / 4.8;  // of the data sheet's rate, as on an H200
  const double flops = 2 * gpu.multiprocessors * gpu.clock;
  gpu.memory = rates.copy / kCopyShare;
  gpu.fp32 = rates.fp32 / flops;
  gpu.tf32 = rates.tf32 / flops / gpu.mma_share;
  gpu.half = rates.bf16 / flops / gpu.mma_share;
  return gpu;
}

}  // namespace

Rates measure_rates(int index) {
  const Target target = target_of(index);
  const char* loop = "float* out, float factor, long long rounds";
  const auto copy = kernel(target, "tenon_rate_copy",
                           "tenon::cuda::RateWord* to, const tenon::cuda::RateWord* from, "
                           "long long count",
                           "rate_copy(to, from, count)");
  const auto fma = kernel(target, "tenon_rate_fma", loop, "rate_fma(out, factor, rounds)");
  const auto bf16 = kernel(target, "tenon_rate_bf16", loop, "rate_mma<false>(out, factor, rounds)");
  const auto tf32 = kernel(target, "tenon_rate_tf32", loop, "rate_mma<true>(out, factor, rounds)");

  const Context& context = context_of(index);
  Timer timer(context);
  const auto blocks = static_cast<std::uint32_t>(target.multiprocessors * 4);
  constexpr std::uint32_t kThreads = 256;
  const auto loop_rate = [&](const CompiledKernel& loop_kernel, double work_a_thread) {
    return rate(timer, work_a_thread * blocks * kThreads, [&](std::int64_t rounds) {
      void* out = nullptr;  // never written
      float factor = 0.25f;
      void* params[] = {&out, &factor, &rounds};
      loop_kernel.launch(context.work, {blocks}, {kThreads}, 0, params);
    });
  };
  Rates rates;
  rates.copy = copy_rate(timer, target, *copy, index);
  rates.fp32 = loop_rate(*fma, 2.0 * 16);
  rates.bf16 = loop_rate(*bf16, 8 * 2.0 * 16 * 8 * 16 / 32);
  rates.tf32 = loop_rate(*tf32, 8 * 2.0 * 16 * 8 * 8 / 32);
  const std::string& name = gpu_at(index).name;
  if (!named_gpu(name)) keep_measured(name, with_rates(target.model, rates));
  return rates;
}

}  // namespace tenon::cuda
