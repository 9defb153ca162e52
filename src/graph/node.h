// Node: an immutable record of one op applied to inputs, with one slot for its value once the value
// is known.
//
// Nodes are reference-counted and freed iteratively, so that a chain of a million nodes does not
// overflow the stack. Nodes are not interned when built, which would need a global lock for every
// op. Instead, the program's key numbers leaves in order of first visit, and the pass `share`
// merges equal nodes (docs/internals/planner.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <tenon/tensor.h>

#include "base/make_error.h"
#include "device/buffer.h"
#include "graph/attrs.h"
#include "graph/op.h"
#include "graph/sources.h"

namespace tenon {

/// Data that only leaves need. A variable has it from the start; other nodes get it once the host
/// has read their value from a GPU.
struct LeafState {
  // When the variable was last assigned, by the graph's clock (see Node::built_at).
  std::atomic<std::uint64_t> assigned_at{0};
  // The value of a GPU tensor as last read by the host. For a variable it is stale once assigned_at
  // has changed.
  std::shared_ptr<Buffer> host_copy;
  std::uint64_t host_copied_at = 0;
  // A 16-bit variable with this variable's values, for products that round them (run/rounded.h). In
  // such a copy, the field below is assigned_at of its variable when the copy was made; the copy is
  // stale once that has changed.
  Tensor rounded;
  std::uint64_t rounded_at = 0;
  bool frozen = false;            // a variable that optimizers do not update
  std::uint32_t conversions = 0;  // how often convert_variable() gave it another dtype and buffer
};

struct Node {
  static constexpr int kInlineInputs = 3;

  // Members that a walk reads come first, in one cache line.
  Op op = Op::Data;
  DType dtype = DType::Float32;
  std::uint8_t input_count = 0;
  // Depends on a variable. The node keeps its inputs when it gets its value, so that gradients can
  // be requested after the value was read, as is common with a loss.
  bool tracked = false;
  // An assignment that was not yet evaluated, carried or compiled. If it is dropped in this state,
  // a warning says so.
  bool unheeded = false;
  // Where the node is computed and its value is stored, if `placed`. Numbers, index ramps and what
  // is computed from them alone take the device of the tensors that they are combined with; without
  // any, the device that was current when they were built.
  bool placed = false;
  // A constant that the user created as a tensor, by ones() for example, not as a plain number.
  // Views and casts of it are nodes, because gradients with respect to it may be requested.
  bool differentiable = false;
  bool is_constant = false;  // built under NoGrad: gradients stop here
  // Computed from the result of an assignment, which is not tracked even if its value was.
  bool reads_assigned = false;
  bool has_sources = false;  // a value that has released its inputs and keeps its sources instead
  bool is_number = false;    // a leaf that stands for a number (run/tuning/changing_numbers.h)
  Device device;
  std::uint32_t label = 0;  // the scope it was built in; not part of its identity
  std::atomic<std::uint32_t> refs{0};
  const std::uint32_t number;   // of its block: no other living node has it (graph/node_pool.h)
  std::uint32_t traced_in = 0;  // the body whose function built it (BodyTrace); 0: none
  union {
    Node* inputs_inline[kInlineInputs] = {};
    const Sources* own_sources;  // if has_sources
  };
  std::unique_ptr<Node*[]> inputs_heap;  // for more inputs (Concat)
  // The value, once realised (leaves of kind Data and Variable always have one). Contiguous,
  // row-major.
  std::shared_ptr<Buffer> value;

  // When this node was built, by the graph's clock; no other node has the same time, except one
  // that stands for the same tensor. A pending node that is older than an assignment to a variable
  // it reads would use the wrong value, so it is refused.
  std::uint64_t built_at = 0;
  std::unique_ptr<LeafState> leaf;
  Attrs attrs;
  Shape shape;

  explicit Node(std::uint32_t number_of_block) : number(number_of_block) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() {
    if (unheeded) report_unheeded();
    if (has_sources) delete own_sources;
  }
  void report_unheeded() const noexcept;

  Node* const* inputs() const noexcept { return inputs_heap ? inputs_heap.get() : inputs_inline; }
  std::span<Node* const> in() const noexcept { return {inputs(), input_count}; }
  Node* input(int k) const noexcept { return inputs()[k]; }
  bool realised() const noexcept { return value != nullptr; }
  const Sources* sources() const noexcept { return has_sources ? own_sources : nullptr; }
  std::uint64_t assigned_at() const noexcept {
    return leaf == nullptr ? 0 : leaf->assigned_at.load(std::memory_order_relaxed);
  }
};

/// A new node with one reference, which the returned tensor owns. References its inputs. Does not
/// infer dtype and shape: see ops/infer.h.
Tensor make_node(Op op, DType dtype, const Shape& shape, const Attrs& attrs,
                 std::span<const Tensor> inputs);
/// The same node with other inputs. A transfer, and whatever else has a device that its inputs do
/// not give it, keeps that device.
Tensor make_node_like(const Node& node, std::span<const Tensor> inputs);
/// A leaf whose value is `buffer`.
Tensor make_data(std::shared_ptr<Buffer> buffer, const Shape& shape, DType dtype);
/// Gives a node its value; the node's device is then the buffer's.
void place(Node& node, std::shared_ptr<Buffer> buffer);

void retain(Node* node) noexcept;
void release(Node* node) noexcept;

/// Marks a variable as assigned by this thread: pending tensors that the thread built from the old
/// value are refused afterwards. Called once the new value is stored. `at` is
/// advance_clock(), taken while no other thread could assign the variable, so that of
/// two assignments the later one counts.
void mark_assigned(Node& variable, std::uint64_t at) noexcept;
/// Gives a variable a value of the same shape and another dtype, and this dtype.
void convert_variable(const Tensor& variable, const Tensor& value);
/// A variable that the node reads and that this thread assigned after the node was built; null if
/// there is none.
const Node* assigned_since(const Node& node) noexcept;
/// Throws the ValueError for a variable that two threads assign at once.
[[noreturn]] void refuse_two_assigners(const Node& variable);

/// Whether this thread builds constants (NoGrad); returns the previous setting.
bool set_building_constants(bool on) noexcept;
bool builds_constants() noexcept;

/// The graph's clock counts the nodes that are built and the assignments. Moves it on, and returns
/// the new time.
std::uint64_t advance_clock() noexcept;

/// Labels of scopes: interned strings. Label 0 is "". If the layer is unknown but the called op is
/// known, the op's name is the label.
const std::string& label_text(std::uint32_t label);
std::uint32_t intern_label(const std::string& text);
std::uint32_t current_label() noexcept;
/// While it lives, new nodes carry `label`; passes use it to keep the label of the nodes that they
/// rewrite. For ops that are checked only at run time, a label also stores the op that the user
/// called, which errors name (where()).
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

/// Whether a node is one of `op` that has not been evaluated.
inline bool is_pending(const Node& node, Op op) { return node.op == op && !node.realised(); }

/// While it lives, this thread runs the function of a loop's or branch's body, and the nodes it
/// builds belong to the body (Node::traced_in). Traces nest; every trace has its own id.
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

/// Whether this thread runs the function of a loop's or branch's body (BodyTrace).
bool is_tracing_body() noexcept;

/// Whether an error of the op is detected only at run time, and has the node's label: an invalid
/// index, or an exception of host code.
constexpr bool is_refused_late(Op op) noexcept {
  return has_trait(op, kIndexed) || kind_of(op) == OpKind::Host;
}

/// The device on which this thread creates tensors if none is given: its context's.
Device default_device() noexcept;

/// The op that is being built, as an error names it: the op that the user called, or else
/// `op_name`, and the layer.
OpPlace where(const char* op_name);

}  // namespace tenon
