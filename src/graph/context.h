// Mutable access to the calling thread's context, for functions such as set_precision().
#pragma once

#include <cstdint>

#include <tenon/context.h>

namespace tenon {

/// The innermost ContextScope's context, otherwise the thread's own, which the first call
/// allocates.
Context& this_context();
/// The same, or null if the thread has none yet: then every setting has its default.
const Context* known_context() noexcept;

/// Throw ValueError for values that no context may have.
void check_threads(int count);
void check_memory_limit(std::int64_t bytes);

}  // namespace tenon
