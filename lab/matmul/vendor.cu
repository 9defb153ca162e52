// cuBLAS and cuBLASLt through dlopen. They are column-major, so they compute Cᵀ = Bᵀ · Aᵀ.
#include "vendor.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#include <algorithm>
#include <vector>

namespace lab {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;

using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void*, const void*, cudaDataType, int, const void*,
                                  cudaDataType, int, const void*, void*, cudaDataType, int,
                                  cublasComputeType_t, cublasGemmAlgo_t);  // it is overloaded

void* open_library(const char* stem) {
  for (const char* suffix : {".so.13", ".so.12", ".so"}) {
    if (void* library = dlopen((std::string(stem) + suffix).c_str(), RTLD_NOW | RTLD_GLOBAL)) {
      return library;
    }
  }
  return nullptr;
}

cudaDataType_t type_of(Element element) {
  return element == Element::Float32 ? CUDA_R_32F : CUDA_R_16BF;
}

}  // namespace

struct Vendor::Parts {
  bool ready = false;
  std::string version = "libcublas or libcublasLt was not found";
  void* workspace = nullptr;
  cublasHandle_t handle = nullptr;
  cublasLtHandle_t light = nullptr;

#define LAB_SYMBOL(name) decltype(&::name) name = nullptr
  LAB_SYMBOL(cublasCreate_v2);
  LAB_SYMBOL(cublasSetStream_v2);
  LAB_SYMBOL(cublasSetWorkspace_v2);
  LAB_SYMBOL(cublasGetVersion_v2);
  LAB_SYMBOL(cublasLtCreate);
  LAB_SYMBOL(cublasLtMatmul);
  LAB_SYMBOL(cublasLtMatmulDescCreate);
  LAB_SYMBOL(cublasLtMatmulDescSetAttribute);
  LAB_SYMBOL(cublasLtMatrixLayoutCreate);
  LAB_SYMBOL(cublasLtMatmulPreferenceCreate);
  LAB_SYMBOL(cublasLtMatmulPreferenceSetAttribute);
  LAB_SYMBOL(cublasLtMatmulAlgoGetHeuristic);
#undef LAB_SYMBOL
  GemmEx cublasGemmEx = nullptr;

  Product tuned{};
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t best{};

  bool load();
  bool tune(const Product& p, const void* a_data, const void* b_data, void* c_data,
            cudaStream_t stream);
  bool run(const cublasLtMatmulAlgo_t& algo, const void* a_data, const void* b_data, void* c_data,
           cudaStream_t stream) const {
    const float one = 1, zero = 0;
    return cublasLtMatmul(light, desc, &one, b_data, b, a_data, a, &zero, c_data, c, c_data, c,
                          &algo, workspace, kWorkspace, stream) == CUBLAS_STATUS_SUCCESS;
  }
};

bool Vendor::Parts::load() {
  void* const lt = open_library("libcublasLt");
  void* const full = open_library("libcublas");
  if (lt == nullptr || full == nullptr) return false;
  bool found = true;
#define LAB_SYMBOL(library, name)                                 \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  found = found && name != nullptr
  LAB_SYMBOL(full, cublasCreate_v2);
  LAB_SYMBOL(full, cublasSetStream_v2);
  LAB_SYMBOL(full, cublasSetWorkspace_v2);
  LAB_SYMBOL(full, cublasGetVersion_v2);
  LAB_SYMBOL(full, cublasGemmEx);
  LAB_SYMBOL(lt, cublasLtCreate);
  LAB_SYMBOL(lt, cublasLtMatmul);
  LAB_SYMBOL(lt, cublasLtMatmulDescCreate);
  LAB_SYMBOL(lt, cublasLtMatmulDescSetAttribute);
  LAB_SYMBOL(lt, cublasLtMatrixLayoutCreate);
  LAB_SYMBOL(lt, cublasLtMatmulPreferenceCreate);
  LAB_SYMBOL(lt, cublasLtMatmulPreferenceSetAttribute);
  LAB_SYMBOL(lt, cublasLtMatmulAlgoGetHeuristic);
#undef LAB_SYMBOL
  if (!found || cudaMalloc(&workspace, kWorkspace) != cudaSuccess ||
      cublasCreate_v2(&handle) != CUBLAS_STATUS_SUCCESS ||
      cublasLtCreate(&light) != CUBLAS_STATUS_SUCCESS) {
    version = "libcublas was found but does not start";
    return false;
  }
  int number = 0;
  cublasGetVersion_v2(handle, &number);
  version = std::to_string(number);
  return true;
}

bool Vendor::Parts::tune(const Product& p, const void* a_data, const void* b_data, void* c_data,
                         cudaStream_t stream) {
  const cudaDataType_t type = type_of(p.element);
  const cublasOperation_t op_a = p.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = p.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasLtMatmulPreference_t preference = nullptr;
  bool good =
      cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == 0 &&
      cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof op_b) == 0 &&
      cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof op_a) == 0;
  good = good &&
         (p.trans_a ? cublasLtMatrixLayoutCreate(&a, type, p.m, p.k, p.m)
                    : cublasLtMatrixLayoutCreate(&a, type, p.k, p.m, p.k)) == 0 &&
         (p.trans_b ? cublasLtMatrixLayoutCreate(&b, type, p.k, p.n, p.k)
                    : cublasLtMatrixLayoutCreate(&b, type, p.n, p.k, p.n)) == 0 &&
         cublasLtMatrixLayoutCreate(&c, type, p.n, p.m, p.n) == 0 &&
         cublasLtMatmulPreferenceCreate(&preference) == 0;
  good = good &&
         cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &kWorkspace, sizeof kWorkspace) == 0;
  cublasLtMatmulHeuristicResult_t proposals[8];
  int count = 0;
  good = good && cublasLtMatmulAlgoGetHeuristic(light, desc, b, a, c, c, preference, 8, proposals,
                                                &count) == 0;
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  float least = 1e30f;
  for (int i = 0; good && i < count; ++i) {
    if (!run(proposals[i].algo, a_data, b_data, c_data, stream)) continue;
    for (int repeat = 0; repeat < 5; ++repeat) {
      float ms = 0;
      cudaEventRecord(start, stream);
      run(proposals[i].algo, a_data, b_data, c_data, stream);
      cudaEventRecord(stop, stream);
      cudaEventSynchronize(stop);
      cudaEventElapsedTime(&ms, start, stop);
      if (ms < least) least = ms, best = proposals[i].algo;
    }
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  tuned = p;
  return least < 1e30f;
}

Vendor::Vendor() : parts_(std::make_unique<Parts>()) { parts_->ready = parts_->load(); }
Vendor::~Vendor() = default;
bool Vendor::ready() const { return parts_->ready; }
const std::string& Vendor::version() const { return parts_->version; }

bool Vendor::gemm(const Product& p, const void* a, const void* b, void* c, cudaStream_t stream) {
  const float one = 1, zero = 0;
  const cudaDataType_t type = type_of(p.element);
  parts_->cublasSetStream_v2(parts_->handle, stream);
  parts_->cublasSetWorkspace_v2(parts_->handle, parts_->workspace, kWorkspace);
  return parts_->cublasGemmEx(parts_->handle, p.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                              p.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, p.n, p.m, p.k, &one, b, type,
                              p.trans_b ? p.k : p.n, a, type, p.trans_a ? p.m : p.k, &zero, c, type,
                              p.n, CUBLAS_COMPUTE_32F,
                              CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
}

bool Vendor::tuned_gemm(const Product& p, const void* a, const void* b, void* c,
                        cudaStream_t stream) {
  if (!(parts_->tuned == p) && !parts_->tune(p, a, b, c, stream)) return false;
  return parts_->run(parts_->best, a, b, c, stream);
}

}  // namespace lab
