// The CUDA driver as a table of functions, loaded on first use, and the check of every driver call.
//
// The environment variable TENON_CUDA_DRIVER names another file to load, or is "off".
#pragma once

#include <string>

#include "base/str.h"
#include "cuda/device/opening/driver_api.h"

namespace tenon::cuda {

/// The driver's entry points. Members carry the names of cuda.h, without version suffixes.
struct Driver {
#define TENON_DRIVER_MEMBER(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  TENON_DRIVER_REQUIRED(TENON_DRIVER_MEMBER)
  TENON_DRIVER_OPTIONAL(TENON_DRIVER_MEMBER)
#undef TENON_DRIVER_MEMBER
};

/// The result of loading. `problem` is empty if the table is complete and the driver is
/// initialised.
struct LoadedDriver {
  Driver table;
  std::string path;     // the file, or the names searched
  int version = 0;      // 1000 * major + 10 * minor of the CUDA API it serves; 0: unknown
  std::string problem;  // a complete sentence with advice
};

/// True if the process's driver can be loaded, which takes a millisecond; does not start the
/// driver.
bool driver_present();
/// Loads the driver from `file` ("": its usual places). Never throws if the driver is missing, too
/// old or broken.
LoadedDriver load_driver(const std::string& file);
/// The process's driver, loaded once; never throws.
const LoadedDriver& loaded_driver();
/// True if the driver makes tensor maps, as every driver of a Hopper GPU does. The emulated driver
/// has none of the functions that kernels for Hopper need.
bool has_tensor_maps();
/// The entry points. Throws DeviceError that says why there is no driver.
const Driver& driver();

inline CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

/// "12.4" for 12040.
std::string version_text(int version);

namespace detail {
[[noreturn]] void fail(CUresult result, const std::string& what);
}

/// Throws if `result` is an error: MemoryError if memory ran out, otherwise DeviceError, with the
/// error's name and text, the failed action ("launching softmax") and advice.
template <class... Args>
void check(CUresult result, const Args&... what) {
  if (result != CUDA_SUCCESS) detail::fail(result, cat(what...));
}

}  // namespace tenon::cuda
