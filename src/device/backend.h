// Backend: a kind of device as the rest of the library sees it. Memory, queueing, replay, device
// facts, engines, timing for the tuner and communicators are behind this interface. Planning and
// running use nothing else, so another backend changes nothing there.
//
// A backend is registered once under its Device::Kind and lives to the end of the process. It knows
// no operation: engines and programs only pass through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/device.h>
#include <tenon/dtype.h>

#include "device/communicator.h"
#include "device/gpu_model.h"
#include "device/memory.h"
#include "device/traits.h"
#include "device/uploads.h"

namespace tenon {

class Engine;
class Kernel;
struct Binding;
struct Program;

struct DeviceFacts {
  std::string model;              // the device's own name: "NVIDIA H200"
  std::int64_t memory_bytes = 0;  // total memory; 0: as much as the system gives
  GpuModel gpu;                   // figures for time models
};

/// A program that is called repeatedly, for one or several runs in a row. Work that is needed only
/// once (capturing a graph) is done once.
class Replay {
 public:
  virtual ~Replay() = default;
  /// In run r, value k is at values[k] + r * strides[k] bytes; only inputs and outputs have
  /// strides.
  virtual void run(std::span<std::byte* const> values, std::span<const std::int64_t> strides,
                   int runs, std::byte* arena) = 0;
};

/// Helpers for the tuner to test kernels. All work is queued.
class Trials {
 public:
  virtual ~Trials() = default;
  /// Floating numbers are in [-scale, scale); with a negative scale they are positive, between half
  /// and one and a half of its absolute value; integers are in 0 to 7. The same seed gives the same
  /// numbers.
  virtual void fill_random(void* data, DType dtype, std::int64_t count, std::uint64_t seed,
                           double scale, int index) = 0;
  /// Fills with bytes that no kernel writes: NaN for floating dtypes.
  virtual void poison(void* data, std::size_t bytes, int index) = 0;

  /// Sums over all elements: squared differences, squared expected values, and the number of
  /// elements that are finite (or NaN, or infinite) in only one of the two.
  struct Difference {
    double apart = 0, size = 0;
    std::int64_t broken = 0;
  };
  virtual Difference difference(const void* expected, const void* got, DType dtype,
                                std::int64_t count, int index) = 0;
  /// Tables of the fastest engines by GPU (TuneTable's text), built into the library.
  virtual std::vector<std::string_view> measured_choices() = 0;
};

class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual Device::Kind kind() const = 0;
  /// The name in the text of its devices, "name:0".
  virtual const char* name() const = 0;
  /// Touches no device.
  virtual DeviceTraits traits() const = 0;

  /// Makes a device ready, or starts to. Throws DeviceError that says what is missing and what to
  /// do. The other functions may be called without open(); they open the device when they need it.
  virtual void open(int index) = 0;
  virtual DeviceFacts facts(int index) = 0;
  /// Null on the host, where Buffer manages memory itself.
  virtual DeviceMemory* memory() = 0;
  /// In the order in which they are asked; the last one claims every region that the backend can
  /// run. `reference`: only engines simple enough to check others. Throws NotSupported if there are
  /// none.
  virtual std::span<const Engine* const> engines(int index, bool reference) = 0;

  /// The stream that a Binding's work is queued on; null if calls do the work.
  virtual void* stream(int index) = 0;
  /// Waits for all devices that this process has opened; opens none.
  virtual void synchronize() = 0;

  /// Runs or queues every step of a program for one of its devices once. `values` holds an address
  /// for each value.
  virtual void run_once(const Program& program, std::byte* const* values, std::byte* arena) = 0;
  /// Null if preparing gains nothing: the program then runs step by step each time.
  virtual std::unique_ptr<Replay> make_replay(std::shared_ptr<const Program> program) = 0;
  /// Milliseconds of one launch. If one launch is too short to time, the median over rounds of
  /// `repeats` launches; the assignments of the step are then executed once for each launch.
  virtual double measure(const Kernel& kernel, const Binding& binding, int index, int repeats) = 0;
  /// Null if each region has one engine, so that there is nothing to tune.
  virtual Trials* trials() { return nullptr; }
  /// `slots` of `bytes` each. Null on the host, and on devices whose copies wait for other work in
  /// any case.
  virtual std::unique_ptr<Uploads> make_uploads(int /*slots*/, std::size_t /*bytes*/,
                                                int /*index*/) {
    return nullptr;
  }
  /// Opens the device.
  virtual ImageDecoder image_decoder(int /*index*/) {
    return {false, false, false, "this kind of device does not decode images"};
  }
  /// Null if calls do the work: the caller's own clock is then enough.
  virtual std::unique_ptr<IdleClock> make_idle_clock(int /*index*/) { return nullptr; }
  /// A group of these devices. Null if the backend has no exchange of its own: the group then
  /// exchanges through the host (groups.h).
  virtual std::unique_ptr<Communicator> make_communicator(std::span<const int> /*indices*/) {
    return nullptr;
  }
};

/// Registers a backend under its kind; does nothing if it is registered already. Throws
/// InternalError if another backend has the kind or the name.
void register_backend(Backend& backend);
/// Null if no backend is registered under this kind.
Backend* find_backend(Device::Kind kind) noexcept;
/// Throws DeviceError if no backend is registered under this kind.
Backend& backend_of(Device device);
std::vector<Backend*> registered_backends();

}  // namespace tenon
