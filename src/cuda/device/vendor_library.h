// The vendor libraries that engines may use, opened once when they are first asked for.
#pragma once

#include "cuda/device/library.h"

namespace tenon::cuda {

/// cuBLASLt and cuDNN; TENON_CUBLASLT and TENON_CUDNN name a file, or are "off".
const Library& cublaslt_library();
const Library& cudnn_library();

}  // namespace tenon::cuda
