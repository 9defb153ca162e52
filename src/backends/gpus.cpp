// The public functions about CUDA GPUs: facts and rates for reports, and where and when kernels are
// compiled.
#include <tenon/device.h>
#include <tenon/system.h>

#include "base/str.h"
#include "cuda/cuda.h"

namespace tenon {

void compile_in_processes(int argc, char** argv) { cuda::compile_in_processes(argc, argv); }
void compile_at_launch() { cuda::compile_at_launch(); }

CudaInfo cuda_info() {
  const cuda::Facts facts = cuda::facts();
  CudaInfo out;
  out.why_none = facts.why_none;
  out.built_in = facts.built_in;
  for (const cuda::GpuFact& gpu : facts.gpus)
    out.gpus.push_back({cat("cuda:", gpu.target.ordinal), gpu.name, gpu.target.arch,
                        gpu.target.multiprocessors, gpu.memory_total, gpu.memory_free});
  for (const cuda::LibraryFact& library : facts.libraries)
    out.libraries.push_back({library.name, library.found, library.path, library.version});
  return out;
}

GpuSpeed measure_gpu(int index) {
  const cuda::Rates rates = cuda::measure_rates(index);
  return {rates.fp32, rates.tf32, rates.bf16, rates.copy};
}

}  // namespace tenon
