// The precision that this thread's scopes give to products, as contractions keep it in their
// attributes.
#pragma once

#include <cstdint>

#include <tenon/precision.h>

namespace tenon {

/// Code of the innermost PrecisionScope; 0: none, the process's precision counts when it is
/// planned.
std::int64_t scoped_compute() noexcept;

}  // namespace tenon
