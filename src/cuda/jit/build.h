// From a source to an image: look in the library, then on disk, else compile and keep. Needs no
// GPU.
#pragma once

#include <cstdint>
#include <string>

#include "base/digest.h"
#include "cuda/jit/jit.h"
#include "cuda/jit/kernel_cache.h"

namespace tenon::cuda {

struct Image {
  enum class Origin : std::uint8_t { BuiltIn, Disk, Compiler };
  std::string bytes;  // cubin or PTX
  Origin origin = Origin::Compiler;
  double compile_ms = 0;
};

/// What a kernel depends on: the text, the headers that it includes, the options, the architecture
/// and the compiler's version.
Digest key_of(const Source& source, int arch);
/// Loads the compiler and, where no other processes compile, lets it make what it keeps from its
/// first compilation on.
void warm_compiler();
/// What the library or the disk holds; no bytes when it must be compiled. Throws DeviceError when
/// there is no compiler then.
Image find_image(const Source& source, int arch, const KernelCache& cache);
/// Throws NotSupported with the compiler's words when the source does not compile.
Image compile_image(const Source& source, int arch, const KernelCache& cache);
/// Both.
Image build_image(const Source& source, int arch, const KernelCache& cache);

}  // namespace tenon::cuda
