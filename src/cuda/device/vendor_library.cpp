// Names of the vendor libraries' files.
#include "cuda/device/vendor_library.h"

namespace tenon::cuda {

const Library& cublaslt_library() {
  static const Library* const library =
      new Library(open_library({"cuBLASLt",
                                "TENON_CUBLASLT",
                                {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                                {"nvidia/cu13/lib", "nvidia/cublas/lib"}}));
  return *library;
}

const Library& cudnn_library() {
  static const Library* const library = new Library(open_library(
      {"cuDNN", "TENON_CUDNN", {"libcudnn.so.9", "libcudnn.so"}, {"nvidia/cudnn/lib"}}));
  return *library;
}

}  // namespace tenon::cuda
