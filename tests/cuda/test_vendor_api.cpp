// Our declarations of vendor libraries against their headers, where a toolkit has them; and the
// libraries' tables where they can be loaded.
#include <doctest/doctest.h>

#include "cuda/engines/cublaslt_api.h"

namespace ours = tenon::cuda;

#if __has_include(<cublasLt.h>)
// The header comes in C++ without warnings of ours.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cublasLt.h>
#pragma GCC diagnostic pop

namespace {

template <class Ours, class Theirs>
constexpr bool same(Ours ours_value, Theirs theirs) {
  return static_cast<long long>(ours_value) == static_cast<long long>(theirs);
}

static_assert(sizeof(ours::cublasLtMatrixLayoutOpaque_t) >= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(ours::cublasLtMatmulAlgo_t) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(ours::cublasLtMatmulDescOpaque_t) >= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(ours::cublasLtMatmulPreferenceOpaque_t) >=
              sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(ours::cublasLtMatmulHeuristicResult_t) ==
              sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(ours::cublasLtMatmulHeuristicResult_t, workspaceSize) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(ours::cublasLtMatmulHeuristicResult_t, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

#define TENON_SAME(name) static_assert(same(ours::name, ::name), #name)
TENON_SAME(CUBLAS_STATUS_SUCCESS);
TENON_SAME(CUDA_R_32F);
TENON_SAME(CUDA_R_64F);
TENON_SAME(CUDA_R_16F);
TENON_SAME(CUDA_R_16BF);
TENON_SAME(CUBLAS_COMPUTE_32F);
TENON_SAME(CUBLAS_COMPUTE_64F);
TENON_SAME(CUBLAS_COMPUTE_32F_FAST_TF32);
TENON_SAME(CUBLAS_OP_N);
TENON_SAME(CUBLAS_OP_T);
TENON_SAME(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
TENON_SAME(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
TENON_SAME(CUBLASLT_MATMUL_DESC_TRANSA);
TENON_SAME(CUBLASLT_MATMUL_DESC_TRANSB);
TENON_SAME(CUBLASLT_MATMUL_DESC_EPILOGUE);
TENON_SAME(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
TENON_SAME(CUBLASLT_REDUCTION_SCHEME_NONE);
TENON_SAME(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
TENON_SAME(CUBLASLT_EPILOGUE_DEFAULT);
TENON_SAME(CUBLASLT_EPILOGUE_RELU);
TENON_SAME(CUBLASLT_EPILOGUE_BIAS);
TENON_SAME(CUBLASLT_EPILOGUE_RELU_BIAS);
TENON_SAME(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
TENON_SAME(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
TENON_SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
TENON_SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
TENON_SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
TENON_SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#undef TENON_SAME

}  // namespace
#endif

TEST_CASE("vendor: cuBLASLt is complete, or says why it cannot be used") {
  const ours::CublasLt& table = ours::loaded_cublaslt();
  if (!table.problem.empty()) {
    MESSAGE("skipped: " << table.problem);
    return;
  }
  CHECK_FALSE(table.path.empty());
  CHECK(table.cublasLtGetVersion() >= 120000);
}
