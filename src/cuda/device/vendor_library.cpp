// File names of the vendor libraries.
#include "cuda/device/vendor_library.h"

#include <filesystem>
#include <string_view>
#include <system_error>

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

// libcudnn opens libcudnn_graph when it is first called, and ends the process if that fails, for
// example when memory is short. Opened here, a failure is reported like any other.
Library open_cudnn() {
  Library library = open_library(cudnn_name());
  const std::size_t name = library.path.rfind("/libcudnn.so");
  if (library.handle == nullptr || name == std::string::npos) return library;
  std::string graph = library.path;
  graph.insert(name + std::string_view("/libcudnn").size(), "_graph");
  std::error_code failed;
  if (!std::filesystem::exists(graph, failed)) return library;  // of before version 9
  Library part = open_file(graph);
  return part.handle != nullptr ? library : part;
}

}  // namespace

bool cublaslt_present() { return is_present(cublaslt_name()); }
bool cudnn_present() { return is_present(cudnn_name()); }

const Library& cublaslt_library() {
  static const Library* const library = new Library(open_library(cublaslt_name()));
  return *library;
}

const Library& cudnn_library() {
  static const Library* const library = new Library(open_cudnn());
  return *library;
}

const Library& nvjpeg_library() {
  static const Library* const library = new Library(open_library(nvjpeg_name()));
  return *library;
}

}  // namespace tenon::cuda
