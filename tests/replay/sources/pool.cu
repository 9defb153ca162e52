#include "cuda/kernels/opaque/pool.cuh"

using namespace tenon::cuda;

extern "C" __global__ void __launch_bounds__(256)
tenon_avg_pool_grad_disjoint(const PoolArgs a) {
  tenon::cuda::await_kernels();
  avg_pool_grad_disjoint<element::Float32, Window<2, 2, 2, 2, 0, 0, 1, 1, true, true>, false, true>(a);
}
