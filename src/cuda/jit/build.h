// From a source to a compiled image: looks in the library, then on disk, otherwise compiles and
// stores. Needs no GPU.
#pragma once

#include <cstdint>
#include <string>

#include "base/digest.h"
#include "cuda/jit/kernel_cache.h"
#include "cuda/jit/source.h"

namespace tenon::cuda {

struct Image {
  enum class Origin : std::uint8_t { BuiltIn, Disk, Compiler };
  std::string bytes;  // cubin or PTX
  Origin origin = Origin::Compiler;
  double compile_ms = 0;
};

/// The key of a kernel: a digest of the source, the headers it includes, the options, the
/// architecture and the compiler's version.
Digest key_of(const Source& source, int arch);
/// Loads the compiler. If no other processes compile, runs a first compilation so that the compiler
/// creates its static objects.
void warm_compiler();
/// The image that the library or the disk holds; empty if the source must be compiled. Throws
/// DeviceError if it must be compiled and there is no compiler.
Image find_image(const Source& source, int arch, const KernelCache& cache);
/// Throws NotSupported with the compiler's messages if the source does not compile.
Image compile_image(const Source& source, int arch, const KernelCache& cache);
/// find_image(), then compile_image() if nothing was found.
Image build_image(const Source& source, int arch, const KernelCache& cache);

/// The names of the own operations whose code the source contains, "a, b"; "" if there are none.
std::string own_operations(const std::string& text);

}  // namespace tenon::cuda
