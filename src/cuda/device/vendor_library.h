// The vendor libraries that engines may use, opened once on first use. Opening reads half a
// gigabyte, so presence is checked without opening them where possible.
#pragma once

#include "cuda/device/opening/library.h"

namespace tenon::cuda {

/// TENON_CUBLASLT, TENON_CUDNN and TENON_NVJPEG name a file, or are "off".
bool cublaslt_present();
bool cudnn_present();
const Library& cublaslt_library();
const Library& cudnn_library();
const Library& nvjpeg_library();

}  // namespace tenon::cuda
