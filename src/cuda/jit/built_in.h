// Kernels that were compiled when the library was built (cmake/TenonCubins.cmake), found by the
// same text as those that are compiled at run time. A library may hold none.
//
// The store is a head, the names of its architecture options, an index in order of keys, and the
// images, each deflated by itself: a kernel is unpacked when it is loaded, the others never. Equal
// images stand there once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "cuda/jit/jit.h"

namespace tenon::cuda {

/// The store of this library; empty when it has none. Defined by the build.
std::string_view built_in_store();
/// The same, unless TENON_CUDA_BUILT_IN is off.
std::string_view usable_store();

/// What a built-in kernel is found by: text, headers, options, architecture option.
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
/// What a store holds, for reports; nothing for what is no store.
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

/// A kernel's image for a GPU of `arch`, or "" when the store has none that this GPU and driver
/// can load. PTX only when `also_ptx`: the driver takes its time to finish it.
std::string find_built_in(std::string_view store, const Source& source, int arch,
                          int driver_version, bool also_ptx);

}  // namespace tenon::cuda
