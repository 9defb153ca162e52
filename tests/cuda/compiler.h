// Which compiler the tests of kernel texts have.
#pragma once

#include <string>

#include "cuda/jit/nvrtc.h"

namespace tenon::test {

/// Whether NVRTC is the emulator's, which knows no architectures and no inline PTX.
inline bool compiler_is_emulated() {
  return cuda::nvrtc().path.find("tenon_fake_nvrtc") != std::string::npos;
}

}  // namespace tenon::test
