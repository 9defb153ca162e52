// A card without the library's own CUDA backend: the driver and NVRTC by dlopen, for tests of the
// intrinsics and of the emulator. On the emulated card and on real ones alike.
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

class Card {
 public:
  Functions call;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  bool emulated = false;

  /// The kernel `entry` of a text; throws std::runtime_error with the compiler's words.
  CUfunction compile(const std::string& text, const std::string& entry);
  CUresult launch(CUfunction function, Size grid, Size block, std::vector<void*> params,
                  unsigned shared_bytes = 0);
  /// Throws std::runtime_error for any other result than success.
  void check(CUresult result);
  std::string words(CUresult result);

 private:
  friend Card* card();
  Card();
  void* nvrtc_ = nullptr;
};

/// Null when there is no card or no NVRTC; says 'skipped' then.
Card* card();

/// Floats (or others) on the card.
template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : count_(values.size()) {
    card()->check(card()->call.cuMemAlloc(&address_, bytes()));
    set(values);
  }
  ~Array() { card()->call.cuMemFree(address_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  void set(const std::vector<T>& values) {
    card()->check(card()->call.cuMemcpyHtoDAsync(address_, values.data(), bytes(), card()->stream));
    card()->check(card()->call.cuStreamSynchronize(card()->stream));
  }
  std::vector<T> get() const {
    std::vector<T> values(count_);
    card()->check(card()->call.cuMemcpyDtoHAsync(values.data(), address_, bytes(), card()->stream));
    card()->check(card()->call.cuStreamSynchronize(card()->stream));
    return values;
  }
  CUdeviceptr& address() { return address_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  std::size_t count_;
  CUdeviceptr address_ = 0;
};

}  // namespace raw
