#include "cuda/kernels/opaque/movement.cuh"

using namespace tenon::cuda;

extern "C" __global__ void __launch_bounds__(256)
tenon_gather(const GatherArgs a) {
  tenon::cuda::await_kernels();
  gather<unsigned long long, long long, true, true, false>(a);
}
