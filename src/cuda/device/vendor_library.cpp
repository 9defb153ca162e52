// Names of the vendor libraries' files.
#include "cuda/device/vendor_library.h"

namespace tenon::cuda {
namespace {

LibraryName cublaslt_name() {
  return {"cuBLASLt",
          "TENON_CUBLASLT",
          {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
          {"nvidia/cu13/lib", "nvidia/cublas/lib"}};
}

LibraryName cudnn_name() {
  return {"cuDNN", "TENON_CUDNN", {"libcudnn.so.9", "libcudnn.so"}, {"nvidia/cudnn/lib"}};
}

LibraryName nvjpeg_name() {
  return {"nvJPEG",
          "TENON_NVJPEG",
          {"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so"},
          {"nvidia/cu13/lib", "nvidia/nvjpeg/lib"}};
}

}  // namespace

bool cublaslt_present() { return is_present(cublaslt_name()); }
bool cudnn_present() { return is_present(cudnn_name()); }

const Library& cublaslt_library() {
  static const Library* const library = new Library(open_library(cublaslt_name()));
  return *library;
}

const Library& cudnn_library() {
  static const Library* const library = new Library(open_library(cudnn_name()));
  return *library;
}

const Library& nvjpeg_library() {
  static const Library* const library = new Library(open_library(nvjpeg_name()));
  return *library;
}

}  // namespace tenon::cuda
