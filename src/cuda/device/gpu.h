// Usable GPUs. Each has the driver's primary context, one stream on which all work is queued, and
// one stream for concurrent copies.
//
// GPUs are numbered in the driver's order, without those that are too old. Context and streams of a
// GPU are created on first use and live until the end of the process.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/device/opening/driver_api.h"
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

/// Number of usable GPUs; 0 without a GPU or driver. Never throws.
int usable_gpus() noexcept;
/// Facts about one GPU, without opening it. Throws DeviceError that says why there is none.
const Gpu& gpu_at(int index);
/// Opens the GPU if it is not open yet, and makes its context current in this thread.
const Context& context_of(int index);
/// True if the GPU has been opened.
bool is_open(int index);
/// True if this process has listed GPUs, which starts the driver and loads the compiler.
bool gpus_listed() noexcept;
/// Why no GPU can be used: no driver, no GPU, all too old, no NVRTC; empty if one can.
const std::string& why_no_gpu();

/// Allows actions in this thread that a stream capture of any thread forbids otherwise: allocating,
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

/// An event for ordering streams; it takes no time stamps.
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
