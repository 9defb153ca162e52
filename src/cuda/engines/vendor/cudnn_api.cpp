// Loads cuDNN.
#include "cuda/engines/vendor/cudnn_api.h"

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/device/vendor_library.h"

namespace tenon::cuda {
namespace {

Cudnn load_cudnn() {
  Cudnn table;
  const Library& library = cudnn_library();
  table.path = library.path;
  table.problem = library.problem;
  if (library.handle == nullptr) return table;
  FunctionFinder find(library);
#define TENON_CUDNN_FIND(name, parameters) find(table.name, #name);
  TENON_CUDNN_FUNCTIONS(TENON_CUDNN_FIND)
#undef TENON_CUDNN_FIND
  find(table.cudnnGetVersion, "cudnnGetVersion");
  find(table.cudnnGetErrorString, "cudnnGetErrorString");
  table.problem = find.problem();
  if (table.problem.empty() && table.cudnnGetVersion() < 90000)
    table.problem =
        cat(table.path, " is version ", table.cudnnGetVersion(), "; 9.0 is the first that is used");
  return table;
}

}  // namespace

const Cudnn& loaded_cudnn() {
  static const Cudnn* const table = new Cudnn(load_cudnn());
  return *table;
}

const Cudnn& cudnn() {
  const Cudnn& table = loaded_cudnn();
  if (!table.problem.empty()) throw DeviceError(cat("cuDNN cannot be used: ", table.problem));
  return table;
}

void check_cudnn(cudnnStatus_t status, const std::string& what) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw DeviceError(cat("cuDNN, ", what, ": ", cudnn().cudnnGetErrorString(status), " (", status,
                          "); TENON_CUDNN=off runs the native kernels instead"));
}

}  // namespace tenon::cuda
