// A libcublasLt for the emulated GPU: loops compute the described product, with the rules of the
// real library: column-major matrices, leading dimensions, batches, bias along rows.
//
// Opaque structs hold their attributes in order; a call that breaks a rule is refused. With
// TENON_FAKE_OLD_CUBLASLT in the environment the library has no GELU epilogue. With TENON_FAKE_IDLE
// it computes nothing, for GPUs without memory (tools/idle_gpu.cpp), and returns as many algorithms
// as requested.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cuda/engines/vendor/cublaslt_api.h"
#include "elements.h"

#define TENON_EXPORT extern "C" __attribute__((visibility("default")))

using namespace tenon::cuda;
using tenon_fake::Type;

namespace {

constexpr cublasStatus_t kInvalid = 7, kUnsupported = 15;
constexpr std::size_t kWorkspace = 1024;
#ifdef TENON_FAKE_IDLE
constexpr bool kIdle = true;
constexpr std::size_t kVersion = 130100;  // that the built-in choices were measured with
#else
constexpr bool kIdle = false;
constexpr std::size_t kVersion = 130000;
#endif

struct Layout {
  std::uint64_t type, rows, columns;
  std::int64_t ld, batch, batch_stride;
};
struct Description {
  std::uint64_t compute, scale, epilogue;
  const void* bias;
  void* input;
  std::int64_t input_ld;
  std::int32_t transposed[2];
};
struct Algorithm {
  std::uint64_t magic;
};

template <class T, class Opaque>
T read(const Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof(Opaque));
  T value;
  std::memcpy(&value, opaque, sizeof value);
  return value;
}
template <class T, class Opaque>
void write(Opaque* opaque, const T& value) {
  static_assert(sizeof(T) <= sizeof(Opaque));
  std::memcpy(opaque, &value, sizeof value);
}

Type type_of(std::uint64_t type) {
  return type == CUDA_R_64F    ? Type::F64
         : type == CUDA_R_16F  ? Type::F16
         : type == CUDA_R_16BF ? Type::BF16
                               : Type::F32;
}

constexpr double kGeluScale = 1.5957691216057308, kGeluCube = 0.044715;  // 2 sqrt(2 / pi)
double gelu_gate(double x) { return 1 / (1 + std::exp(-kGeluScale * x * (1 + kGeluCube * x * x))); }
double gelu_slope(double x) {
  const double gate = gelu_gate(x);
  return gate * (1 + x * (1 - gate) * kGeluScale * (1 + 3 * kGeluCube * x * x));
}

constexpr std::uint64_t kGelu = 224;  // bits that its epilogues alone have
bool is_old() { return std::getenv("TENON_FAKE_OLD_CUBLASLT") != nullptr; }

/// Rows of op(x), given the description of x.
std::uint64_t rows_of(const Layout& x, bool permuted) { return permuted ? x.columns : x.rows; }

bool fits(const Description& d, const Layout& a, const Layout& b, const Layout& out) {
  const bool ta = d.transposed[0] != 0, tb = d.transposed[1] != 0;
  for (const Layout* x : {&a, &b, &out})
    if (x->ld < static_cast<std::int64_t>(x->rows) || x->batch != out.batch) return false;
  return a.type == b.type && rows_of(a, ta) == out.rows && rows_of(b, !tb) == out.columns &&
         rows_of(a, !ta) == rows_of(b, tb);
}

}  // namespace

TENON_EXPORT std::size_t cublasLtGetVersion() { return kVersion; }
TENON_EXPORT const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == kInvalid ? "invalid value" : status == kUnsupported ? "not supported" : "?";
}
TENON_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static char one;
  *handle = reinterpret_cast<cublasLtHandle_t>(&one);
  return 0;
}

TENON_EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayoutOpaque_t* layout,
                                                              std::size_t size, int type,
                                                              std::uint64_t rows,
                                                              std::uint64_t columns,
                                                              std::int64_t ld) {
  if (size < sizeof(Layout)) return kInvalid;
  write(layout, Layout{static_cast<std::uint64_t>(type), rows, columns, ld, 1, 0});
  return 0;
}

TENON_EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayoutOpaque_t* layout,
                                                             int attribute, const void* value,
                                                             std::size_t size) {
  Layout l = read<Layout>(layout);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == 4) {
    std::int32_t count = 0;
    std::memcpy(&count, value, size);
    l.batch = count;
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == 8) {
    std::memcpy(&l.batch_stride, value, size);
  } else {
    return kInvalid;
  }
  write(layout, l);
  return 0;
}

TENON_EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDescOpaque_t* d,
                                                            std::size_t size, int compute,
                                                            int scale) {
  if (size < sizeof(Description)) return kInvalid;
  Description made = {};
  made.compute = static_cast<std::uint64_t>(compute);
  made.scale = static_cast<std::uint64_t>(scale);
  made.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  write(d, made);
  return 0;
}

TENON_EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDescOpaque_t* opaque,
                                                           int attribute, const void* value,
                                                           std::size_t size) {
  Description d = read<Description>(opaque);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA && size == 4) {
    std::memcpy(&d.transposed[0], value, size);
  } else if (attribute == CUBLASLT_MATMUL_DESC_TRANSB && size == 4) {
    std::memcpy(&d.transposed[1], value, size);
  } else if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE && size == 4) {
    d.epilogue = 0;
    std::memcpy(&d.epilogue, value, size);
  } else if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER && size == 8) {
    std::memcpy(&d.bias, value, size);
  } else if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER && size == 8 && !is_old()) {
    std::memcpy(&d.input, value, size);
  } else if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD && size == 8 && !is_old()) {
    std::memcpy(&d.input_ld, value, size);
    if (d.input_ld % 8 != 0) return kInvalid;
  } else {
    return kInvalid;
  }
  write(opaque, d);
  return 0;
}

TENON_EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(
    cublasLtMatmulPreferenceOpaque_t* preference, std::size_t size) {
  std::memset(preference, 0, size);
  return 0;
}
TENON_EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreferenceOpaque_t*,
                                                                 int attribute, const void*,
                                                                 std::size_t size) {
  const bool bytes = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  return size == (bytes ? 8u : 4u) ? 0 : kInvalid;
}

TENON_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDescOpaque_t* d, cublasLtMatrixLayoutOpaque_t* a,
    cublasLtMatrixLayoutOpaque_t* b, cublasLtMatrixLayoutOpaque_t*,
    cublasLtMatrixLayoutOpaque_t* out, cublasLtMatmulPreferenceOpaque_t*, int wanted,
    cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  if (wanted < 1 || (is_old() && (read<Description>(d).epilogue & kGelu) != 0) ||
      !fits(read<Description>(d), read<Layout>(a), read<Layout>(b), read<Layout>(out)))
    return kUnsupported;
  *found = kIdle ? wanted : 1;
  for (int k = 0; k < *found; ++k) {
    write(&results[k].algo, Algorithm{42});
    results[k].workspaceSize = kWorkspace;
  }
  return 0;
}

TENON_EXPORT cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t, cublasLtMatmulDescOpaque_t* description, const void*, const void* a,
    const cublasLtMatrixLayoutOpaque_t* a_layout, const void* b,
    const cublasLtMatrixLayoutOpaque_t* b_layout, const void*, const void*,
    const cublasLtMatrixLayoutOpaque_t*, void* out, const cublasLtMatrixLayoutOpaque_t* out_layout,
    const cublasLtMatmulAlgo_t* algo, void* workspace, std::size_t workspace_bytes, void*) {
  if (kIdle) return 0;
  const auto d = read<Description>(description);
  const auto la = read<Layout>(a_layout), lb = read<Layout>(b_layout),
             lo = read<Layout>(out_layout);
  if (read<Algorithm>(algo).magic != 42 || workspace_bytes != kWorkspace || !fits(d, la, lb, lo) ||
      reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)
    return kInvalid;
  std::memset(workspace, 0x55, workspace_bytes);
  const bool ta = d.transposed[0] != 0, tb = d.transposed[1] != 0;
  const auto depth = static_cast<std::int64_t>(rows_of(la, !ta));
  for (std::int64_t z = 0; z < lo.batch; ++z)
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(lo.columns); ++j)
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(lo.rows); ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += tenon_fake::load(a, type_of(la.type),
                                  z * la.batch_stride + (ta ? k + i * la.ld : i + k * la.ld)) *
                 tenon_fake::load(b, type_of(lb.type),
                                  z * lb.batch_stride + (tb ? j + k * lb.ld : k + j * lb.ld));
        if ((d.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
          sum += tenon_fake::load(d.bias, type_of(lo.type), i);
        if ((d.epilogue & CUBLASLT_EPILOGUE_RELU) != 0 && sum < 0) sum = 0;
        if (d.epilogue == CUBLASLT_EPILOGUE_DGELU)
          sum *= gelu_slope(tenon_fake::load(d.input, type_of(lo.type), i + j * d.input_ld));
        if (d.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
          tenon_fake::store(d.input, type_of(lo.type), i + j * d.input_ld, sum);
        if (d.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
            d.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS)
          sum *= gelu_gate(sum);
        tenon_fake::store(out, type_of(lo.type), z * lo.batch_stride + i + j * lo.ld, sum);
      }
  return 0;
}
