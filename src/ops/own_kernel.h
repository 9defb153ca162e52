// Nodes that launch own kernels on a GPU (tenon/cuda_kernel.h).
#pragma once

#include <memory>
#include <vector>

#include "graph/host_code.h"

namespace tenon {

/// The results of a kernel for these inputs, on the GPU `home`. `name` lives as long as the
/// process.
std::vector<Tensor> own_kernel_call(const char* name, TensorList inputs, Device home,
                                    std::vector<TensorType> results,
                                    const std::shared_ptr<const OwnKernelCode>& code);

}  // namespace tenon
