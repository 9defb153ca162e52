// Creates, references and frees nodes; scopes and their labels.
#include "graph/node.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <unordered_map>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/log.h"
#include "device/versions.h"
#include "graph/called.h"
#include "graph/context.h"
#include "graph/node_pool.h"

namespace tenon {
namespace {

std::atomic<std::uint64_t> g_clock{0};
thread_local std::uint32_t t_label = 0;

std::atomic<std::uint32_t> g_body_traces{0};
thread_local std::uint32_t t_body_trace = 0;

thread_local const char* t_called = nullptr;
thread_local bool t_building_constants = false;

struct Label {
  std::string text;
  const char* called = nullptr;
  std::string shown = text.empty() && called != nullptr ? called : text;
};

struct Labels {
  std::mutex mutex;
  std::deque<Label> entries{Label{}};  // a deque never moves its elements
  std::unordered_map<std::string, std::uint32_t> index{{"", 0}};
};

Labels& labels() {
  static Labels* instance = new Labels;
  return *instance;
}

const Label& label_entry(std::uint32_t label) {
  std::lock_guard lock(labels().mutex);
  return labels().entries[label];
}

std::uint32_t intern(const std::string& key, const Label& label) {
  Labels& l = labels();
  std::lock_guard lock(l.mutex);
  if (const auto known = l.index.find(key); known != l.index.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(l.entries.size());
  // First the label: if there is no memory for the key, a label remains that nobody has.
  l.entries.push_back(label);
  l.index.emplace(key, number);
  return number;
}

// Ops that are checked only at run time keep the name of the op that the user called.
std::uint32_t label_for(Op op) {
  if (t_called == nullptr || !is_refused_late(op)) return t_label;
  const std::string& text = label_entry(t_label).text;
  return intern(cat(text, '\0', t_called), {text, t_called});
}

}  // namespace

void Node::report_unheeded() const noexcept {
  // an exception is unwinding: the assignment was not forgotten
  if (std::uncaught_exceptions() > 0) return;
  try {
    log_message(
        LogLevel::Warning,
        cat("assign", label == 0 ? "" : cat(" (", label_text(label), ")"), ": ", dtype, shape,
            " was dropped without being evaluated: pass the assignment to compute(), "
            "return it from the compiled function, or attach it to a value (update() in "
            "a module's forward, with_updates())"));
  } catch (...) {  // NOLINT(bugprone-empty-catch): a message that cannot be built is omitted
  }
}

namespace {

static_assert(sizeof(Node) <= kNodeBlock);

struct Unmake {
  void operator()(Node* node) const noexcept {
    const std::uint32_t number = node->number;
    node->~Node();
    give_node_block({node, number});
  }
};

std::unique_ptr<Node, Unmake> unfilled_node() {
  const NodeBlock block = take_node_block();
  return std::unique_ptr<Node, Unmake>(new (block.memory) Node(block.number));
}

}  // namespace

void retain(Node* node) noexcept {
  if (node != nullptr) node->refs.fetch_add(1, std::memory_order_relaxed);
}

void release(Node* node) noexcept {
  if (node == nullptr || node->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Iterative: nodes to free are chained through inputs_inline[0], so that freeing allocates
  // nothing.
  auto drop_inputs = [](Node* n, Node*& chain) {
    const int count = n->input_count;
    Node* const* inputs = n->inputs();
    for (int k = 0; k < count; ++k) __builtin_prefetch(inputs[k], 1);
    Node* next = chain;
    for (int k = count - 1; k >= 0; --k) {
      Node* in = inputs[k];
      if (in->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      // `in` is dead. It joins the chain; its `built_at` is no longer needed and stores the link.
      in->built_at = reinterpret_cast<std::uintptr_t>(next);
      next = in;
    }
    chain = next;
    Unmake()(n);
  };
  Node* chain = nullptr;
  drop_inputs(node, chain);
  while (chain != nullptr) {
    Node* n = chain;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a list link, freeing must not allocate
    chain = reinterpret_cast<Node*>(static_cast<std::uintptr_t>(n->built_at));
    drop_inputs(n, chain);
  }
}

Tensor make_node(Op op, DType dtype, const Shape& shape, const Attrs& attrs,
                 std::span<const Tensor> inputs) {
  if (inputs.size() > 255) throw make_error<ValueError>(where("op"), ": more than 255 inputs");
  std::unique_ptr<Node, Unmake> node = unfilled_node();
  node->op = op;
  node->dtype = dtype;
  node->shape = shape;
  node->attrs = attrs;
  node->label = label_for(op);
  node->traced_in = t_body_trace;
  node->built_at = advance_clock();
  if (op == Op::Variable) node->leaf = std::make_unique<LeafState>();
  node->input_count = static_cast<std::uint8_t>(inputs.size());
  Node** slots = node->inputs_inline;
  if (inputs.size() > Node::kInlineInputs) {
    node->inputs_heap = std::make_unique<Node*[]>(inputs.size());
    slots = node->inputs_heap.get();
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    slots[k] = inputs[k].node();
    retain(slots[k]);
    node->tracked |= slots[k]->tracked || slots[k]->op == Op::Variable;
    node->reads_assigned |= slots[k]->reads_assigned || slots[k]->op == Op::Assign;
  }
  node->tracked &= op != Op::Assign && op != Op::StopGradient &&
                   (is_floating(dtype) || has_trait(op, kSeveralResults));
  node->is_constant = t_building_constants && op != Op::Variable && op != Op::Data;
  node->tracked &= !node->is_constant;
  node->device = inputs.empty() ? default_device() : inputs[0].node()->device;
  for (const Tensor& input : inputs) {
    if (!input.node()->placed) continue;
    node->device = input.node()->device;
    node->placed = true;
    break;
  }
  return Tensor(node.release());
}

Tensor make_node_like(const Node& node, std::span<const Tensor> inputs) {
  Tensor out = make_node(node.op, node.dtype, node.shape, node.attrs, inputs);
  const auto in = node.in();
  const auto given = std::find_if(in.begin(), in.end(), [](const Node* n) { return n->placed; });
  if (node.placed && (given == in.end() || (*given)->device != node.device)) {
    out.node()->placed = true;
    out.node()->device = node.device;
  }
  return out;
}

Tensor make_data(std::shared_ptr<Buffer> buffer, const Shape& shape, DType dtype) {
  Tensor t = make_node(Op::Data, dtype, shape, {}, {});
  place(*t.node(), std::move(buffer));
  return t;
}

void place(Node& node, std::shared_ptr<Buffer> buffer) {
  node.device = buffer->device();
  node.placed = true;
  node.value = std::move(buffer);
}

Device default_device() noexcept {
  const Context* const known = known_context();
  return known == nullptr ? Device{} : known->device;
}

std::uint64_t advance_clock() noexcept {
  return g_clock.fetch_add(1, std::memory_order_relaxed) + 1;
}

void mark_assigned(Node& variable, std::uint64_t at) noexcept {
  note_assigned(*variable.value);
  std::atomic<std::uint64_t>& last = variable.leaf->assigned_at;
  std::uint64_t seen = last.load(std::memory_order_relaxed);
  while (seen < at && !last.compare_exchange_weak(seen, at, std::memory_order_relaxed)) {
  }
}

const Node* assigned_since(const Node& node) noexcept {
  if (node.op == Op::Assign) return nullptr;
  for (const Node* in : node.in())
    if (in->op == Op::Variable && node.built_at < in->assigned_at() && assigned_here(*in->value))
      return in;
  return nullptr;
}

bool set_building_constants(bool on) noexcept { return std::exchange(t_building_constants, on); }
bool builds_constants() noexcept { return t_building_constants; }

void refuse_two_assigners(const Node& variable) {
  const std::string& label = label_text(variable.label);
  throw make_error<ValueError>(
      "two threads assign ", label.empty() ? "a variable" : "the variable ", label, " ",
      variable.dtype, variable.shape, " at once: step an optimizer from one thread at a time");
}

const std::string& label_text(std::uint32_t label) { return label_entry(label).shown; }
std::uint32_t intern_label(const std::string& text) { return intern(text, {text}); }

std::uint32_t current_label() noexcept { return t_label; }
LabelGuard::LabelGuard(std::uint32_t label) noexcept
    : previous_(std::exchange(t_label, label)), called_(std::exchange(t_called, nullptr)) {}
LabelGuard::~LabelGuard() {
  t_label = previous_;
  t_called = called_;
}

BodyTrace::BodyTrace() noexcept
    : id_(g_body_traces.fetch_add(1, std::memory_order_relaxed) + 1),
      previous_(std::exchange(t_body_trace, id_)) {}
BodyTrace::~BodyTrace() { t_body_trace = previous_; }
bool is_tracing_body() noexcept { return t_body_trace != 0; }

Scope::Scope(const std::string& scope) : previous_(t_label) {
  const std::string& outer = label_entry(previous_).text;
  t_label = intern_label(outer.empty() ? scope : outer + "." + scope);
}
Scope::~Scope() { t_label = previous_; }

Called::Called(const char* op_name) noexcept
    : previous_(std::exchange(t_called, t_called == nullptr ? op_name : t_called)) {}
Called::~Called() { t_called = previous_; }

OpPlace where(const char* op_name) {
  if (t_label == 0) return {t_called != nullptr ? t_called : op_name, {}};
  const Label& label = label_entry(t_label);
  const char* name = t_called != nullptr ? t_called : label.called;
  return {name != nullptr ? name : op_name, label.text};
}

}  // namespace tenon
