// Registers the backends.
#include "backends/backends.h"

#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "device/backend.h"

namespace tenon {

// Not by std::call_once(): an exception that leaves it passes through the C library, which ends the
// process if it then has no memory to load the unwinder.
void register_backends() {
  [[maybe_unused]] static const bool done = [] {
    register_backend(cpu::backend());
    register_backend(cuda::backend());
    return true;
  }();
}

}  // namespace tenon
