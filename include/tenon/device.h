// Where a tensor lives.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/export.h>

namespace tenon {

/// A processor with its own memory: "cpu", "cuda:0", "cuda:1", …
struct Device {
  enum class Kind : std::uint8_t { Cpu, Cuda };
  Kind kind = Kind::Cpu;
  std::int16_t index = 0;
  bool operator==(const Device&) const = default;
  /// "cpu" or "cuda:0"
  TENON_API std::string str() const;
};

/// Parses "cpu", "cuda" or "cuda:N". Throws ValueError for another text, DeviceError that says what
/// is missing (GPU, driver, run-time compiler) when the device cannot be used.
TENON_API Device device(const std::string& text);

/// The device on which the calling thread makes tensors, variables and networks that are told no
/// other: the CPU at the start (context.h). Throws as device() does.
TENON_API void set_device(Device device);
TENON_API void set_device(const std::string& text);
TENON_API Device current_device();

/// For the first line of main(). NVIDIA's run-time compiler reads one source at a time in a
/// process, so kernels for GPUs are compiled by this program started several times over: with one
/// argument of the library's own, upon which this call serves and does not return. Such processes
/// end seconds after the last kernel. Without this call, or where none can be started, threads
/// compile. TENON_COMPILER_PROCESSES says how many at most (0: none). Throws ValueError when that
/// is no number. Linux.
TENON_API void compile_in_processes(int argc, char** argv);

/// For programs that look at plans and run none: from now on kernels for GPUs are compiled when
/// they are first launched, one by one, not side by side while a step is planned.
TENON_API void compile_at_launch();

}  // namespace tenon
