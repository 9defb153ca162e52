// Devices: the CPU and CUDA GPUs.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/export.h>

namespace tenon {

/// A processor with its own memory: "cpu", "cuda:0", "cuda:1", … (PyTorch: torch.device).
struct Device {
  /// The kind of a device.
  enum class Kind : std::uint8_t {
    Cpu,  ///< the CPU
    Cuda  ///< a GPU of NVIDIA
  };
  Kind kind = Kind::Cpu;   ///< the kind
  std::int16_t index = 0;  ///< number of the GPU, from 0; 0 for the CPU
  /// Whether both are the same device.
  bool operator==(const Device&) const = default;
  /// "cpu" or "cuda:0".
  TENON_API std::string str() const;
};

/// Parses "cpu", "cuda" (GPU 0) or "cuda:N". Throws ValueError for another text. Throws DeviceError
/// if the device cannot be used; the message says what is missing (GPU, driver, run-time compiler).
TENON_API Device device(const std::string& text);

/// Sets the default device of the calling thread, where new tensors, variables and networks are
/// created (PyTorch: torch.set_default_device). At the start it is the CPU (context.h). Throws as
/// device().
TENON_API void set_device(Device device);
/// The same from a text that device() parses.
TENON_API void set_device(const std::string& text);
/// The default device of the calling thread.
TENON_API Device current_device();

/// Compiles GPU kernels in several processes at the same time. Call it in the first line of main().
///
/// NVIDIA's run-time compiler compiles only one source at a time in a process. The library
/// therefore starts this program several more times, with one argument of its own; in such a
/// process this call compiles kernels and does not return. The processes end some seconds after the
/// last kernel. Without this call, or if no process can be started, threads compile the kernels.
///
/// The environment variable TENON_COMPILER_PROCESSES sets the largest number of processes (0:
/// none). Throws ValueError if its value is not a number. Linux only.
///
/// @param argc  the first argument of main()
/// @param argv  the second argument of main()
TENON_API void compile_in_processes(int argc, char** argv);

/// From now on compiles a GPU kernel when it is first launched, one at a time, instead of all
/// kernels in parallel during planning. For programs that inspect plans and run none.
TENON_API void compile_at_launch();

}  // namespace tenon
