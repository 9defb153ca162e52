// The instruction set of the CPU's kernels, or the name of the GPU.
#include "train/batches/device_text.h"

#include <tenon/device.h>
#include <tenon/system.h>

#include "base/str.h"

namespace tenon::train {

std::string device_text() {
  const Device device = current_device();
  if (device.kind == Device::Kind::Cpu) return cat("cpu ", system_info().isa);
  for (const GpuInfo& gpu : cuda_info().gpus)
    if (gpu.device == device.str()) return gpu.name;
  return device.str();
}

}  // namespace tenon::train
