// Generator: source of random numbers. Its whole state is a seed and a counter (docs/numerics.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tenon/export.h>

namespace tenon {

class Tensor;

/// A counter-based random number generator (Philox). A draw uses the seed and the next counter
/// value. A Generator is a handle, like a Tensor: copies share one state, and the state lives as
/// long as a handle to it, so a layer may keep the generator that it was given. Several threads may
/// draw from one generator at once; which thread gets which counter value then depends on timing.
/// PyTorch: `torch.Generator`.
class TENON_API Generator {
 public:
  /// A generator with a new state: this seed and counter 0.
  explicit Generator(std::uint64_t seed = 0);
  /// Copies the handle. There is no move constructor, so a moved-from Generator stays valid.
  Generator(const Generator&) = default;
  /// Replaces the handle.
  Generator& operator=(const Generator&) = default;
  /// The seed.
  std::uint64_t seed() const noexcept;
  /// Number of counter values used so far.
  std::uint64_t counter() const noexcept;
  /// Sets seed and counter. Must not be called while another thread draws.
  void set_state(std::uint64_t seed, std::uint64_t counter) noexcept;
  /// Reserves `draws` counter values and returns the first.
  std::uint64_t advance(std::uint64_t draws) noexcept;
  /// A leaf tensor int64 [2] (seed, counter) for `draws` draws; reserves their counter values.
  /// Inside a function that is being compiled, returns the function's own leaf, which gets its
  /// value at each call; `offset` then receives the distance of these draws from the leaf's
  /// counter.
  Tensor next(std::int64_t* offset, std::int64_t draws = 1);
  /// Whether both handles share one state.
  bool operator==(const Generator&) const noexcept = default;
  /// The generator of the calling thread's context, used where no other is given.
  static Generator current();

 private:
  struct State {
    std::uint64_t seed, counter;
  };
  std::shared_ptr<State> state_;
};

/// The generator that a function or layer draws from. Without one, each draw uses
/// Generator::current(). A Generator converts implicitly: `rand({2, 3}, DType::Float32,
/// generator)`.
using OptionalGenerator = std::optional<Generator>;

/// Sets the seed of Generator::current() and its counter to 0. PyTorch: `torch.manual_seed`.
TENON_API void manual_seed(std::uint64_t seed);

}  // namespace tenon
