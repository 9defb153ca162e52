// Registers the backends.
#include "backends/backends.h"

#include <mutex>

#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "device/backend.h"

namespace tenon {

void register_backends() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_backend(cpu::backend());
    register_backend(cuda::backend());
  });
}

}  // namespace tenon
