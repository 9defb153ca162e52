// The calling thread's context, to be changed: for what implements set_precision() and its like.
#pragma once

#include <cstdint>

#include <tenon/context.h>

namespace tenon {

/// The innermost ContextScope's, or else the thread's own, for which the first call needs memory.
Context& this_context();
/// The same, or null where the thread has none yet: then everything is as a new Context has it.
const Context* known_context() noexcept;

/// Throw ValueError for what no context may have.
void check_threads(int count);
void check_memory_limit(std::int64_t bytes);

}  // namespace tenon
