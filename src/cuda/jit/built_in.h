// Kernels that were compiled when the library was built (cmake/TenonCubins.cmake), found by the
// same text as those that are compiled at run time. A library may hold none.
//
// The store is a sequence of records: architecture key and text key as one digest, size, image.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cuda/jit/digest.h"
#include "cuda/jit/jit.h"

namespace tenon::cuda {

/// The store of this library; empty when it has none. Defined by the build.
std::string_view built_in_store();

/// What a built-in kernel is found by: text, headers, options, architecture option.
Digest built_in_key(const Source& source, const std::string& arch_option);

struct BuiltIn {
  Digest key;
  std::string_view image;
};
/// The bytes of a store; `toolkit` is the CUDA version that made it, as the driver counts (13000).
std::string make_store(int toolkit, const std::vector<BuiltIn>& kernels);

/// A kernel's image for a card of `arch`, or "" when the store has none that this card and driver
/// can load. PTX only when `also_ptx`: the driver takes its time to finish it.
std::string_view find_built_in(std::string_view store, const Source& source, int arch,
                               int driver_version, bool also_ptx);

}  // namespace tenon::cuda
