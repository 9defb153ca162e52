// A GPU without the library's CUDA backend: driver and NVRTC by dlopen, for tests of the intrinsics
// and of the emulator. For the emulated GPU and for real ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/device/driver_api.h"

namespace raw {

using namespace tenon::cuda;

struct Functions {
#define TENON_RAW_MEMBER(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  TENON_DRIVER_REQUIRED(TENON_RAW_MEMBER)
  TENON_DRIVER_OPTIONAL(TENON_RAW_MEMBER)
#undef TENON_RAW_MEMBER
};

struct Size {
  unsigned x = 1, y = 1, z = 1;
};

class Gpu {
 public:
  Functions call;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  bool emulated = false;

  /// The kernel `entry` of a source; throws std::runtime_error with the compiler's messages.
  CUfunction compile(const std::string& text, const std::string& entry);
  CUresult launch(CUfunction function, Size grid, Size block, std::vector<void*> params,
                  unsigned shared_bytes = 0);
  /// Throws std::runtime_error unless the result is success.
  void check(CUresult result);
  std::string words(CUresult result);

 private:
  friend Gpu* gpu();
  Gpu();
  void* nvrtc_ = nullptr;
};

/// Null if there is no GPU or no NVRTC; reports 'skipped' then.
Gpu* gpu();

/// Floats (or others) on the GPU.
template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : count_(values.size()) {
    gpu()->check(gpu()->call.cuMemAlloc(&address_, bytes()));
    set(values);
  }
  ~Array() { gpu()->call.cuMemFree(address_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  void set(const std::vector<T>& values) {
    gpu()->check(gpu()->call.cuMemcpyHtoDAsync(address_, values.data(), bytes(), gpu()->stream));
    gpu()->check(gpu()->call.cuStreamSynchronize(gpu()->stream));
  }
  std::vector<T> get() const {
    std::vector<T> values(count_);
    gpu()->check(gpu()->call.cuMemcpyDtoHAsync(values.data(), address_, bytes(), gpu()->stream));
    gpu()->check(gpu()->call.cuStreamSynchronize(gpu()->stream));
    return values;
  }
  CUdeviceptr& address() { return address_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  std::size_t count_;
  CUdeviceptr address_ = 0;
};

}  // namespace raw
