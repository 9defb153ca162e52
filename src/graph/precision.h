// The precision that products are built with in this thread, as contractions keep it in their
// attributes.
#pragma once

#include <cstdint>

#include <tenon/precision.h>

namespace tenon {

/// Code of the precision of the thread's context.
std::int64_t current_compute() noexcept;

}  // namespace tenon
