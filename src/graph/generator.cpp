// The state of random generators, and the leaves through which draws read that state.
#include <tenon/generator.h>

#include <atomic>
#include <bit>
#include <utility>

#include <tenon/error.h>

#include <tenon/shapes_only.h>
#include "graph/context.h"
#include "graph/node.h"
#include "graph/random_trace.h"

namespace tenon {

Generator::Generator(std::uint64_t seed) : state_(new State{seed, 0}) {}

std::uint64_t Generator::seed() const noexcept { return state_->seed; }

std::uint64_t Generator::counter() const noexcept {
  return std::atomic_ref(state_->counter).load(std::memory_order_relaxed);
}

void Generator::set_state(std::uint64_t seed, std::uint64_t counter) noexcept {
  *state_ = {seed, counter};
}

std::uint64_t Generator::advance(std::uint64_t draws) noexcept {
  return std::atomic_ref(state_->counter).fetch_add(draws, std::memory_order_relaxed);
}

Tensor Generator::next(std::int64_t* offset, std::int64_t draws) {
  if (RandomTrace* trace = active_random_trace()) {
    if (trace->generator && trace->generator != *this)
      throw NotSupported("a compiled function draws from two generators: use one in it");
    trace->generator = *this;
    *offset = std::exchange(trace->draws, trace->draws + draws);
    return trace->leaf;
  }
  *offset = 0;
  if (ShapesOnly::is_on()) return without_memory(Shape{2}, DType::Int64, default_device());
  const std::int64_t state[2] = {
      std::bit_cast<std::int64_t>(seed()),
      std::bit_cast<std::int64_t>(advance(static_cast<std::uint64_t>(draws)))};
  return Tensor::from_data(state, Shape{2}, DType::Int64);
}

Generator Generator::current() { return this_context().generator; }

void manual_seed(std::uint64_t seed) { Generator::current().set_state(seed, 0); }

}  // namespace tenon
