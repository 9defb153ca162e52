// Node: an immutable record of one op applied to inputs, with one slot for its value once that is
// known.
//
// Nodes are counted by reference and freed iteratively, so that a graph of a million nodes in a row
// does not overflow the stack. Nodes are not interned at construction: that would take a global
// lock on every op. The program's key numbers leaves in order of first visit, and the `share` pass
// merges equal nodes (docs/internals/architecture.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/tensor.h>

#include "device/buffer.h"
#include "graph/attrs.h"
#include "graph/op.h"

namespace tenon {

/// What only a leaf needs: a variable from its start, another node once the host has read its value
/// from a GPU.
struct LeafState {
  // Global assignment count when the variable was last assigned (see Node::built_at).
  std::atomic<std::uint64_t> assigned_at{0};
  // A value on a GPU, as last read by the host; for a variable stale once assigned_at has moved
  // on.
  std::shared_ptr<Buffer> host_copy;
  std::uint64_t host_copied_at = 0;
  // A variable of 16 bits with this one's values, for products that round it (run/rounded.h). Of
  // such a copy: assigned_at of its variable when it was made; stale once that has moved on.
  Tensor rounded;
  std::uint64_t rounded_at = 0;
  bool frozen = false;  // a variable that optimizers leave alone
};

struct Node {
  static constexpr int kInlineInputs = 3;

  // What a walk reads comes first, in one cache line.
  Op op = Op::Data;
  DType dtype = DType::Float32;
  std::uint8_t input_count = 0;
  // Depends on a variable: keeps its inputs when it gets its value, so that gradients can be asked
  // for after the value was read, as people do with a loss.
  bool tracked = false;
  // An assignment that nobody has evaluated, carried or compiled so far: dropped so, it says so.
  bool unheeded = false;
  // Where it is computed and its value lives, once `placed`: numbers and index ramps, and what is
  // made of them alone, go to whom they meet; alone, to the device that was current when they were
  // built.
  bool placed = false;
  // A constant that was asked for as a tensor, by ones() and its kin, not as a number beside one:
  // views and casts of it are nodes, as gradients with regard to it may be asked for.
  bool differentiable = false;
  Device device;
  std::uint32_t label = 0;  // Scope it was built in; not part of its identity
  std::atomic<std::uint32_t> refs{0};
  const std::uint32_t number;   // of its block: no other living node has it (graph/node_pool.h)
  std::uint32_t traced_in = 0;  // the body whose function built it (BodyTrace); 0: none
  Node* inputs_inline[kInlineInputs] = {};
  std::unique_ptr<Node*[]> inputs_heap;  // for more inputs (Concat)
  // The value, once realised (leaves of kind Data and Variable always have one). Contiguous,
  // row-major.
  std::shared_ptr<Buffer> value;

  // Global assignment count when this node was built: a pending node that is older than an
  // assignment to a variable it reads would compute with the wrong value, and is refused instead.
  std::uint64_t built_at = 0;
  std::unique_ptr<LeafState> leaf;
  Attrs attrs;
  Shape shape;

  explicit Node(std::uint32_t number_of_block) : number(number_of_block) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() {
    if (unheeded) report_unheeded();
  }
  void report_unheeded() const noexcept;

  Node* const* inputs() const noexcept { return inputs_heap ? inputs_heap.get() : inputs_inline; }
  std::span<Node* const> in() const noexcept { return {inputs(), input_count}; }
  Node* input(int k) const noexcept { return inputs()[k]; }
  bool realised() const noexcept { return value != nullptr; }
  std::uint64_t assigned_at() const noexcept {
    return leaf == nullptr ? 0 : leaf->assigned_at.load(std::memory_order_relaxed);
  }
};

/// A new node with one share, held by the returned tensor. Takes shares in its inputs. Does not
/// infer: see ops/infer.h.
Tensor make_node(Op op, DType dtype, const Shape& shape, const Attrs& attrs,
                 std::span<const Tensor> inputs);
/// A leaf that holds `buffer`.
Tensor make_data(std::shared_ptr<Buffer> buffer, const Shape& shape, DType dtype);
/// Gives a node its value; its device is then the buffer's.
void place(Node& node, std::shared_ptr<Buffer> buffer);
/// Stores the value of a pending node and, unless it is tracked, lets go of its inputs. Not for
/// leaves.
void set_realised(Node& node, std::shared_ptr<Buffer> buffer);

void retain(Node* node) noexcept;
void release(Node* node) noexcept;

/// Marks a variable as assigned by this thread: pending tensors that it built from the old value
/// are refused afterwards. Called once the new value is there; `at` is advance_assignment_clock()
/// while nobody else could assign it, so that of two assignments the later one's stays.
void mark_assigned(Node& variable, std::uint64_t at) noexcept;
/// Throws the ValueError for a variable that two threads assign at once.
[[noreturn]] void refuse_two_assigners(const Node& variable);

/// Count of assignments so far (see Node::built_at).
std::uint64_t assignment_clock() noexcept;
std::uint64_t advance_assignment_clock() noexcept;

/// Labels of scopes: interned strings. Label 0 is "". Where no layer is known and the op that was
/// called is, its name stands for one.
const std::string& label_text(std::uint32_t label);
std::uint32_t intern_label(const std::string& text);
std::uint32_t current_label() noexcept;
/// Makes nodes built while it lives carry `label` (passes use it to keep the label of what they
/// rewrite). A label also knows which op the user called, where its node is refused only when it
/// runs: errors name that one (where()).
class LabelGuard {
 public:
  explicit LabelGuard(std::uint32_t label) noexcept;
  ~LabelGuard();
  LabelGuard(const LabelGuard&) = delete;
  LabelGuard& operator=(const LabelGuard&) = delete;

 private:
  std::uint32_t previous_;
  const char* called_;
};

/// While it lives, this thread runs the function of a loop's or branch's body: what it builds is
/// the body's (Node::traced_in). Traces nest; no two have one id.
class BodyTrace {
 public:
  BodyTrace() noexcept;
  ~BodyTrace();
  BodyTrace(const BodyTrace&) = delete;
  BodyTrace& operator=(const BodyTrace&) = delete;
  std::uint32_t id() const noexcept { return id_; }

 private:
  std::uint32_t id_, previous_;
};

/// Whether a wrong index is refused only when it runs, by an error that has the node's label.
constexpr bool is_refused_late(Op op) noexcept { return has_trait(op, kIndexed); }

/// The device on which this thread makes tensors that are told no other: its context's.
Device default_device() noexcept;

/// "conv2d (block.3.conv1)" or "conv2d": how an error names the op that is being built.
std::string where(const char* op_name);

/// Pending nodes and leaves that `roots` depend on, inputs before users, each once. Realised nodes
/// count as leaves, unless `through_values` asks to go on to what tracked ones were made from.
std::vector<Node*> topological_order(std::span<const Tensor> roots, bool through_values = false);

}  // namespace tenon
