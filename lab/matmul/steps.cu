// Steps 1 to 4 and the peaks; step 5 has a file of its own (step5_host.cu).
#include <algorithm>

#include "ladder.h"
#include "step1_thread.cuh"
#include "step2_shared.cuh"
#include "step3_registers.cuh"
#include "step4_mma.cuh"
#include "step5_host.h"
#include "step5_library.h"
#include "step5_wgmma.cuh"

namespace lab {
namespace {

template <class T>
Way plain_way(int step, const Product& p) {
  const auto run = step == 0 ? run_thread<T> : step == 1 ? run_shared<T> : run_registers<T>;
  return {"", false, false, [=](const void* a, const void* b, void* c, cudaStream_t stream) {
            run(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c), p.m, p.n,
                p.k, stream);
            return cudaPeekAtLastError() == cudaSuccess;
          }};
}

Way mma_way(const Product& p) {
  return {"", false, false, [=](const void* a, const void* b, void* c, cudaStream_t stream) {
            run_mma(static_cast<const bf16*>(a), static_cast<const bf16*>(b), static_cast<bf16*>(c),
                    p.m, p.n, p.k, stream);
            return cudaPeekAtLastError() == cudaSuccess;
          }};
}

Way wgmma_way(const WgmmaChoice& choice, const Product& p) {
  return {choice.name, false, choice.trans_b,
          [=](const void* a, const void* b, void* c, cudaStream_t stream) {
            return run_wgmma(choice, static_cast<const bf16*>(a), static_cast<const bf16*>(b),
                             static_cast<bf16*>(c), p.m, p.n, p.k, stream);
          }};
}

__global__ void multiply_add_kernel(float* out, float factor, int rounds) {
  float sum[8];
  for (int i = 0; i < 8; ++i) sum[i] = threadIdx.x + i;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] = sum[i] * factor + 1.f;
  }
  float total = 0;
  for (int i = 0; i < 8; ++i) total += sum[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

/// Two warpgroups multiply the same random tiles in shared memory repeatedly.
__global__ void __launch_bounds__(256, 1) wgmma_peak_kernel(float* out, int rounds) {
  extern __shared__ unsigned char shared[];
  const unsigned base = (shared_address(shared) + 1023) & ~1023u;
  constexpr int kWords = (128 + 256) * 64 / 2;
  for (int i = threadIdx.x; i < kWords; i += 256) {
    unsigned x = (i + blockIdx.x * kWords) * 0x9E3779B9u;
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    x ^= x >> 16;
    const __nv_bfloat162 pair =
        __floats2bfloat162_rn((x & 0xFFFF) / 32768.f - 1.f, (x >> 16) / 32768.f - 1.f);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + i * 4),
                 "r"(*reinterpret_cast<const unsigned*>(&pair))
                 : "memory");
  }
  async_proxy_fence();
  __syncthreads();
  const auto a = tile_descriptor<false>(base + threadIdx.x / 128 * 8192);
  const auto b = tile_descriptor<false>(base + 16384);
  float sum[128] = {};
  for (int round = 0; round < rounds; ++round) {
    pin(sum);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) Wgmma<256>::run<false, false>(sum, a + i * 2, b + i * 2, 1);
    wgmma_commit();
    pin(sum);
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  pin(sum);
  float total = 0;
  for (int i = 0; i < 128; ++i) total += sum[i];
  out[blockIdx.x * 256 + threadIdx.x] = total;
}

/// Median milliseconds of eleven launches.
template <class Launch>
double median_ms(Launch launch) {
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  float ms[11];
  launch();
  for (float& value : ms) {
    cudaEventRecord(start);
    launch();
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    cudaEventElapsedTime(&value, start, stop);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::sort(std::begin(ms), std::end(ms));
  return ms[5];
}

}  // namespace

std::vector<Way> ways_of(int step, const Product& product, bool all) {
  const bool half = product.element == Element::BFloat16;
  if (step < 3) {
    return {half ? plain_way<bf16>(step, product) : plain_way<float>(step, product)};
  }
  if (step == 3) return {mma_way(product)};
  std::vector<Way> ways = library_ways(product, all);
  if (product.trans_a) return ways;
  if (all) {
    int count = 0;
    const WgmmaChoice* const choices = wgmma_choices(&count);
    for (int i = 0; i < count; ++i) {
      if (choices[i].trans_b == product.trans_b) ways.push_back(wgmma_way(choices[i], product));
    }
  } else {
    const WgmmaChoice& choice = wgmma_choice_for(product.m, product.n, product.trans_b);
    ways.insert(ways.begin(), wgmma_way(choice, product));
  }
  return ways;
}

Peaks measure_peaks() {
  int device = 0, cores = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&cores, cudaDevAttrMultiProcessorCount, device);
  float* out = nullptr;
  cudaMalloc(&out, sizeof(float) * cores * 8 * 256);
  Peaks peaks;
  constexpr int kRounds = 4096, kShared = 1024 + (128 + 256) * 128;
  const double adds = 2.0 * cores * 8 * 256 * 8 * kRounds;
  peaks.float32 =
      adds / median_ms([&] { multiply_add_kernel<<<cores * 8, 256>>>(out, .5f, kRounds); }) * 1e3;
  cudaFuncSetAttribute(wgmma_peak_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  const double products = 2.0 * 2 * 64 * 256 * 64 * kRounds * cores;
  peaks.bfloat16 =
      products / median_ms([&] { wgmma_peak_kernel<<<cores, 256, kShared>>>(out, kRounds); }) * 1e3;
  cudaFree(out);
  return peaks;
}

}  // namespace lab
