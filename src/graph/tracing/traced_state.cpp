// Records state that traced functions read, and checks it.
#include "graph/tracing/traced_state.h"

#include <algorithm>

#include "graph/node.h"

namespace tenon {
namespace {

std::atomic<std::uint64_t> g_epoch{1};
thread_local StateTrace* t_state_trace = nullptr;

std::uint64_t frozen_of(const void* variable) {
  return static_cast<const Node*>(variable)->leaf->frozen ? 1 : 0;
}

}  // namespace

std::uint64_t state_epoch() noexcept { return g_epoch.load(std::memory_order_acquire); }
void note_state_changed() noexcept { g_epoch.fetch_add(1, std::memory_order_acq_rel); }

void note_state_read(const std::shared_ptr<const void>& object, StateReader read, bool always) {
  if (t_state_trace != nullptr) t_state_trace->add_read(object, {}, read, always);
}
void note_state_read(const Tensor& variable, StateReader read) {
  if (t_state_trace != nullptr) t_state_trace->add_read(nullptr, variable, read, false);
}
void note_state_written(const void* object, StateReader read) {
  if (t_state_trace != nullptr) t_state_trace->add_written(object, read);
}

bool is_frozen(const Tensor& variable) {
  note_state_read(variable, frozen_of);
  return variable.node()->leaf->frozen;
}
void set_frozen(const Tensor& variable, bool frozen) {
  note_state_written(variable.node(), frozen_of);
  if (std::exchange(variable.node()->leaf->frozen, frozen) != frozen) note_state_changed();
}

bool StateReads::Read::holds() const {
  if (variable.defined()) return read(variable.node()) == value;
  const std::shared_ptr<const void> alive = object.lock();
  return alive != nullptr && read(alive.get()) == value;
}

bool StateReads::hold(std::uint64_t epoch) const {
  const auto all_hold = [this](bool always) {
    return std::all_of(reads_.begin(), reads_.end(),
                       [&](const Read& r) { return r.always != always || r.holds(); });
  };
  const std::uint64_t checked = checked_.load(std::memory_order_relaxed);
  bool holds = (checked & 1) != 0;
  if (checked >> 1 != epoch) {
    holds = all_hold(false);
    checked_.store(epoch << 1 | (holds ? 1 : 0), std::memory_order_relaxed);
  }
  return holds && (!any_always_ || all_hold(true));
}

StateTrace::StateTrace() noexcept : previous_(std::exchange(t_state_trace, this)) {}
StateTrace::~StateTrace() { t_state_trace = previous_; }

void StateTrace::add_read(const std::shared_ptr<const void>& object, const Tensor& variable,
                          StateReader read, bool always) {
  const void* at = variable.defined() ? variable.node() : object.get();
  if (is_written(at, read)) return;
  const auto [known, is_first] = read_at_.try_emplace(Place(at, read), reads_.size());
  if (is_first)
    reads_.push_back({object, variable, read, read(at), always});
  else if (!reads_[known->second].is_alive())  // another object has got the address of that one
    reads_[known->second] = {object, variable, read, read(at), always};
}

void StateTrace::add_written(const void* object, StateReader read) {
  written_.emplace(object, read);
}

bool StateTrace::is_written(const void* object, StateReader read) const {
  return written_.contains(Place(object, read));
}

void StateTrace::finish(StateReads& reads) {
  std::erase_if(reads_, [this](const StateReads::Read& r) {
    const void* at = r.variable.defined() ? r.variable.node() : r.object.lock().get();
    return !r.is_alive() || (is_written(at, r.read) && !r.holds());
  });
  reads.any_always_ =
      std::any_of(reads_.begin(), reads_.end(), [](const auto& r) { return r.always; });
  reads.reads_ = std::move(reads_);
}

bool is_tracing() noexcept { return t_state_trace != nullptr; }

}  // namespace tenon
