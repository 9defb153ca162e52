// Loads cuBLASLt and keeps a handle for each GPU.
#include "cuda/engines/vendor/cublaslt_api.h"

#include <map>
#include <mutex>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/device/gpu.h"
#include "cuda/device/vendor_library.h"

namespace tenon::cuda {
namespace {

CublasLt load_cublaslt() {
  CublasLt table;
  const Library& library = cublaslt_library();
  table.path = library.path;
  table.problem = library.problem;
  if (library.handle == nullptr) return table;
  FunctionFinder find(library);
#define TENON_CUBLASLT_FIND(name, parameters) find(table.name, #name);
  TENON_CUBLASLT_FUNCTIONS(TENON_CUBLASLT_FIND)
#undef TENON_CUBLASLT_FIND
  find(table.cublasLtGetVersion, "cublasLtGetVersion");
  find(table.cublasLtGetStatusString, "cublasLtGetStatusString");
  table.problem = find.problem();
  if (table.problem.empty() && table.cublasLtGetVersion() < 120000)
    table.problem = cat(table.path, " is version ", table.cublasLtGetVersion(),
                        "; 120000 (CUDA 12.0) is the first that is used");
  return table;
}

}  // namespace

const CublasLt& loaded_cublaslt() {
  static const CublasLt* const table = new CublasLt(load_cublaslt());
  return *table;
}

const CublasLt& cublaslt() {
  const CublasLt& table = loaded_cublaslt();
  if (!table.problem.empty()) throw DeviceError(cat("cuBLASLt cannot be used: ", table.problem));
  return table;
}

cublasLtHandle_t cublaslt_handle(int ordinal) {
  static std::mutex mutex;
  // Never destroyed: a job may still create a handle when the process ends.
  static auto& handles = *new std::map<int, cublasLtHandle_t>;
  const CublasLt& lt = cublaslt();
  context_of(ordinal);
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[ordinal];
  if (handle == nullptr) check_cublaslt(lt.cublasLtCreate(&handle), "creating its handle");
  return handle;
}

void check_cublaslt(cublasStatus_t status, const std::string& what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(cat("cuBLASLt, ", what, ": ", cublaslt().cublasLtGetStatusString(status),
                          " (", status, "); TENON_CUBLASLT=off runs the native kernels instead"));
}

}  // namespace tenon::cuda
