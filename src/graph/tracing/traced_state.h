// State besides tensors that a compiled function reads while it is traced: modes, frozen
// parameters, precisions and children of modules. A trace is valid only while what it read has the
// same values.
//
// A thread that traces records each read (StateTrace). Everything that changes such state moves a
// process-wide epoch on. So a call checks its trace with one comparison, and reads the recorded
// state again only if the epoch has moved since the last check.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// Reads one value of an object: its mode, for example. The function also names the value: reads of
/// one object with different readers are different reads.
using StateReader = std::uint64_t (*)(const void* object);

/// The current epoch.
std::uint64_t state_epoch() noexcept;
/// Moves the epoch on: called after each change of state that note_state_read() reports.
void note_state_changed() noexcept;

/// Reports a read to the trace of this thread, if there is one. A trace is no longer valid once an
/// object that it read is gone. `always`: the value may change without a new epoch, so every check
/// reads it.
void note_state_read(const std::shared_ptr<const void>& object, StateReader read,
                     bool always = false);
void note_state_read(const Tensor& variable, StateReader read);
/// Reports that the traced function itself sets a value. Reads that follow are not recorded: the
/// function sets the same value whenever it is traced.
void note_state_written(const void* object, StateReader read);

/// Whether optimizers leave the variable alone; a read, as above.
bool is_frozen(const Tensor& variable);
void set_frozen(const Tensor& variable, bool frozen);

/// Values that a traced function read, with the objects that they belong to.
class StateReads {
 public:
  /// Whether all values are what they were. `epoch` is the current one; a second call with the same
  /// epoch reads only what may change without a new one. Any number of threads may call it.
  bool hold(std::uint64_t epoch) const;

 private:
  friend class StateTrace;
  struct Read {
    std::weak_ptr<const void> object;
    Tensor variable;  // defined: the object is its node
    StateReader read;
    std::uint64_t value;
    bool always;
    bool is_alive() const noexcept { return variable.defined() || !object.expired(); }
    bool holds() const;
  };
  std::vector<Read> reads_;
  bool any_always_ = false;
  mutable std::atomic<std::uint64_t> checked_{0};  // epoch << 1 | result
};

/// While it lives, this thread traces a compiled function and records what the function reads.
class StateTrace {
 public:
  StateTrace() noexcept;
  ~StateTrace();
  StateTrace(const StateTrace&) = delete;
  StateTrace& operator=(const StateTrace&) = delete;
  /// Moves the recorded reads to `reads`, without those of objects that died while the function was
  /// traced and of values that the function itself has changed.
  void finish(StateReads& reads);
  void add_read(const std::shared_ptr<const void>& object, const Tensor& variable, StateReader read,
                bool always);
  void add_written(const void* object, StateReader read);

 private:
  using Place = std::pair<const void*, StateReader>;
  struct PlaceHash {
    std::size_t operator()(const Place& place) const noexcept {
      return std::hash<const void*>()(place.first) * 31 + std::hash<StateReader>()(place.second);
    }
  };
  bool is_written(const void* object, StateReader read) const;
  std::vector<StateReads::Read> reads_;
  std::unordered_map<Place, std::size_t, PlaceHash> read_at_;  // index in reads_
  std::unordered_set<Place, PlaceHash> written_;
  StateTrace* previous_;
};

/// Whether this thread is tracing a compiled function.
bool is_tracing() noexcept;

}  // namespace tenon
