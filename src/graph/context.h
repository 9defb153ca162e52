// The calling thread's context, to be changed: for what implements set_precision() and its like.
#pragma once

#include <tenon/context.h>

namespace tenon {

/// The innermost ContextScope's, or else the thread's own.
Context& this_context() noexcept;

}  // namespace tenon
