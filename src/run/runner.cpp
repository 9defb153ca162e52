// compute(): key, cache look-up, binding, running, and storing results in the nodes. Compiled
// functions are in compile.cpp.
#include "run/runner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <iterator>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <tenon/anomaly.h>
#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/shapes_only.h>

#include "base/index.h"
#include "base/str.h"
#include "device/backend.h"
#include "device/versions.h"
#include "graph/effects.h"
#include "graph/order.h"
#include "graph/realised.h"
#include "plan/steps/placed.h"
#include "run/api/anomalies.h"
#include "run/api/settings.h"
#include "run/caches.h"
#include "run/counts.h"
#include "run/leaf_use.h"
#include "run/number_buffer.h"
#include "run/placed.h"
#include "run/queue.h"
#include "run/tuning/changing_numbers.h"
#include "run/tuning/known_plans.h"

namespace tenon {
namespace {

using Key = GraphKey;  // key of a program
struct KeyHash {
  std::size_t operator()(const Key& k) const { return k.lo ^ k.hi; }
};

class CachedProgram;
class GraphNumbers;
struct Cache {
  std::mutex mutex;
  std::unordered_map<Key, std::shared_ptr<CachedProgram>, KeyHash> programs;
  // History of constants, by the graph without its constants.
  std::unordered_map<Key, std::shared_ptr<GraphNumbers>, KeyHash> numbers;
};
Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

template <class Entry>
void leave_table(std::unordered_map<Key, std::shared_ptr<Entry>, KeyHash>& table, const Key& key,
                 const Entry* entry) {
  std::shared_ptr<Entry> last;  // destroyed after the lock is released
  const std::lock_guard lock(cache().mutex);
  const auto found = table.find(key);
  if (found == table.end() || found->second.get() != entry) return;
  last = std::move(found->second);
  table.erase(found);
}

// A program of compute(), found by its graph.
class CachedProgram final : public CacheEntry {
 public:
  CachedProgram(const Key& key, std::shared_ptr<const Program> planned,
                std::shared_ptr<const ChangingNumbers> changing)
      : CacheEntry(Kind::Program),
        program(std::move(planned)),
        numbers(std::move(changing)),
        key_(key) {
    charge(footprint(*program));
  }
  void leave(bool) override { leave_table(cache().programs, key_, this); }
  const std::shared_ptr<const Program> program;
  // Null: all numbers are constants of the plan.
  const std::shared_ptr<const ChangingNumbers> numbers;

 private:
  const Key key_;
};

// The history of the constants of a graph. Protected by the cache's lock.
class GraphNumbers final : public CacheEntry {
 public:
  explicit GraphNumbers(const Key& key) : CacheEntry(Kind::Program), key_(key) {
    charge(sizeof *this);
  }
  void leave(bool) override { leave_table(cache().numbers, key_, this); }
  NumberHistory history;

 private:
  const Key key_;
};

struct Traversal {
  NumberedOrder order;
  std::vector<Node*> leaves;
  std::vector<std::uint32_t> edges;    // numbers of the pending nodes' inputs, node after node
  Key key;                             // key of everything except the numbers
  std::vector<std::uint64_t> numbers;  // values of constants, and first rows of slices
  bool has_effects = false;
};

void mix_node(Key& key, const Node& node) {
  // A computed value is a leaf like any other.
  const Op op = node.realised() && node.op != Op::Variable ? Op::Data : node.op;
  const std::uint64_t inputs = node.realised() ? 0 : node.input_count;
  key.mix(static_cast<std::uint64_t>(op) | static_cast<std::uint64_t>(node.dtype) << 8 |
          static_cast<std::uint64_t>(node.shape.rank()) << 16 |
          static_cast<std::uint64_t>(node.realised()) << 24 | inputs << 32);
  for (std::int64_t s : node.shape) key.mix(static_cast<std::uint64_t>(s));
  if (is_refused_late(op)) key.mix(node.label);
}

// The nodes of a walk are scattered in memory, so the next ones are prefetched.
constexpr std::size_t kAhead = 8;
void prefetch(const Node& node) {
  const auto* first = reinterpret_cast<const std::byte*>(&node);
  for (std::size_t line = 0; line < sizeof(Node); line += 64) __builtin_prefetch(first + line);
}

// Refuses requested values that would be computed from a variable assigned since the graph was
// built. Updates that a value carries are different: they use the variable's value at evaluation.
void refuse_stale(std::span<Node* const> order, std::span<const Tensor> wanted) {
  const auto reached = made_from(order, wanted);
  for (const Node* node : order) {
    const Node* assigned = node->realised() ? nullptr : assigned_since(*node);
    if (assigned == nullptr || !reached.contains(node)) continue;
    const std::string& variable = label_text(assigned->label);
    throw ValueError(cat(op_row(node->op).name,
                         node->label == 0 ? "" : cat(" (", label_text(node->label), ")"),
                         ": the variable ", variable.empty() ? "it reads" : variable,
                         " was assigned after this tensor was built and before it was evaluated: "
                         "evaluate the tensor before the update or together with it"));
  }
}

std::uint64_t word_of(Device device) {
  return static_cast<std::uint64_t>(device.kind) << 32 | static_cast<std::uint64_t>(device.index);
}

void mix_constant(Traversal& t, const Node& node) {
  const Scalar value = node.attrs.as<ConstantAttrs>().value;
  t.key.mix(value.is_whole() ? 1 : 0);
  t.numbers.push_back(value.is_whole() ? static_cast<std::uint64_t>(value.whole())
                                       : std::bit_cast<std::uint64_t>(value.real()));
}

// The first `wanted` roots are requested values; the others are assignments that these values
// carry.
Traversal traverse(NumberedOrder order, std::span<const Tensor> roots, std::size_t wanted,
                   std::uint64_t planning, std::span<const Device> devices) {
  Traversal t;
  bool stale = false;
  t.order = std::move(order);
  t.edges.reserve(2 * t.order.nodes.size());
  t.key.mix(planning);
  for (const Device device : devices) t.key.mix(word_of(device));
  const std::vector<Node*>& nodes = t.order.nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    Node* const node = nodes[n];
    if (n + kAhead < nodes.size()) prefetch(*nodes[n + kAhead]);
    mix_node(t.key, *node);
    if (devices.size() > 1 && node->placed) t.key.mix(word_of(node->device) | 1ull << 40);
    if (node->realised()) {
      t.leaves.push_back(node);
      continue;
    }
    stale |= assigned_since(*node) != nullptr;
    t.has_effects |= node->op == Op::Assign;
    if (node->op == Op::Constant)
      mix_constant(t, *node);
    else if (is_slice_of_rows(*node))
      t.numbers.push_back(static_cast<std::uint64_t>(node->attrs.as<SliceAttrs>().start[0]));
    else
      node->attrs.each_word([&t](std::uint64_t word) { t.key.mix(word); });
    for (Node* in : node->in()) {
      t.edges.push_back(t.order.index[in]);
      t.key.mix(t.edges.back());
    }
  }
  for (const Tensor& root : roots) t.key.mix(t.order.index[root.node()] | 1ull << 40);
  if (stale) refuse_stale(t.order.nodes, roots.first(wanted));
  return t;
}

// Pending tensors of the graph that read a variable which is about to be assigned, and that
// something outside the graph still holds. They are evaluated before the variable changes.
std::vector<Tensor> held_elsewhere(const Traversal& t, std::span<const Tensor> roots) {
  const std::vector<Node*>& nodes = t.order.nodes;
  std::vector<std::uint32_t> inside(nodes.size(), 0);  // number of uses inside the graph
  for (std::uint32_t n : t.edges) ++inside[n];
  std::vector<char> wanted(nodes.size(), 0);
  for (const Tensor& root : roots) wanted[t.order.index[root.node()]] = 1;
  std::vector<Tensor> held;
  for (std::size_t n = 0; n < nodes.size(); ++n)
    if (!nodes[n]->realised() && nodes[n]->op != Op::Constant && wanted[n] == 0 &&
        !has_trait(nodes[n]->op, kSeveralResults) &&
        nodes[n]->refs.load(std::memory_order_relaxed) > inside[n])
      held.emplace_back(nodes[n]);
  return held;
}

// A program, and the leaves of its graph by slot.
struct Found {
  std::shared_ptr<const Program> program;
  std::vector<Node*> leaves;
  std::vector<Tensor> numbers;  // keeps the leaves that replace numbers alive
};

std::shared_ptr<CachedProgram> find_program(const Key& key) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  const auto it = c.programs.find(key);
  if (it == c.programs.end()) return nullptr;
  it->second->touch();
  return it->second;
}

void add_program(const Key& key, const std::shared_ptr<const Program>& program,
                 const std::shared_ptr<const ChangingNumbers>& numbers) {
  const auto entry = std::make_shared<CachedProgram>(key, program, numbers);
  {
    Cache& c = cache();
    const std::lock_guard lock(c.mutex);
    // Another thread has planned the same graph meanwhile.
    if (!c.programs.try_emplace(key, entry).second) return;
  }
  enter(entry);
}

PlanOptions options_for(Device device) { return plan_options(current_context(), device); }

// Calls f with the history of the graph's numbers.
template <class F>
auto with_history(const Traversal& t, F&& f) {
  std::shared_ptr<GraphNumbers> made;
  Cache& c = cache();
  std::unique_lock lock(c.mutex);
  auto found = c.numbers.find(t.key);
  if (found == c.numbers.end()) {
    made = std::make_shared<GraphNumbers>(t.key);
    found = c.numbers.emplace(t.key, made).first;
  }
  GraphNumbers& entry = *found->second;
  entry.touch();
  const std::int64_t before = entry.history.bytes();
  try {
    auto result = f(entry.history);
    entry.charge(entry.history.bytes() - before);
    lock.unlock();
    if (made != nullptr) enter(made);
    return result;
  } catch (...) {  // a table entry that the caches do not know would never be evicted
    if (made != nullptr && lock.owns_lock()) c.numbers.erase(found);
    throw;
  }
}

// The program in which changing numbers are leaves; none if no number changes. If a number must be
// a constant, such as zero, it becomes part of the key for this evaluation; the others stay leaves.
std::optional<Found> with_number_leaves(const Traversal& t, std::span<const Tensor> roots,
                                        Device device, std::uint64_t planning) {
  std::optional<std::vector<char>> changing =
      with_history(t, [&t](NumberHistory& history) { return history.note(t.numbers); });
  while (changing && std::find(changing->begin(), changing->end(), 1) != changing->end()) {
    Key key = t.key;
    key.mix(t.numbers.size());  // differs from every key in which all numbers are constants
    for (std::size_t k = 0; k < t.numbers.size(); ++k) {
      key.mix((*changing)[k] != 0 ? 1 : 0);
      if ((*changing)[k] == 0) key.mix(t.numbers[k]);
    }
    std::vector<std::uint32_t> unfit;
    const auto built_in = [&] {
      for (const std::uint32_t number : unfit) (*changing)[number] = 0;
    };
    if (const std::shared_ptr<CachedProgram> known = find_program(key)) {
      std::vector<Tensor> values = known->numbers->values(t.order, device, unfit);
      if (unfit.empty())
        return Found{known->program, known->numbers->leaves(t.leaves, values), std::move(values)};
      built_in();
      continue;
    }
    ChangingNumbers::Graph graph;
    const auto numbers = ChangingNumbers::make(t.order, roots, *changing, device, graph, unfit);
    if (numbers == nullptr) {
      with_history(t, [&](NumberHistory& history) { return history.build_in(unfit), 0; });
      built_in();
      continue;
    }
    std::vector<Tensor> values = numbers->values(t.order, device, unfit);
    if (!unfit.empty()) {
      built_in();
      continue;
    }
    const auto program =
        known_or_planned(graph.order, graph.roots, graph.leaves, options_for(device), planning);
    add_program(key, program, numbers);
    return Found{program, numbers->leaves(t.leaves, values), std::move(values)};
  }
  return std::nullopt;
}

Found find_or_plan(const Traversal& t, std::span<const Tensor> roots,
                   std::span<const Device> devices, std::uint64_t planning) {
  Key key = t.key;
  for (const std::uint64_t number : t.numbers) key.mix(number);
  if (const std::shared_ptr<CachedProgram> known = find_program(key))
    return {known->program, t.leaves, {}};
  // A graph of a single constant needs no compiler on a GPU, so each number may have its own
  // program.
  const bool is_fill = t.order.nodes.size() == 1 && devices[0].kind != Device::Kind::Cpu;
  if (devices.size() == 1 && !t.numbers.empty() && !is_fill)
    if (std::optional<Found> found = with_number_leaves(t, roots, devices[0], planning))
      return std::move(*found);
  std::shared_ptr<const Program> program;
  if (devices.size() > 1) {
    program = plan_placed(roots, t.leaves, devices, options_for);
    count_planned(*program);
  } else {
    program = known_or_planned(t.order, roots, t.leaves, options_for(devices[0]), planning);
  }
  add_program(key, program, nullptr);
  return {program, t.leaves, {}};
}

void run(const Found& found, std::span<const Tensor> roots) {
  const Program& program = *found.program;
  const std::vector<Node*>& leaves = found.leaves;
  std::vector<std::byte*> values(program.values.size(), nullptr);
  LeafUse use(program, leaves);
  use.keep_held_values();
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    if (program.slots[s] != kNoValue && !use.is_variable(s))
      values[static_cast<std::size_t>(program.slots[s])] = leaf_memory(*leaves[s]);
  std::unordered_map<ValueId, std::shared_ptr<Buffer>> outputs;
  for (const OutputSlot& slot : program.outputs) {
    if (slot.is_variable || outputs.contains(slot.value)) continue;
    const Value& value = program.values[at(slot.value)];
    auto buffer = Buffer::allocate(static_cast<std::size_t>(value.bytes), value.device);
    values[at(slot.value)] = static_cast<std::byte*>(buffer->data());
    outputs.emplace(slot.value, std::move(buffer));
  }
  if (program.devices.size() > 1) {
    use.begin(values);
    run_placed(program, values);
    count_run();
  } else {
    const std::shared_ptr<Buffer> arena = allocate_arena(program);
    auto* base = static_cast<std::byte*>(arena->data());
    bind_arena(program, base, values);
    use.begin(values);
    run_steps(program, values.data(), base);
  }
  const std::uint64_t now = advance_clock();
  use.end();
  // Keeps the variables alive: a root releases its inputs when it gets its value, and may be the
  // last holder of a variable.
  std::vector<Tensor> assigned(program.values.size());
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    if (program.slots[s] != kNoValue)
      assigned[static_cast<std::size_t>(program.slots[s])] = Tensor(leaves[s]);
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const OutputSlot& slot = program.outputs[k];
    Node& node = *roots[k].node();
    if (node.realised()) continue;  // requested twice, already has its value
    if (slot.is_variable) {
      set_realised(node, present_value(*assigned[static_cast<std::size_t>(slot.value)].node()));
    } else {
      set_realised(node, outputs.at(slot.value));
    }
  }
  for (ValueId id : program.assigned)
    mark_assigned(*assigned[static_cast<std::size_t>(id)].node(), now);
}

}  // namespace

void run_steps(const Program& program, std::byte* const* values, std::byte* arena) {
  const std::unique_lock<std::mutex> queue = lock_queue(program.device);
  backend_of(program.device).run_once(program, values, arena);
  count_run();
}

std::shared_ptr<Buffer> allocate_arena(const Program& program) {
  try {
    return Buffer::allocate(arena_of_call(program), program.device);
  } catch (const MemoryError& error) {
    throw MemoryError(cat(error.what(), " (largest here: ", largest_values(program), ")"));
  }
}

void bind_arena(const Program& program, std::byte* arena, std::vector<std::byte*>& values) {
  for (std::size_t k = 0; k < program.values.size(); ++k)
    if (program.values[k].kind == Value::Kind::Arena) values[k] = arena + program.values[k].offset;
}

std::byte* leaf_memory(const Node& leaf) {
  if (leaf.value->bytes() < static_cast<std::size_t>(leaf.shape.numel()) * item_size(leaf.dtype))
    throw ValueError(
        "inputs and random draws of a function that is being compiled or mapped have no values "
        "yet: return "
        "the tensor from the function and read it there");
  return static_cast<std::byte*>(leaf.value->data());
}

namespace {

void eval_on(std::span<const Device> devices, std::vector<Tensor> roots, NumberedOrder order) {
  const std::uint64_t planning = planning_key(current_context());
  Traversal t = traverse(std::move(order), roots, roots.size(), planning, devices);
  if (!t.has_effects) {
    run(find_or_plan(t, roots, devices, planning), roots);
    return;
  }
  const std::size_t asked = roots.size();
  const std::vector<Tensor> held = held_elsewhere(t, roots);
  roots.insert(roots.end(), held.begin(), held.end());
  const std::size_t wanted = roots.size();
  const Effects effects = with_effects(std::move(roots), t.order.nodes);
  if (effects.roots.size() != asked)
    t = traverse(numbered_order(effects.roots), effects.roots, wanted, planning, devices);
  run(find_or_plan(t, effects.roots, devices, planning), effects.results);
}

// The constant that a node is, or that to() has moved to a device; null if the node is more than a
// constant. A single number is written directly, not computed: otherwise every new value, such as a
// learning rate, would be another program.
const Node* lone_number(const Node& node) {
  if (node.shape.numel() != 1 || ShapesOnly::is_on()) return nullptr;
  if (node.op == Op::Constant) return &node;
  const bool is_moved = node.op == Op::Cast && node.input(0)->op == Op::Constant &&
                        node.dtype == node.input(0)->dtype && !node.input(0)->realised();
  return is_moved ? node.input(0) : nullptr;
}

}  // namespace

void compute(TensorList tensors) {
  // Constants without a device are evaluated separately if other roots have a device.
  std::vector<Tensor> roots, numbers;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const Tensor& t = tensors[k];
    if (!t.defined())
      throw ValueError(cat("compute: tensor ", k + 1, " of ", tensors.size(),
                           " has no value: it was never assigned"));
    if (t.node()->realised()) continue;
    if (const Node* number = lone_number(*t.node()))
      set_realised(*t.node(), number_buffer(number->attrs.as<ConstantAttrs>().value, number->dtype,
                                            t.device()));
    else
      roots.push_back(t);
  }
  if (roots.empty()) return;
  if (DetectAnomaly::is_on()) refuse_anomalies(roots);
  NumberedOrder order = numbered_order(roots);
  std::vector<Device> devices = devices_of(order.nodes);
  if (devices.empty()) devices = {roots[0].device()};
  const auto is_number = [](const Tensor& t) { return !t.node()->placed; };
  const auto is_elsewhere = [&](const Tensor& t) {
    return is_number(t) && (devices.size() > 1 || t.device() != devices[0]);
  };
  if (std::any_of(roots.begin(), roots.end(), is_elsewhere)) {
    std::copy_if(roots.begin(), roots.end(), std::back_inserter(numbers), is_elsewhere);
    std::erase_if(roots, is_elsewhere);
    order = numbered_order(roots);
  }
  if (!roots.empty()) eval_on(devices, std::move(roots), std::move(order));
  for (const Tensor& number : numbers) {
    const Device device = number.device();
    eval_on({&device, 1}, {number}, numbered_order({&number, 1}));
  }
}

}  // namespace tenon
