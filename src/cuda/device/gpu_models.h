// GpuModels: known by GPU name, made from a driver's properties, or read from the file that `tenon
// doctor` writes to the cache folder for a GPU that is not known by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/gpu_model.h"

namespace tenon::cuda {

/// A GPU that is known by name, with figures from NVIDIA's data sheets.
std::optional<GpuModel> named_gpu(std::string_view name);

/// The figures of an architecture (ten times the compute capability): those that all its GPUs
/// share, and for the rest those of its largest data-centre GPU.
GpuModel gpu_of_arch(int arch);

/// The model for choices if kernels cannot be compiled: the GPU of this architecture for which the
/// built-in kernels were compiled (tools/idle_gpu.cpp).
GpuModel gpu_compiled_for(int arch);

/// "tenon-gpu 1", then one line per measured figure: multiply-adds a cycle, bytes a second.
std::string gpu_text(const GpuModel& gpu);
/// Reads the figures of such a text into `gpu`. Returns false and changes nothing if the text has
/// another format.
bool read_gpu(std::string_view text, GpuModel& gpu);

/// Adds the figures measured for a GPU of that name, if this cache folder has any.
void add_measured(std::string_view name, GpuModel& gpu);
/// Stores the measured figures in the cache folder.
void keep_measured(std::string_view name, const GpuModel& gpu);

}  // namespace tenon::cuda
