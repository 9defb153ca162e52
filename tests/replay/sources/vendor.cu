#include "cuda/kernels/vendor.cuh"

using namespace tenon::cuda;

extern "C" __global__ void __launch_bounds__(256)
tenon_split(const CastArgs a) {
  tenon::cuda::await_kernels();
  split_rows<true, false>(a);
}
