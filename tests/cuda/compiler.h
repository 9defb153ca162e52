// Which compiler the tests of kernel sources have.
#pragma once

#include <string>

#include "cuda/jit/nvrtc.h"

namespace tenon::test {

/// True if NVRTC is the emulator's, which ignores architectures and has no inline PTX.
inline bool compiler_is_emulated() {
  return cuda::nvrtc().path.find("tenon_fake_nvrtc") != std::string::npos;
}

}  // namespace tenon::test
