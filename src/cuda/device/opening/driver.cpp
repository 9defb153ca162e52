// Loads the driver, and the texts of its errors.
#include "cuda/device/opening/driver.h"

#include <string_view>

#include <tenon/error.h>

#include "base/system/env.h"
#include "cuda/device/opening/library.h"

namespace tenon::cuda {
namespace {

constexpr int kVersionNeeded = 12000;

// The driver's library is part of the display driver, never of a toolkit. WSL and containers
// install it in the last two places.
Library open_driver(const std::string& file) {
  if (!file.empty()) return open_file(file);
  Library first = open_file("libcuda.so.1");
  if (first.handle != nullptr) return first;
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
                           "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
                           "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"})
    if (Library library = open_file(path); library.handle != nullptr) return library;
  return first;  // its message describes best what is missing
}

// Fills the table; returns the first required name that is missing, or null.
const char* fill(Driver& table, const Library& library) {
  const char* missing = nullptr;
#define TENON_DRIVER_LOAD(name, entry, parameters) \
  table.name = reinterpret_cast<decltype(table.name)>(library.symbol(entry));
#define TENON_DRIVER_LOAD_REQUIRED(name, entry, parameters) \
  TENON_DRIVER_LOAD(name, entry, parameters)                \
  if (table.name == nullptr && missing == nullptr) missing = entry;
  TENON_DRIVER_REQUIRED(TENON_DRIVER_LOAD_REQUIRED)
  TENON_DRIVER_OPTIONAL(TENON_DRIVER_LOAD)
#undef TENON_DRIVER_LOAD_REQUIRED
#undef TENON_DRIVER_LOAD
  return missing;
}

std::string error_name(const Driver& table, CUresult result) {
  const char* name = nullptr;
  if (table.cuGetErrorName != nullptr) table.cuGetErrorName(result, &name);
  return name != nullptr ? std::string(name) : cat("error ", static_cast<int>(result));
}

std::string error_text(const Driver& table, CUresult result) {
  const char* text = nullptr;
  if (table.cuGetErrorString != nullptr) table.cuGetErrorString(result, &text);
  return text != nullptr ? std::string(text) : std::string("unknown to this driver");
}

std::string initialise(const Driver& table) {
  const CUresult result = table.cuInit(0);
  if (result == CUDA_SUCCESS) return {};
  const std::string name = error_name(table, result);
  if (result == CUDA_ERROR_NO_DEVICE)
    return cat("the NVIDIA driver finds no GPU (", name,
               "): check nvidia-smi, and that CUDA_VISIBLE_DEVICES does not hide it");
  return cat("the NVIDIA driver does not start: ", name, " (", error_text(table, result),
             "): check nvidia-smi; a reboot helps after an update of the driver");
}

std::string too_old(int version) {
  return cat("the NVIDIA driver serves CUDA ", version_text(version), ", Tenon needs ",
             version_text(kVersionNeeded), " or newer: update the driver (525 or newer)");
}

// Advice to the reader of an error.
std::string_view advice(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ASSERT:
      return "an earlier kernel failed, so this process can no longer use the GPU: start it again; "
             "if "
             "this repeats, run it under compute-sanitizer and report it";
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return "a display is attached to the GPU and a kernel took too long: use a smaller batch";
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      return "the GPU's memory is damaged: check nvidia-smi -q";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "NVRTC is newer than the driver supports: update the driver, or install the NVRTC of "
             "the driver's CUDA version";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "another process uses the GPU exclusively: check nvidia-smi";
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return "a service that the GPU needs is not running (nvidia-fabricmanager)";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "libcuda and the kernel module differ in version: reboot after an update";
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
      return "the step cannot be captured as a CUDA graph: please report it";
    default:
      return "check nvidia-smi; if it repeats, report it with the output of 'tenon doctor'";
  }
}

}  // namespace

std::string version_text(int version) { return cat(version / 1000, ".", version % 1000 / 10); }

LoadedDriver load_driver(const std::string& file) {
  LoadedDriver loaded;
  if (file == "off") {
    loaded.problem = "the NVIDIA driver is switched off (TENON_CUDA_DRIVER is 'off')";
    return loaded;
  }
  const Library library = open_driver(file);
  loaded.path = library.path;
  if (library.handle == nullptr) {
    loaded.problem = cat("no NVIDIA driver can be loaded (", library.problem,
                         "): install one, or use --device cpu");
    return loaded;
  }
  const char* missing = fill(loaded.table, library);
  if (loaded.table.cuDriverGetVersion != nullptr) loaded.table.cuDriverGetVersion(&loaded.version);
  if (loaded.version != 0 && loaded.version < kVersionNeeded)
    loaded.problem = too_old(loaded.version);
  else if (missing != nullptr)
    loaded.problem =
        cat("the NVIDIA driver ", loaded.path, " lacks ", missing,
            ": update it to one that serves CUDA ", version_text(kVersionNeeded), " or newer");
  else
    loaded.problem = initialise(loaded.table);
  return loaded;
}

bool driver_present() {
  const std::string file = env_text("TENON_CUDA_DRIVER");
  return file != "off" && open_driver(file).handle != nullptr;
}

const LoadedDriver& loaded_driver() {
  // Never destroyed: memory in static storage is released through it at the end of the process.
  static const LoadedDriver* const loaded =
      new LoadedDriver(load_driver(env_text("TENON_CUDA_DRIVER")));
  return *loaded;
}

bool has_tensor_maps() { return loaded_driver().table.cuTensorMapEncodeTiled != nullptr; }

const Driver& driver() {
  const LoadedDriver& loaded = loaded_driver();
  if (!loaded.problem.empty()) throw DeviceError(loaded.problem);
  return loaded.table;
}

void detail::fail(CUresult result, const std::string& what) {
  const Driver& table = loaded_driver().table;
  const std::string message =
      cat(what, ": ", error_name(table, result), " (", error_text(table, result), "); ");
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw MemoryError(message + "use a smaller batch, or free the GPU of other processes");
  throw DeviceError(message + std::string(advice(result)));
}

}  // namespace tenon::cuda
