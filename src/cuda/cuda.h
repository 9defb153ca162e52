// The entry header of the CUDA backend: GPUs, memory, engines, replay.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/target.h"
#include "device/backend.h"
#include "plan/program/program.h"

namespace tenon::cuda {

/// A library that is loaded at run time.
struct LibraryFact {
  std::string name;  // "driver", "NVRTC", "cuBLASLt", "cuDNN"
  bool found = false;
  std::string path;     // where it was found, or the places searched
  std::string version;  // or the reason why it was not found or cannot be used
};
struct GpuFact {
  std::string name;
  Target target;
  std::int64_t memory_total = 0, memory_free = 0;
};
struct Facts {
  std::vector<LibraryFact> libraries;
  std::vector<GpuFact> gpus;
  std::string why_none;  // why no GPU can be used; empty when one can
  std::string built_in;  // description of the kernels compiled ahead; empty if there are none
};
Facts facts();

/// CUDA GPUs as a backend.
Backend& backend();

/// Number of usable GPUs; never throws.
int gpu_count() noexcept;
/// Throws DeviceError that says what is missing (driver, NVRTC, GPU, compute capability 8.0) and
/// what to do.
Target target_of(int index);
DeviceMemory& memory();
/// The engines for a target in the order in which the planner asks them. The last one claims every
/// region that the backend can run.
std::span<const Engine* const> engines(const Target& target);

/// As in <tenon/device.h>.
void compile_in_processes(int argc, char** argv);
void compile_at_launch();

/// The stream on which all work of a GPU is queued (CUstream).
void* stream(int index);
void synchronize(int index);
/// Waits for all GPUs that this process has opened. Does not look for GPUs, so a program that runs
/// on the CPU does not start the driver.
void synchronize();

/// Queues every step of a program once on its GPU's stream. `values` has an address for each value.
void run_once(const Program& program, std::byte* const* values, std::byte* arena);

/// The first call is queued step by step. The second call with a given number of runs is captured
/// as a CUDA graph, in which independent steps may run concurrently; further calls are one launch.
/// If addresses of inputs and outputs change from call to call, they are patched into the graph.
std::unique_ptr<Replay> make_replay(std::shared_ptr<const Program> program);

/// Median milliseconds of one step, launched repeatedly inside a graph. The step's assignments are
/// executed as often.
double measure(const Kernel& kernel, const Binding& binding, int index, int repeats);

/// Like the members of Trials with these names (device/backend.h).
void fill_random(void* data, DType dtype, std::int64_t count, std::uint64_t seed, double scale,
                 int index);
void poison(void* data, std::size_t bytes, int index);

using Difference = Trials::Difference;
Difference difference(const void* expected, const void* got, DType dtype, std::int64_t count,
                      int index);

/// Empty if kernels can neither be compiled nor are built in.
std::vector<std::string_view> measured_choices();

/// The GPU's name: "NVIDIA H200".
std::string model_of(int index);

/// Peak rates in FLOP/s and bytes/s, measured in about half a second.
struct Rates {
  double fp32 = 0, tf32 = 0, bf16 = 0, copy = 0;
};
Rates measure_rates(int index);

}  // namespace tenon::cuda
