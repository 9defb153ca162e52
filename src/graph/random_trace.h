// While a function is traced for compilation, its random draws read a leaf of the function, which
// the runner fills at each call, instead of the generator's state at tracing time. The trace
// belongs to the thread that traces.
#pragma once

#include <cstdint>

#include <tenon/generator.h>
#include <tenon/tensor.h>

namespace tenon {

struct RandomTrace {
  Tensor leaf;  // int64[2]: (seed, counter)
  // draws so far: the offset of the next draw; at the end, draws in one call
  std::int64_t draws = 0;
  OptionalGenerator generator{};  // the generator drawn from: one for each trace
};

/// The trace of this thread, or null.
RandomTrace* active_random_trace() noexcept;

/// Makes `trace` the active one while the guard lives; guards nest.
class RandomTraceGuard {
 public:
  explicit RandomTraceGuard(RandomTrace* trace) noexcept;
  ~RandomTraceGuard();
  RandomTraceGuard(const RandomTraceGuard&) = delete;
  RandomTraceGuard& operator=(const RandomTraceGuard&) = delete;

 private:
  RandomTrace* previous_;
};

}  // namespace tenon
