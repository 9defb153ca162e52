// Kernels that were compiled when the library was built (cmake/TenonCubins.cmake). They are found
// by the same source as kernels that are compiled at run time. A library may have none.
//
// A store has a head, the names of its architecture options, an index in the order of keys, and the
// images. Each image is deflated separately, so that loading a kernel unpacks only its own image.
// Equal images are stored once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "cuda/jit/source.h"

namespace tenon::cuda {

/// The store of this library; empty when it has none. Defined by the build.
std::string_view built_in_store();
/// The same, unless TENON_CUDA_BUILT_IN is off.
std::string_view usable_store();

/// The key of a built-in kernel: a digest of source, headers, options and architecture option.
Digest built_in_key(const Source& source, const std::string& arch_option);

struct BuiltIn {
  std::string arch_option;  // "--gpu-architecture=sm_90a"
  Digest key;
  std::string image;
};
/// The bytes of a store; `toolkit` is the CUDA version that made it, as the driver counts (13000).
std::string make_store(int toolkit, const std::vector<BuiltIn>& kernels);
/// The kernels of a store.
std::vector<BuiltIn> read_store(std::string_view store);
/// Facts about a store for reports; empty if the bytes are not a store.
struct StoreFacts {
  int toolkit = 0;
  struct Set {
    std::string arch_option;
    std::size_t kernels = 0, bytes = 0;  // as they are stored
  };
  std::vector<Set> sets;
};
StoreFacts store_facts(std::string_view store);
/// "sm_80, sm_90a, compute_80 PTX".
std::string store_text(const StoreFacts& facts);

/// A kernel's image for a GPU of `arch`, or "" if the store has none that this GPU and driver can
/// load. PTX only if `also_ptx`, because the driver needs time to compile PTX.
std::string find_built_in(std::string_view store, const Source& source, int arch,
                          int driver_version, bool also_ptx);

}  // namespace tenon::cuda
