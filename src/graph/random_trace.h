// While a function is being traced for compilation, its random draws read a leaf of the function's
// own, which the runner feeds at each call, instead of the generator's state at the time of
// tracing. The trace belongs to the thread that traces.
#pragma once

#include <cstdint>

#include <tenon/generator.h>
#include <tenon/tensor.h>

namespace tenon {

struct RandomTrace {
  Tensor leaf;                     // int64[2]: (seed, counter)
  std::int64_t draws = 0;          // draws so far: the next one's offset; at the end, draws a call
  Generator* generator = nullptr;  // the generator drawn from: one a trace
};

/// The trace of this thread, or null.
RandomTrace* active_random_trace() noexcept;

/// Makes `trace` the active one while it lives; guards nest.
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
