// Splits a graph with several devices at its transfers and collectives.
//
// A node's level is the number of transfers and collectives on the longest path to it. Nodes of the
// same device and level form a part. Parts run in order of their level, so no two parts wait for
// each other. A variable is assigned after all readers of its old value.
#include "plan/steps/placed.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <unordered_map>

#include <tenon/error.h>

#include <tenon/shapes_only.h>
#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "device/backend.h"
#include "device/copy.h"
#include "device/groups.h"
#include "graph/effects.h"
#include "graph/node.h"
#include "graph/order.h"
#include "ops/collective.h"
#include "ops/function_rule.h"
#include "ops/infer.h"

namespace tenon {
namespace {

constexpr std::int64_t kPartAlign = 256;

auto rank_of(Device d) { return std::tuple(d.kind == Device::Kind::Cpu, d.kind, d.index); }

// Whether the node is a step between parts: a transfer or a collective.
bool is_exchange(const Node& node) {
  return kind_of(node.op) == OpKind::Transfer && !node.realised();
}
// Whether no part computes the value: the result of a transfer or of a collective.
bool is_exchanged(const Node& node) {
  return is_exchange(node) ||
         (node.op == Op::Result && !node.realised() && node.input(0)->op == Op::Collective);
}

// ---- Engines of calls, transfers and collectives ----------------------------------------------

class CallKernel final : public Kernel {
 public:
  explicit CallKernel(const Opaque& call) : call_(call) {
    workspace_bytes = static_cast<std::size_t>(call.bodies[0]->arena_bytes);
  }
  void run(const Binding& binding) const override {
    std::vector<std::byte*> inside;
    bind_call(call_, binding.values, binding.workspace, inside);
    const Program& body = *call_.bodies[0];
    backend_of(body.device).run_once(body, inside.data(), binding.workspace);
  }

 private:
  const Opaque call_;
};

class TransferKernel final : public Kernel {
 public:
  TransferKernel(const Value& from, const Value& to, ValueId source, ValueId result)
      : from_(from.device),
        to_(to.device),
        bytes_(static_cast<std::size_t>(to.bytes)),
        source_(source),
        result_(result) {}
  void run(const Binding& binding) const override {
    if (bytes_ > 0)
      copy_bytes(binding.values[result_], to_, binding.values[source_], from_, bytes_);
  }

 private:
  const Device from_, to_;
  const std::size_t bytes_;
  const ValueId source_, result_;
};

class CollectiveKernel final : public Kernel {
 public:
  CollectiveKernel(const Opaque& op, std::span<const Value> values)
      : kind_(op.attrs.as<CollectiveAttrs>().kind), inputs_(op.inputs), outs_(op.outs) {
    for (const ValueId out : outs_) members_.push_back(values[at(out)].device);
    const Value& given = values[at(inputs_[0])];
    const bool scatters = kind_ == CollectiveKind::ReduceScatter;
    count_ = (scatters ? values[at(outs_[0])] : given).shape.numel();
    dtype_ = given.dtype;
    const auto root = std::find(members_.begin(), members_.end(), given.device);
    root_ = static_cast<int>(root - members_.begin());
  }

  void run(const Binding& binding) const override {
    if (count_ == 0) return;
    std::vector<Communicator::Part> parts;
    parts.reserve(members_.size());
    for (std::size_t k = 0; k < members_.size(); ++k) {
      const ValueId from = kind_ == CollectiveKind::Broadcast ? inputs_[0] : inputs_[k];
      parts.push_back({static_cast<int>(k), binding.values[from], binding.values[outs_[k]],
                       backend_of(members_[k]).stream(members_[k].index)});
    }
    Communicator& group = communicator_of(members_);
    switch (kind_) {
      case CollectiveKind::AllReduce:
        return group.all_reduce(parts, count_, dtype_, Combine::Sum);
      case CollectiveKind::Broadcast:
        return group.broadcast(parts, count_, dtype_, root_);
      case CollectiveKind::AllGather:
        return group.all_gather(parts, count_, dtype_);
      case CollectiveKind::ReduceScatter:
        return group.reduce_scatter(parts, count_, dtype_, Combine::Sum);
    }
  }

 private:
  const CollectiveKind kind_;
  const std::vector<ValueId> inputs_, outs_;
  std::vector<Device> members_;
  std::int64_t count_ = 0;  // number of elements as Communicator counts them
  DType dtype_ = DType::Float32;
  int root_ = 0;
};

class CallEngine final : public Engine {
 public:
  const char* name() const override { return "call"; }
  bool claims(const Region& region, std::span<const Value>, std::string* why) const override {
    const bool mine = region.kind == RegionKind::Opaque && region.opaque.op == Op::Data &&
                      region.opaque.bodies.size() == 1;
    if (!mine) *why = "runs only a device's part of a program on several devices";
    return mine;
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value>,
                                  int) const override {
    return std::make_unique<CallKernel>(region.opaque);
  }
};

class TransferEngine final : public Engine {
 public:
  const char* name() const override { return "transfer"; }
  bool claims(const Region& region, std::span<const Value>, std::string* why) const override {
    const bool mine = region.kind == RegionKind::Opaque && region.opaque.op == Op::ToDevice;
    if (!mine) *why = "runs transfers between devices only";
    return mine;
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    const ValueId from = region.opaque.inputs[0], to = region.opaque.out();
    return std::make_unique<TransferKernel>(values[at(from)], values[at(to)], from, to);
  }
};

class CollectiveEngine final : public Engine {
 public:
  const char* name() const override { return "collective"; }
  bool claims(const Region& region, std::span<const Value>, std::string* why) const override {
    const bool mine = region.kind == RegionKind::Opaque && region.opaque.op == Op::Collective;
    if (!mine) *why = "runs collective operations only";
    return mine;
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return std::make_unique<CollectiveKernel>(region.opaque, values);
  }
};

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return "all_reduce";
    case CollectiveKind::Broadcast:
      return "broadcast";
    case CollectiveKind::AllGather:
      return "all_gather";
    case CollectiveKind::ReduceScatter:
      return "reduce_scatter";
  }
  return "";
}

// ---- Cutting ----------------------------------------------------------------------------------

struct Part {
  Device device;
  std::vector<Node*> nodes;    // inputs before users
  std::vector<Node*> exports;  // read by other parts, requested, or assignments
};

class Cutter {
 public:
  Cutter(std::span<const Tensor> roots, std::span<Node* const> leaves,
         std::span<const Device> devices, const OptionsFor& options)
      : roots_(placed_roots(without_functions(roots), devices[0])),
        leaves_(leaves),
        options_(options),
        order_(topological_order(roots_)),
        program_(std::make_shared<Program>()) {
    program_->devices.assign(devices.begin(), devices.end());
    program_->device = devices[0];
  }

  std::shared_ptr<const Program> run() {
    const auto start = std::chrono::steady_clock::now();
    const PlanOptions home = options_(program_->device);
    program_->traits = home.traits;
    program_->traits.queues_calls = true;  // the devices' arenas serve one call at a time
    program_->traits.host_sees_values = false;
    program_->threads = home.threads;
    program_->node_count = static_cast<int>(order_.size());
    find_levels();
    add_leaves();
    add_exports();
    for (int level = 0; level <= last_level_; ++level) {
      for (Node* node : order_)
        if (is_exchange(*node) && level_of(*node) == level) add_exchange(*node);
      for (auto& [key, part] : parts_)
        if (key.first == level && !part.exports.empty()) add_call(part);
    }
    add_outputs();
    place_values(home);
    program_->planning_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return program_;
  }

 private:
  using Key = std::pair<int, std::tuple<bool, Device::Kind, std::int16_t>>;

  // Requested constants without a device are computed on the first device.
  static std::vector<Tensor> placed_roots(std::span<const Tensor> roots, Device device) {
    std::vector<Tensor> placed(roots.begin(), roots.end());
    for (Tensor& root : placed) {
      if (root.node()->placed) continue;
      root = make_node(Op::Cast, root.dtype(), root.shape(), {}, {&root, 1});
      root.node()->placed = true;
      root.node()->device = device;
    }
    return placed;
  }

  // Leaves and numbers exist before every step.
  static bool is_computed(const Node& node) { return !node.realised() && node.placed; }
  int level_of(const Node& node) const {
    const auto found = levels_.find(&node);
    return found == levels_.end() ? -1 : found->second;
  }

  int own_level(const Node& node) const {
    int level = level_of(node);
    for (Node* in : value_inputs(node))
      level = std::max(level, level_of(*value_of(in)) + (is_exchange(node) ? 1 : 0));
    return std::max(level, 0);
  }

  void find_levels() {
    std::unordered_map<const Node*, int> last_read;
    for (bool changed = true; changed;) {
      changed = false;
      for (Node* node : order_) {
        if (!is_computed(*node)) continue;
        int level = own_level(*node);
        if (node->op == Op::Assign) level = std::max(level, last_read[node->input(0)]);
        for (const Node* in : value_inputs(*node))
          if (in->op == Op::Variable && node->op != Op::Assign) {
            int& last = last_read[in];
            last = std::max(last, level);
          }
        changed |= level != level_of(*node);
        levels_[node] = level;
        last_level_ = std::max(last_level_, level);
      }
    }
    for (Node* node : order_) {
      if (!is_computed(*node) || is_exchanged(*node) || node->op == Op::WithUpdates) continue;
      Part& part = parts_[Key(levels_[node], rank_of(node->device))];
      part.device = node->device;
      part.nodes.push_back(node);
    }
  }

  // The node that computes the value of `node`. Assignments pass their value on.
  static Node* value_of(Node* node) {
    while (!node->realised() && (node->op == Op::WithUpdates || node->op == Op::Assign))
      node = node->input(node->op == Op::Assign ? 1 : 0);
    return node;
  }

  bool is_inside(const Part& part, const Node& node) const {
    return is_computed(node) && !is_exchanged(node) && node.device == part.device &&
           parts_.at(Key(level_of(node), rank_of(node.device))).nodes.data() == part.nodes.data();
  }

  ValueId add_value(const Node& node, Value::Kind kind, Device device) {
    Value value;
    value.kind = kind;
    value.dtype = node.dtype;
    value.shape = node.shape;
    value.device = device;
    value.bytes = node.shape.numel() * static_cast<std::int64_t>(item_size(node.dtype));
    value.label = node.label;
    program_->values.push_back(value);
    return static_cast<ValueId>(program_->values.size()) - 1;
  }

  void add_leaves() {
    for (std::size_t k = 0; k < leaves_.size(); ++k) {
      const Node& leaf = *leaves_[k];
      const auto kind = leaf.op == Op::Variable ? Value::Kind::Variable : Value::Kind::Leaf;
      const ValueId id = add_value(leaf, kind, leaf.device);
      program_->values.back().slot = static_cast<int>(k);
      program_->leaf_bytes += program_->values.back().bytes;
      program_->slots.push_back(id);
      values_[&leaf] = id;
    }
  }

  void ask(Node* node) {
    if (!is_computed(*node) || values_.contains(node)) return;
    if (node->op == Op::Result && is_exchanged(*node)) {
      values_[node] = result_of_member(*node->input(0), result_index(*node));
      return;
    }
    values_[node] = add_value(*node, Value::Kind::Arena, node->device);
    if (!is_exchange(*node)) part_of(*node).exports.push_back(node);
  }
  // All members' nodes for one result have the same value.
  ValueId result_of_member(const Node& collective, std::int64_t rank) {
    const auto [found, fresh] = results_.try_emplace({&collective, rank}, kNoValue);
    if (fresh)
      found->second = add_value(collective, Value::Kind::Arena, member_of(collective, rank));
    return found->second;
  }
  Part& part_of(const Node& node) { return parts_.at(Key(level_of(node), rank_of(node.device))); }

  void add_exports() {
    for (Node* node : order_) {
      if (is_exchange(*node)) {
        for (Node* in : node->in()) ask(value_of(in));
        if (node->op == Op::ToDevice) ask(node);
      } else if (is_exchanged(*node)) {
        ask(node);
      } else if (is_computed(*node) && node->op == Op::Assign) {
        part_of(*node).exports.push_back(node);
      }
      if (!is_computed(*node) || is_exchanged(*node) || node->op == Op::WithUpdates) continue;
      const Part& part = part_of(*node);
      for (Node* in : value_inputs(*node))
        if (Node* value = value_of(in); !is_inside(part, *value)) ask(value);
    }
    for (const Tensor& root : roots_)
      if (root.node()->op != Op::Assign) ask(value_of(root.node()));
  }

  void add_step(Region region, const Engine& engine) {
    Step step;
    step.region = std::move(region);
    step.engine = &engine;
    step.kernel = engine.prepare(step.region, program_->values, program_->threads);
    program_->steps.push_back(std::move(step));
  }

  void add_exchange(Node& node) {
    static const TransferEngine transfer;
    static const CollectiveEngine collective;
    Region region;
    region.kind = RegionKind::Opaque;
    region.label = node.label;
    Opaque& op = region.opaque;
    op.op = node.op;
    op.attrs = node.attrs;
    for (Node* in : node.in()) {
      op.inputs.push_back(values_.at(value_of(in)));
      op.shapes.push_back(in->shape);
    }
    const bool moves = node.op == Op::ToDevice;
    if (moves) {
      op.outs = {values_.at(&node)};
      region.title = cat("to ", node.device.str(), " ", node.dtype, node.shape);
    } else {
      // A member receives all its results, even those that nothing reads.
      for (std::int64_t k = 0; k < op_info(Op::Collective).result_count(node); ++k)
        op.outs.push_back(result_of_member(node, k));
      region.title = cat(name_of(node.attrs.as<CollectiveAttrs>().kind), " ", op.outs.size(), " x ",
                         node.dtype, node.shape);
    }
    region.reads = op.inputs;
    region.writes = op.outs;
    add_step(std::move(region), moves ? static_cast<const Engine&>(transfer) : collective);
  }

  // Copies a node into the part's own graph; nodes computed elsewhere become leaves.
  Tensor inside(const Part& part, Node* node, std::unordered_map<const Node*, Tensor>& known,
                std::unordered_map<const Node*, ValueId>& bound) {
    node = value_of(node);
    if (const auto found = known.find(node); found != known.end()) return found->second;
    if (!is_computed(*node)) return Tensor(node);
    Tensor stand_in = without_memory(node->shape, node->dtype, part.device);
    bound[stand_in.node()] = values_.at(node);
    return known[node] = stand_in;
  }

  void add_call(Part& part) {
    static const CallEngine engine;
    std::unordered_map<const Node*, Tensor> known;
    std::unordered_map<const Node*, ValueId> bound = values_;
    for (Node* node : part.nodes) {
      std::vector<Tensor> inputs;
      bool changed = false;
      for (Node* in : node->in()) {
        inputs.push_back(inside(part, in, known, bound));
        changed |= inputs.back().node() != in;
      }
      const LabelGuard label(node->label);
      known[node] = changed ? make_node(node->op, node->dtype, node->shape, node->attrs, inputs)
                            : Tensor(node);
    }
    std::vector<Tensor> wanted;
    for (Node* node : part.exports) wanted.push_back(known.at(node));
    std::vector<Node*> leaves;
    for (Node* node : topological_order(wanted))
      if (node->realised()) leaves.push_back(node);
    PlanOptions options = options_(part.device);
    options.results_apart = true;
    const std::shared_ptr<const Program> body = plan_program(wanted, leaves, options);
    Region region;
    region.kind = RegionKind::Opaque;
    Opaque& call = region.opaque;
    call.bodies = {body};
    for (const Node* leaf : leaves) call.inputs.push_back(bound.at(leaf));
    for (Node* node : part.exports)
      call.outs.push_back(node->op == Op::Assign ? kNoValue : values_.at(node));
    for (std::size_t s = 0; s < leaves.size(); ++s)
      if (body->slots[s] != kNoValue) region.reads.push_back(call.inputs[s]);
    for (const ValueId id : call.outs)
      if (id != kNoValue) region.writes.push_back(id);
    for (const ValueId id : body->assigned) {
      const ValueId variable = call.inputs[at(body->values[at(id)].slot)];
      region.writes.push_back(variable);
      program_->assigned.push_back(variable);
    }
    region.title = cat(part.device.str(), ": ", body->steps.size(), " steps");
    add_step(std::move(region), engine);
  }

  void add_outputs() {
    for (const Tensor& root : roots_) {
      const bool assigns = root.node()->op == Op::Assign;
      Node* node = assigns ? root.node() : value_of(root.node());
      OutputSlot slot;
      slot.dtype = node->dtype;
      slot.shape = node->shape;
      slot.is_variable = assigns;
      slot.value = values_.at(slot.is_variable ? node->input(0) : node);
      Value& value = program_->values[at(slot.value)];
      if (!slot.is_variable && value.kind == Value::Kind::Arena) {
        value.kind = Value::Kind::Output;
        value.slot = static_cast<int>(program_->outputs.size());
        program_->output_bytes += value.bytes;
      }
      program_->outputs.push_back(slot);
    }
  }

  // Each device has a range of the arena of its own: first the values, none of which share bytes,
  // then the workspace of its calls, which run one after another.
  void place_values(const PlanOptions& options) {
    Program& p = *program_;
    std::int64_t top = 0;
    for (const Device device : p.devices) {
      for (Value& value : p.values)
        if (value.kind == Value::Kind::Arena && value.device == device) {
          value.offset = top;
          top += round_up(value.bytes, kPartAlign);
        }
      std::int64_t workspace = 0;
      for (Step& step : p.steps) {
        if (device_of(p, step) != device) continue;
        step.workspace_offset = top;
        workspace =
            std::max(workspace,
                     round_up(static_cast<std::int64_t>(step.kernel->workspace_bytes), kPartAlign));
      }
      top += workspace;
    }
    p.arena_bytes = p.workspace_offset = top;
    if (options.most_memory() > 0 && p.peak_bytes() > options.most_memory())
      throw MemoryError(cat("this would take ", size_text(p.peak_bytes()), " on ", p.devices.size(),
                            " devices, more than ", options.most_memory_text(), ": ",
                            options.less_memory_advice()));
  }

  const std::vector<Tensor> roots_;
  const std::span<Node* const> leaves_;
  const OptionsFor& options_;
  const std::vector<Node*> order_;
  std::shared_ptr<Program> program_;
  std::unordered_map<const Node*, int> levels_;
  int last_level_ = 0;
  std::map<Key, Part> parts_;
  std::unordered_map<const Node*, ValueId> values_;
  // Results of collectives, by node and rank.
  std::map<std::pair<const Node*, std::int64_t>, ValueId> results_;
};

}  // namespace

std::vector<Device> devices_of(std::span<Node* const> order) {
  std::vector<Device> devices;
  const auto add = [&devices](Device device) {
    if (!contains(devices, device)) devices.push_back(device);
  };
  for (const Node* node : order) {
    if (node->placed) add(node->device);
    if (node->op == Op::Collective && !node->realised())
      for (const Device member : members_of(*node)) add(member);
  }
  std::sort(devices.begin(), devices.end(),
            [](Device a, Device b) { return rank_of(a) < rank_of(b); });
  return devices;
}

std::shared_ptr<const Program> plan_placed(std::span<const Tensor> roots,
                                           std::span<Node* const> leaves,
                                           std::span<const Device> devices,
                                           const OptionsFor& options) {
  return Cutter(roots, leaves, devices, options).run();
}

Device device_of(const Program& program, const Step& step) {
  const Opaque& opaque = step.region.opaque;
  return opaque.bodies.empty() ? program.values[at(opaque.out())].device : opaque.bodies[0]->device;
}

std::vector<DeviceArena> arenas_of(const Program& program) {
  std::vector<DeviceArena> arenas;
  for (const Device device : program.devices) {
    std::int64_t begin = program.arena_bytes, end = 0;
    const auto take = [&](std::int64_t from, std::int64_t bytes) {
      begin = std::min(begin, from);
      end = std::max(end, from + bytes);
    };
    for (const Value& value : program.values)
      if (value.kind == Value::Kind::Arena && value.device == device)
        take(value.offset, value.bytes);
    for (const Step& step : program.steps)
      if (device_of(program, step) == device)
        take(step.workspace_offset, static_cast<std::int64_t>(step.kernel->workspace_bytes));
    arenas.push_back({device, std::min(begin, end), std::max<std::int64_t>(end - begin, 0)});
  }
  return arenas;
}

void bind_call(const Opaque& call, std::byte* const* outside, std::byte* arena,
               std::vector<std::byte*>& inside) {
  const Program& body = *call.bodies[0];
  inside.assign(body.values.size(), nullptr);
  for (std::size_t k = 0; k < body.values.size(); ++k)
    if (body.values[k].kind == Value::Kind::Arena) inside[k] = arena + body.values[k].offset;
  for (std::size_t s = 0; s < body.slots.size(); ++s)
    if (body.slots[s] != kNoValue) inside[at(body.slots[s])] = outside[call.inputs[s]];
  for (std::size_t k = 0; k < body.outputs.size(); ++k)
    if (!body.outputs[k].is_variable) inside[at(body.outputs[k].value)] = outside[call.outs[k]];
}

}  // namespace tenon
