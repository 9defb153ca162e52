// GPUs that can be used, each with the primary context of its driver, one stream on which all work
// is queued, and one for copies beside it.
//
// GPUs are numbered in the driver's order without those that are too old. A GPU's context and
// streams are made when they are first needed and stay to the end of the process.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/device/driver_api.h"
#include "cuda/target.h"

namespace tenon::cuda {

struct Gpu {
  int index = 0;
  CUdevice device = 0;
  std::string name;
  Target target;
  std::int64_t memory_total = 0;
};

/// An opened GPU.
struct Context {
  const Gpu* gpu = nullptr;
  CUcontext context = nullptr;
  CUstream work = nullptr;
  CUstream copies = nullptr;
  /// "cuda:0 (NVIDIA H200)"
  std::string title() const;
};

/// Number of GPUs; 0 when there is none or no driver. Never throws.
int usable_gpus() noexcept;
/// Facts of one GPU, without opening it. Throws DeviceError that says why there is none.
const Gpu& gpu_at(int index);
/// Opens the GPU when it is not yet and makes its context current in this thread.
const Context& context_of(int index);
/// Whether it has been opened.
bool is_open(int index);
/// Whether this process has looked for GPUs, which starts the driver and reads the compiler.
bool gpus_listed() noexcept;
/// Why no GPU can be used: no driver, no GPU, all too old, no NVRTC; empty when one can.
const std::string& why_no_gpu();

/// Allows in this thread what a stream capture of any thread forbids otherwise: allocating,
/// loading modules.
class OutsideCapture {
 public:
  OutsideCapture() noexcept;
  ~OutsideCapture();
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// An event for order between streams; without a clock.
class Event {
 public:
  Event() = default;
  explicit Event(const Context& context);
  Event(Event&& other) noexcept : event_(other.event_) { other.event_ = nullptr; }
  Event& operator=(Event&& other) noexcept;
  ~Event();
  CUevent get() const noexcept { return event_; }
  explicit operator bool() const noexcept { return event_ != nullptr; }

 private:
  CUevent event_ = nullptr;
};

}  // namespace tenon::cuda
