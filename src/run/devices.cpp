// Devices by name: asking for one opens it, or says what is missing.
#include "run/devices.h"

#include <mutex>

#include <tenon/device.h>

#include "cuda/cuda.h"
#include "device/memory.h"
#include "device/parse.h"
#include "graph/context.h"

namespace tenon {

void open_device(Device device) {
  if (device.kind == Device::Kind::Cpu) return;
  cuda::target_of(device.index);  // throws and says what is missing
  static std::once_flag once;
  std::call_once(once, [] { install_cuda_memory(&cuda::memory()); });
}

Device device(const std::string& text) {
  const Device parsed = parse_device(text);
  open_device(parsed);
  return parsed;
}

void set_device(Device device) {
  open_device(device);
  this_context().device = device;
}

void set_device(const std::string& text) { set_device(device(text)); }

void compile_in_processes(int argc, char** argv) { cuda::compile_in_processes(argc, argv); }

void synchronize() { cuda::synchronize(); }

Device current_device() { return this_context().device; }

}  // namespace tenon
