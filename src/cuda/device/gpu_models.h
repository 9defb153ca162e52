// GpuModels of GPUs: those known by name, those made from a driver's properties, and the file in
// the cache folder that `tenon doctor` writes of a GPU that is not known by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/gpu_model.h"

namespace tenon::cuda {

/// A GPU that is known by name: from NVIDIA's data sheets.
std::optional<GpuModel> named_gpu(std::string_view name);

/// What is the same for all GPUs of an architecture (ten times the compute capability), on a chip
/// as its largest data-centre GPU has it.
GpuModel gpu_of_arch(int arch);

/// What choices go by where kernels cannot be compiled: the model of the GPU of this architecture
/// for which they were compiled ahead (tools/idle_gpu.cpp).
GpuModel gpu_compiled_for(int arch);

/// "tenon-GPU 1" and a line a measured figure: multiply-adds a cycle, bytes a second.
std::string gpu_text(const GpuModel& gpu);
/// Takes over the figures of such a text; false, and nothing taken, when it is none.
bool read_gpu(std::string_view text, GpuModel& gpu);

/// Takes over what was measured of a GPU of that name in this cache folder, if anything.
void add_measured(std::string_view name, GpuModel& gpu);
/// Keeps it there.
void keep_measured(std::string_view name, const GpuModel& gpu);

}  // namespace tenon::cuda
