// Loading cuDNN.
#include "cuda/engines/cudnn_api.h"

#include <type_traits>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/device/vendor_library.h"

namespace tenon::cuda {
namespace {

Cudnn load() {
  Cudnn table;
  const Library& library = cudnn_library();
  table.path = library.path;
  table.problem = library.problem;
  if (library.handle == nullptr) return table;
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.symbol(name));
    if (function == nullptr) missing = name;
  };
#define TENON_CUDNN_FIND(name, parameters) find(table.name, #name);
  TENON_CUDNN_FUNCTIONS(TENON_CUDNN_FIND)
#undef TENON_CUDNN_FIND
  find(table.cudnnGetVersion, "cudnnGetVersion");
  find(table.cudnnGetErrorString, "cudnnGetErrorString");
  if (missing != nullptr)
    table.problem = cat(table.path, " has no ", missing);
  else if (table.cudnnGetVersion() < 90000)
    table.problem =
        cat(table.path, " is version ", table.cudnnGetVersion(), "; 9.0 is the first that is used");
  return table;
}

}  // namespace

const Cudnn& loaded_cudnn() {
  static const Cudnn* const table = new Cudnn(load());
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
