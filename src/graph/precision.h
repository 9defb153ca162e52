// The precision that contractions capture when they are built.
#pragma once

#include <tenon/precision.h>

namespace tenon {

/// The precision of the calling thread's context.
Precision current_precision() noexcept;

}  // namespace tenon
