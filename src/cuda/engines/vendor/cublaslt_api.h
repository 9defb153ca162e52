// The part of cuBLASLt that Tenon calls, declared here so that a build needs no toolkit.
//
// Types and numbers are those of cublasLt.h, 12 and 13 (tests/cuda/test_vendor_api.cpp compares
// them where the header is present). The library is loaded when it is first needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::cuda {

using cublasStatus_t = int;
using cublasLtHandle_t = struct cublasLtContext*;
inline constexpr cublasStatus_t CUBLAS_STATUS_SUCCESS = 0;

struct cublasLtMatrixLayoutOpaque_t {
  std::uint64_t data[8];
};
struct cublasLtMatmulAlgo_t {
  std::uint64_t data[8];
};
struct cublasLtMatmulDescOpaque_t {
  std::uint64_t data[32];
};
struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

enum cublasLtDataType_t : int { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasComputeType_t : int {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cublasOperation_t : int { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasLtMatrixLayoutAttribute_t : int {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
};
enum cublasLtMatmulDescAttributes_t : int {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12
};
enum cublasLtReductionScheme_t : std::uint32_t {
  CUBLASLT_REDUCTION_SCHEME_NONE = 0,
  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2
};
enum cublasLtEpilogue_t : std::uint32_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
  CUBLASLT_EPILOGUE_DGELU = 192
};
enum cublasLtMatmulPreferenceAttributes_t : int {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};

// Every entry point: X(name, parameters). Those that end in _internal are what the header's inline
// functions call.
#define TENON_CUBLASLT_FUNCTIONS(X)                                                               \
  X(cublasLtCreate, (cublasLtHandle_t * handle))                                                  \
  X(cublasLtMatrixLayoutInit_internal,                                                            \
    (cublasLtMatrixLayoutOpaque_t * layout, std::size_t size, int type, std::uint64_t rows,       \
     std::uint64_t columns, std::int64_t ld))                                                     \
  X(cublasLtMatrixLayoutSetAttribute,                                                             \
    (cublasLtMatrixLayoutOpaque_t * layout, int attribute, const void* value, std::size_t size))  \
  X(cublasLtMatmulDescInit_internal, (cublasLtMatmulDescOpaque_t * description, std::size_t size, \
                                      int compute_type, int scale_type))                          \
  X(cublasLtMatmulDescSetAttribute, (cublasLtMatmulDescOpaque_t * description, int attribute,     \
                                     const void* value, std::size_t size))                        \
  X(cublasLtMatmulPreferenceInit_internal,                                                        \
    (cublasLtMatmulPreferenceOpaque_t * preference, std::size_t size))                            \
  X(cublasLtMatmulPreferenceSetAttribute, (cublasLtMatmulPreferenceOpaque_t * preference,         \
                                           int attribute, const void* value, std::size_t size))   \
  X(cublasLtMatmulAlgoGetHeuristic,                                                               \
    (cublasLtHandle_t handle, cublasLtMatmulDescOpaque_t * description,                           \
     cublasLtMatrixLayoutOpaque_t * a, cublasLtMatrixLayoutOpaque_t * b,                          \
     cublasLtMatrixLayoutOpaque_t * c, cublasLtMatrixLayoutOpaque_t * d,                          \
     cublasLtMatmulPreferenceOpaque_t * preference, int wanted,                                   \
     cublasLtMatmulHeuristicResult_t* results, int* found))                                       \
  X(cublasLtMatmul,                                                                               \
    (cublasLtHandle_t handle, cublasLtMatmulDescOpaque_t * description, const void* alpha,        \
     const void* a, const cublasLtMatrixLayoutOpaque_t* a_layout, const void* b,                  \
     const cublasLtMatrixLayoutOpaque_t* b_layout, const void* beta, const void* c,               \
     const cublasLtMatrixLayoutOpaque_t* c_layout, void* d,                                       \
     const cublasLtMatrixLayoutOpaque_t* d_layout, const cublasLtMatmulAlgo_t* algo,              \
     void* workspace, std::size_t workspace_bytes, void* stream))

struct CublasLt {
#define TENON_CUBLASLT_MEMBER(name, parameters) cublasStatus_t(*name) parameters = nullptr;
  TENON_CUBLASLT_FUNCTIONS(TENON_CUBLASLT_MEMBER)
#undef TENON_CUBLASLT_MEMBER
  std::size_t (*cublasLtGetVersion)() = nullptr;
  const char* (*cublasLtGetStatusString)(cublasStatus_t) = nullptr;
  std::string path;
  std::string problem;  // why it cannot be used; empty when it can
};

/// The process's cuBLASLt, loaded once; never throws.
const CublasLt& loaded_cublaslt();
/// Throws DeviceError if the library cannot be used.
const CublasLt& cublaslt();
/// The handle for a GPU. Makes the GPU's context current in this thread.
cublasLtHandle_t cublaslt_handle(int ordinal);
/// Throws DeviceError unless the status is a success.
void check_cublaslt(cublasStatus_t status, const std::string& what);

}  // namespace tenon::cuda
