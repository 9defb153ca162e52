// Backend: a kind of device as the rest of the library sees it. Memory, order of work, replay,
// facts, engines, trials for the tuner and communicators stand behind this interface; the rooms
// that plan and run ask for nothing else, so that a backend more changes nothing in them.
//
// A backend is registered once, under its Device::Kind, and lives to the end of the process. It
// knows no op: engines and programs only pass through.
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
  std::string model;              // what it calls itself: "NVIDIA H200"
  std::int64_t memory_bytes = 0;  // that it has in all; 0: as much as the system gives
  GpuModel gpu;                   // what models of time go by
};

/// A program that is called again and again, for one run or several in a row. What may be prepared
/// of it once (a captured graph) is.
class Replay {
 public:
  virtual ~Replay() = default;
  /// In run r value k stands at values[k] + r * strides[k] bytes; only inputs and outputs have
  /// strides.
  virtual void run(std::span<std::byte* const> values, std::span<const std::int64_t> strides,
                   int runs, std::byte* arena) = 0;
};

/// What the tuner needs to try kernels out. All of it is queued.
class Trials {
 public:
  virtual ~Trials() = default;
  /// Floating numbers lie in [-scale, scale), or with a negative scale between half and one and a
  /// half of it without the sign; whole ones in 0 to 7; the same seed gives the same numbers.
  virtual void fill_random(void* data, DType dtype, std::int64_t count, std::uint64_t seed,
                           double scale, int index) = 0;
  /// Fills with bytes that are no result: NaN where numbers are floating.
  virtual void poison(void* data, std::size_t bytes, int index) = 0;

  /// Sums over all elements: squared differences, squares of what was expected, and how many are
  /// finite (or NaN, or infinite) in one of the two only.
  struct Difference {
    double apart = 0, size = 0;
    std::int64_t broken = 0;
  };
  virtual Difference difference(const void* expected, const void* got, DType dtype,
                                std::int64_t count, int index) = 0;
  /// Tables of the fastest engines by GPU (TuneTable's text) that travel in the library.
  virtual std::vector<std::string_view> measured_choices() = 0;
};

class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual Device::Kind kind() const = 0;
  /// In the text of its devices, "name:0".
  virtual const char* name() const = 0;
  /// Touches no device.
  virtual DeviceTraits traits() const = 0;

  /// Makes a device ready, or begins to. Throws DeviceError that says what is missing and what to
  /// do. The others may be called without it; they open the device where they need it.
  virtual void open(int index) = 0;
  virtual DeviceFacts facts(int index) = 0;
  /// Null on the host, whose memory Buffer has.
  virtual DeviceMemory* memory() = 0;
  /// In the order in which they are asked; the last claims every region that the backend can run.
  /// `reference`: those that are plain enough to check others. Throws NotSupported where there are
  /// none.
  virtual std::span<const Engine* const> engines(int index, bool reference) = 0;

  /// What a Binding's work is queued on; null where calls do the work.
  virtual void* stream(int index) = 0;
  /// Waits for all devices that this process has opened; looks for none.
  virtual void synchronize() = 0;

  /// Does, or queues, every step of a program of one of its devices once. `values` holds an
  /// address for each value.
  virtual void run_once(const Program& program, std::byte* const* values, std::byte* arena) = 0;
  /// Null where nothing is gained by preparing: the program is run step by step each time.
  virtual std::unique_ptr<Replay> make_replay(std::shared_ptr<const Program> program) = 0;
  /// Milliseconds of one launch; where one is too short to be timed, the median of rounds of
  /// `repeats`, and what the step assigns is assigned as often.
  virtual double measure(const Kernel& kernel, const Binding& binding, int index, int repeats) = 0;
  /// Null where a region has one engine, so that there is nothing to tune.
  virtual Trials* trials() { return nullptr; }
  /// `slots` of `bytes` each. Null on the host, and where copies wait for work in any case.
  virtual std::unique_ptr<Uploads> make_uploads(int /*slots*/, std::size_t /*bytes*/,
                                                int /*index*/) {
    return nullptr;
  }
  /// Opens the device.
  virtual ImageDecoder image_decoder(int /*index*/) {
    return {false, false, false, "this kind of device decodes no images"};
  }
  /// Null where calls do the work: the caller's own clock tells.
  virtual std::unique_ptr<IdleClock> make_idle_clock(int /*index*/) { return nullptr; }
  /// A group of these of its devices; one that exchanges through the host, unless the backend has
  /// another.
  virtual std::unique_ptr<Communicator> make_communicator(std::span<const int> indices);
};

/// Registers a backend under its kind, unless it is already. Throws InternalError where another has
/// the kind or the name.
void register_backend(Backend& backend);
/// Null where none is registered under this kind.
Backend* find_backend(Device::Kind kind) noexcept;
/// Throws DeviceError where none is registered under this kind.
Backend& backend_of(Device device);
std::vector<Backend*> registered_backends();

}  // namespace tenon
