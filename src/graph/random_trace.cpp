// The active trace of random draws: one pointer for each thread.
#include "graph/random_trace.h"

#include <utility>

namespace tenon {
namespace {
thread_local RandomTrace* t_trace = nullptr;
}  // namespace

RandomTrace* active_random_trace() noexcept { return t_trace; }
RandomTraceGuard::RandomTraceGuard(RandomTrace* trace) noexcept
    : previous_(std::exchange(t_trace, trace)) {}
RandomTraceGuard::~RandomTraceGuard() { t_trace = previous_; }

}  // namespace tenon
