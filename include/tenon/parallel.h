// parallel_for(): divides a loop over the threads that Tenon's own kernels use.
#pragma once

#include <cstdint>
#include <functional>

#include <tenon/export.h>

namespace tenon {

/// Calls `f(first, last)` for neighbouring ranges of at most `grain` numbers that together cover
/// [begin, end), in any order and in several threads. Returns when all calls have returned. The
/// ranges depend on begin, end and grain only, so results that are computed range by range have the
/// same bits for every number of threads. Inside host code (host_call.h) the threads are those of
/// the program. A call inside `f` runs in its own thread. An exception of `f` reaches the caller
/// after all ranges have ended. Throws ValueError if `grain` is less than 1. PyTorch:
/// `at::parallel_for`.
TENON_API void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                            const std::function<void(std::int64_t first, std::int64_t last)>& f);

}  // namespace tenon
