// Loads nvJPEG.
#include "cuda/device/nvjpeg.h"

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/device/vendor_library.h"

namespace tenon::cuda {
namespace {

Nvjpeg load_nvjpeg() {
  Nvjpeg table;
  const Library& library = nvjpeg_library();
  table.path = library.path;
  table.problem = library.problem;
  if (library.handle == nullptr) return table;
  FunctionFinder find(library);
#define TENON_NVJPEG_FIND(name, parameters) find(table.name, #name);
  TENON_NVJPEG_FUNCTIONS(TENON_NVJPEG_FIND)
#undef TENON_NVJPEG_FIND
  table.problem = find.problem();
  if (!table.problem.empty()) return table;
  int major = 0, minor = 0;
  table.nvjpegGetProperty(0, &major);
  table.nvjpegGetProperty(1, &minor);
  table.version = cat(major, ".", minor);
  if (major < 12) table.problem = cat(table.path, " is version ", table.version, "; 12 is needed");
  return table;
}

}  // namespace

const Nvjpeg& loaded_nvjpeg() {
  static const Nvjpeg* const table = new Nvjpeg(load_nvjpeg());
  return *table;
}

void check_nvjpeg(nvjpegStatus_t status, const char* what) {
  if (status != NVJPEG_STATUS_SUCCESS)
    throw DeviceError(cat("nvJPEG, ", what, ": status ", status,
                          "; the setting augment_on = \"cpu\" decodes images on the CPU"));
}

}  // namespace tenon::cuda
