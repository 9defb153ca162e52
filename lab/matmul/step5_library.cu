// The library's own form of step 5 (src/cuda/kernels/gemm/gemm_wgmma.cuh), measured beside the
// ladder: 128 x 128 tiles, two warpgroups that alternate between tiles, any epilogue. Here the
// epilogue stores bfloat16.
#include "step5_library.h"

#include <algorithm>

#include "cuda/kernels/gemm/gemm_wgmma.cuh"
#include "tensor_map.h"

namespace lab {
namespace {

using namespace tenon::cuda;
using bf16 = __nv_bfloat16;

struct StoreBf16 {
  struct Sums {};
  static constexpr bool kSums = false, kColumnSums = false;
  static constexpr int kVaryingBytes = 0;  // read for each element
  static __device__ Sums no_sums() { return {}; }
  unsigned short* out;
  long long pitch;
  template <int N>
  struct Held {};
  template <int N>
  __device__ Held<N> hold(long long, long long, long long) const {
    return {};
  }
  template <int N>
  __device__ void hold_again(Held<N>&, long long, long long, long long) const {}
  template <int N>
  __device__ void finish(long long, long long row, long long column, const float (&x)[N],
                         const Held<N>&, Sums&) const {
    static_assert(N == 4);
    const uint2 packed = make_uint2(pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]));
    *reinterpret_cast<uint2*>(out + row * pitch + column) = packed;
  }
};

template <bool kInTurns, int kClusterSize, bool kTransA, bool kTransB>
struct Config {
  static constexpr bool kTurns = kInTurns, kBatches = false;
  static constexpr int kRows = 128, kStages = 5, kSplits = 1;
  static constexpr int kCluster = kClusterSize, kStoreVector = 4;
  static constexpr WgmmaType kType = WgmmaType::Bf16;
  static constexpr bool kAcrossA = kTransA, kAcrossB = !kTransB;
};

template <class C>
__global__ void __launch_bounds__(kWgmmaThreads, 1) __cluster_dims__(C::kCluster, 1, 1)
    library_kernel(const __grid_constant__ WgmmaProblem p, const StoreBf16 epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  WgmmaBlock<C, StoreBf16> block(p, epilogue, shared);
  block.set_up();
  block.run();
}

template <class C>
bool launch(const Product& p, const bf16* a, const bf16* b, bf16* c, cudaStream_t stream) {
  WgmmaProblem q;
  q.m = p.m, q.n = p.n, q.band = 8;
  q.steps = (2 * p.k + kWgmmaLine - 1) / kWgmmaLine;
  const int height = C::kRows * C::kCluster;
  q.rows = (p.m + height - 1) / height;
  q.columns = (p.n + kWgmmaColumns - 1) / kWgmmaColumns;
  const int share = kWgmmaColumns / C::kCluster;
  if (!make_map(&q.a, a, C::kAcrossA ? p.k : p.m, C::kAcrossA ? p.m : p.k,
                C::kAcrossA ? 64 : C::kRows) ||
      !make_map(&q.b, b, C::kAcrossB ? p.k : p.n, C::kAcrossB ? p.n : p.k,
                C::kAcrossB ? 64 : share)) {
    return false;
  }
  const auto kernel = library_kernel<C>;
  const int bytes = wgmma_shared_bytes(C::kRows, C::kStages, C::kTurns);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const int clusters = std::min(q.rows * q.columns, multiprocessors() / C::kCluster);
  kernel<<<clusters * C::kCluster, kWgmmaThreads, bytes, stream>>>(
      q, StoreBf16{reinterpret_cast<unsigned short*>(c), p.n});
  return cudaPeekAtLastError() == cudaSuccess;
}

template <bool kTurns, int kCluster>
bool run(const Product& p, const void* a, const void* b, void* c, cudaStream_t stream) {
  const auto *x = static_cast<const bf16*>(a), *y = static_cast<const bf16*>(b);
  auto* const z = static_cast<bf16*>(c);
  if (p.trans_a) {
    return p.trans_b ? launch<Config<kTurns, kCluster, true, true>>(p, x, y, z, stream)
                     : launch<Config<kTurns, kCluster, true, false>>(p, x, y, z, stream);
  }
  return p.trans_b ? launch<Config<kTurns, kCluster, false, true>>(p, x, y, z, stream)
                   : launch<Config<kTurns, kCluster, false, false>>(p, x, y, z, stream);
}

}  // namespace

std::vector<Way> library_ways(const Product& product, bool all) {
  const auto way = [&](const char* name, auto function) {
    return Way{name, product.trans_a, product.trans_b,
               [=](const void* a, const void* b, void* c, cudaStream_t stream) {
                 return function(product, a, b, c, stream);
               }};
  };
  std::vector<Way> ways = {way("the library's, cluster 2, in turns", run<true, 2>),
                           way("the library's, cluster 2, together", run<false, 2>),
                           way("the library's, no cluster, in turns", run<true, 1>),
                           way("the library's, no cluster, together", run<false, 1>)};
  if (all) return ways;
  const int tall = 2 * 128;
  const int tiles =
      (product.m + tall - 1) / tall * ((product.n + kWgmmaColumns - 1) / kWgmmaColumns);
  return {ways[tiles > multiprocessors() / 2 ? 0 : 1]};
}

}  // namespace lab
