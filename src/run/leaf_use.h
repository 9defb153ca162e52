// The host variables of a program during one run: a version of each variable that the run reads,
// and memory for each variable that it assigns (device/versions.h).
#pragma once

#include <span>
#include <vector>

#include "base/index.h"
#include "device/versions.h"
#include "graph/node.h"
#include "plan/program/program.h"

namespace tenon {

/// Whether the leaf's value can be assigned.
inline bool may_change(const Node& leaf) { return leaf.op == Op::Variable; }

/// The value that a variable has now. It stays the same when the variable is assigned again.
inline std::shared_ptr<Buffer> present_value(const Node& variable) {
  std::shared_ptr<Buffer> value = Buffer::none(variable.device);
  hold_value(*value, *variable.value);
  return value;
}

class LeafUse {
 public:
  /// `leaves` is by slot. Leaves on GPUs need no versions: work on a GPU runs in queue order.
  LeafUse(const Program& program, std::span<Node* const> leaves)
      : variable_(program.slots.size(), 0) {
    const auto on_host = [&](std::size_t slot) {
      return leaves[slot]->device.kind == Device::Kind::Cpu;
    };
    for (ValueId id : program.assigned) {
      const std::size_t slot = at(program.values[at(id)].slot);
      if (!on_host(slot)) {
        assigned_elsewhere_.push_back(leaves[slot]->value.get());
        continue;
      }
      variable_[slot] = 1;
      assigned_.push_back({leaves[slot], id});
      assigned_buffers_.push_back(leaves[slot]->value.get());
    }
    for (std::size_t s = 0; s < program.slots.size(); ++s) {
      if (program.slots[s] == kNoValue || variable_[s] != 0) continue;
      if (!on_host(s) || !may_change(*leaves[s])) continue;
      variable_[s] = 1;
      read_.push_back({leaves[s], program.slots[s]});
      read_buffers_.push_back(leaves[s]->value.get());
    }
  }

  /// Called before the addresses of a run are read. If somebody else holds the value of a GPU
  /// variable, moves the value to other memory.
  void keep_held_values() {
    for (Buffer* buffer : assigned_elsewhere_) keep_shared_value(*buffer);
  }
  /// Whether begin() sets the address of the slot.
  bool is_variable(std::size_t slot) const { return variable_[slot] != 0; }
  /// Sets the addresses of variables. Throws ValueError if another thread is assigning one of them.
  void begin(std::vector<std::byte*>& values) {
    if (const int taken = use_.begin(assigned_buffers_, read_buffers_); taken >= 0)
      refuse_two_assigners(*assigned_[at(taken)].variable);
    for (std::size_t k = 0; k < assigned_.size(); ++k)
      values[at(assigned_[k].value)] = use_.assigned(k);
    for (std::size_t k = 0; k < read_.size(); ++k) values[at(read_[k].value)] = use_.read(k);
  }
  void end() noexcept { use_.end(); }
  void abandon() noexcept { use_.abandon(); }

 private:
  struct Place {
    Node* variable;
    ValueId value;
  };
  std::vector<char> variable_;  // by slot
  std::vector<Place> assigned_, read_;
  std::vector<Buffer*> assigned_buffers_, read_buffers_, assigned_elsewhere_;
  BufferUse use_;
};

}  // namespace tenon
