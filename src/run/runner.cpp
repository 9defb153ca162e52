// eval(): key, cache, binding, running, and storing results in the nodes.
#include "run/runner.h"

#include <cstring>
#include <mutex>
#include <unordered_map>

#include <tenon/error.h>
#include <tenon/eval.h>

#include "base/str.h"
#include "cuda/cuda.h"
#include "run/devices.h"
#include "run/settings.h"

namespace tenon {
namespace {

// 128 bits over the structure of a graph: two programs that differ meet the same key with
// negligible chance.
struct Key {
  std::uint64_t lo = 0x243F6A8885A308D3ull, hi = 0x13198A2E03707344ull;
  void mix(std::uint64_t v) {
    lo = (lo ^ v) * 0x9E3779B97F4A7C15ull;
    lo ^= lo >> 29;
    hi = (hi + v) * 0xC2B2AE3D27D4EB4Full;
    hi ^= hi >> 31;
    hi += lo;
  }
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& k) const { return k.lo ^ k.hi; }
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<Key, std::shared_ptr<const Program>, KeyHash> programs;
  RunnerStats stats;
};
Cache& cache() {
  static Cache* instance = new Cache;
  return *instance;
}
constexpr std::size_t kMaxCached = 512;

struct Traversal {
  std::vector<Node*> order;
  std::vector<Node*> leaves;
  std::unordered_map<const Node*, std::uint32_t> index;
  Key key;
  bool has_effects = false;
};

void mix_node(Key& key, const Node& node) {
  // A value that was computed is a leaf like any other.
  const Op op = node.realised() && node.op != Op::Variable ? Op::Data : node.op;
  const std::uint64_t inputs = node.realised() ? 0 : node.input_count;
  key.mix(static_cast<std::uint64_t>(op) | static_cast<std::uint64_t>(node.dtype) << 8 |
          static_cast<std::uint64_t>(node.shape.rank()) << 16 |
          static_cast<std::uint64_t>(node.realised()) << 24 | inputs << 32);
  for (std::int64_t s : node.shape) key.mix(static_cast<std::uint64_t>(s));
}

void check_fresh(const Node& node) {
  for (Node* in : node.in())
    if (in->op == Op::Variable && node.built_at < in->assigned_at.load(std::memory_order_relaxed) &&
        node.op != Op::Assign) {
      const std::string& variable = label_text(in->label);
      throw ValueError(cat(op_name(node.op),
                           node.label == 0 ? "" : cat(" (", label_text(node.label), ")"),
                           ": the variable ", variable.empty() ? "it reads" : variable,
                           " was assigned after this tensor was built and before it was evaluated: "
                           "evaluate the tensor before the update"));
    }
}

Traversal traverse(std::span<const Tensor> roots, std::uint64_t settings_version, Device device) {
  Traversal t;
  t.order = topological_order(roots);
  t.index.reserve(t.order.size() * 2);
  t.key.mix(settings_version);
  t.key.mix(static_cast<std::uint64_t>(device.kind) << 32 |
            static_cast<std::uint64_t>(device.index));
  for (Node* node : t.order) {
    const auto number = static_cast<std::uint32_t>(t.index.size());
    t.index.emplace(node, number);
    mix_node(t.key, *node);
    if (node->realised()) {
      t.leaves.push_back(node);
      continue;
    }
    check_fresh(*node);
    t.has_effects |= node->op == Op::Assign;
    std::uint64_t words[sizeof(Attrs) / 8];
    std::memcpy(words, &node->attrs, sizeof words);
    for (std::uint64_t w : words)
      if (w != 0)
        t.key.mix(w);
      else
        t.key.lo += 0x632BE59BD9B4E019ull;
    for (Node* in : node->in()) t.key.mix(t.index.at(in));
  }
  for (const Tensor& root : roots) t.key.mix(t.index.at(root.node()) | 1ull << 40);
  return t;
}

// Pending interior tensors that somebody outside this graph still holds. An assignment is about to
// change what they read, so they get their value now.
std::vector<Tensor> held_elsewhere(const Traversal& t, std::span<const Tensor> roots) {
  std::unordered_map<const Node*, std::uint32_t> inside;
  for (Node* node : t.order)
    if (!node->realised())
      for (Node* in : node->in()) ++inside[in];
  std::unordered_map<const Node*, bool> wanted;
  for (const Tensor& root : roots) wanted[root.node()] = true;
  std::vector<Tensor> held;
  for (Node* node : t.order)
    if (!node->realised() && node->op != Op::Constant && !wanted.contains(node) &&
        node->refs.load(std::memory_order_relaxed) > inside[node])
      held.emplace_back(node);
  return held;
}

std::shared_ptr<const Program> find_or_plan(const Traversal& t, std::span<const Tensor> roots,
                                            const Settings& settings) {
  Cache& c = cache();
  {
    std::lock_guard lock(c.mutex);
    if (auto it = c.programs.find(t.key); it != c.programs.end()) return it->second;
  }
  std::shared_ptr<const Program> program = plan_program(roots, t.leaves, settings.options);
  count_planned(*program);
  std::lock_guard lock(c.mutex);
  if (c.programs.size() >= kMaxCached) c.programs.clear();
  return c.programs.try_emplace(t.key, program).first->second;
}

void run(const Program& program, const Traversal& t, std::span<const Tensor> roots) {
  std::vector<std::byte*> values(program.values.size(), nullptr);
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    if (program.slots[s] != kNoValue)
      values[static_cast<std::size_t>(program.slots[s])] = leaf_memory(*t.leaves[s]);
  const std::shared_ptr<Buffer> arena = allocate_arena(program);
  auto* base = static_cast<std::byte*>(arena->data());
  bind_arena(program, base, values);
  std::unordered_map<ValueId, std::shared_ptr<Buffer>> outputs;
  for (const OutputSlot& slot : program.outputs) {
    if (slot.is_variable || outputs.contains(slot.value)) continue;
    const auto bytes =
        static_cast<std::size_t>(program.values[static_cast<std::size_t>(slot.value)].bytes);
    auto buffer = Buffer::allocate(bytes, program.device);
    values[static_cast<std::size_t>(slot.value)] = static_cast<std::byte*>(buffer->data());
    outputs.emplace(slot.value, std::move(buffer));
  }
  run_steps(program, values.data(), base);
  // Shares in the variables: a root that is realised lets go of its inputs, and may have been the
  // last to hold one.
  std::vector<Tensor> assigned(program.values.size());
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    if (program.slots[s] != kNoValue)
      assigned[static_cast<std::size_t>(program.slots[s])] = Tensor(t.leaves[s]);
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const OutputSlot& slot = program.outputs[k];
    Node& node = *roots[k].node();
    if (node.realised()) continue;  // asked for twice
    if (slot.is_variable) {
      set_realised(node, assigned[static_cast<std::size_t>(slot.value)].node()->value);
    } else {
      set_realised(node, outputs.at(slot.value));
    }
  }
  for (ValueId id : program.assigned) mark_assigned(*assigned[static_cast<std::size_t>(id)].node());
}

}  // namespace

void run_steps(const Program& program, std::byte* const* values, std::byte* arena) {
  if (program.device.kind == Device::Kind::Cuda)
    cuda::run_once(program, values, arena);
  else
    for (const Step& step : program.steps)
      step.kernel->run({values, arena + step.workspace_offset, nullptr});
  count_run();
}

std::shared_ptr<Buffer> allocate_arena(const Program& program) {
  try {
    return Buffer::allocate(static_cast<std::size_t>(program.arena_bytes), program.device);
  } catch (const MemoryError& error) {
    throw MemoryError(cat(error.what(), " (largest here: ", largest_values(program), ")"));
  }
}

void bind_arena(const Program& program, std::byte* arena, std::vector<std::byte*>& values) {
  for (std::size_t k = 0; k < program.values.size(); ++k)
    if (program.values[k].kind == Value::Kind::Arena) values[k] = arena + program.values[k].offset;
}

void mark_assigned(Node& variable) {
  variable.assigned_at.store(advance_assignment_clock(), std::memory_order_relaxed);
}

std::byte* leaf_memory(const Node& leaf) {
  if (leaf.value->bytes() < static_cast<std::size_t>(leaf.shape.numel()) * item_size(leaf.dtype))
    throw ValueError(
        "an input of a function that is being compiled has no value yet: return the tensor from "
        "the function and read it there");
  return static_cast<std::byte*>(leaf.value->data());
}

void count_planned(const Program& program) {
  std::lock_guard lock(cache().mutex);
  ++cache().stats.programs_planned;
  cache().stats.planning_ms += program.planning_ms;
}

void count_run() {
  std::lock_guard lock(cache().mutex);
  ++cache().stats.programs_run;
}

RunnerStats runner_stats() {
  const PoolStats pool = host_pool_stats();
  std::lock_guard lock(cache().mutex);
  RunnerStats stats = cache().stats;
  stats.peak_memory = pool.peak;
  stats.memory_in_use = pool.in_use;
  return stats;
}

namespace {

// A transfer ends one program and begins another: what it reads is computed on its own device.
void transfer(Node& node) {
  const Tensor source(node.input(0));
  source.eval();
  auto buffer = Buffer::allocate(source.node()->value->bytes(), node.device);
  if (buffer->bytes() != 0) buffer->copy_from(*source.node()->value, buffer->bytes());
  set_realised(node, std::move(buffer));
}

void eval_on(Device device, std::vector<Tensor> roots) {
  const Settings settings = current_settings(device);
  Traversal t = traverse(roots, settings.version, device);
  if (t.has_effects) {
    const std::vector<Tensor> held = held_elsewhere(t, roots);
    if (!held.empty()) {
      roots.insert(roots.end(), held.begin(), held.end());
      t = traverse(roots, settings.version, device);
    }
  }
  const std::shared_ptr<const Program> program = find_or_plan(t, roots, settings);
  run(*program, t, roots);
}

}  // namespace

void eval(std::span<const Tensor> tensors) {
  std::vector<Tensor> roots;
  for (const Tensor& t : tensors)
    if (t.defined() && !t.node()->realised()) roots.push_back(t);
  if (roots.empty()) return;
  for (Node* node : topological_order(roots))
    if (node->op == Op::ToDevice && !node->realised()) transfer(*node);
  std::erase_if(roots, [](const Tensor& t) { return t.node()->realised(); });
  while (!roots.empty()) {
    const Device device = roots[0].device();
    std::vector<Tensor> here, elsewhere;
    for (Tensor& root : roots) (root.device() == device ? here : elsewhere).push_back(root);
    eval_on(device, std::move(here));
    roots = std::move(elsewhere);
  }
}

void eval(std::initializer_list<Tensor> tensors) {
  eval(std::span<const Tensor>(tensors.begin(), tensors.size()));
}

}  // namespace tenon
