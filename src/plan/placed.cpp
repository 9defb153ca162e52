// Cutting a graph at its transfers.
//
// A node's level is the number of transfers on the longest way to it. Nodes of one device and one
// level form a part; parts follow each other by level, so no two wait for one another. A variable
// is assigned behind all that read its old value.
#include "plan/placed.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <unordered_map>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "device/backend.h"
#include "device/copy.h"
#include "graph/effects.h"
#include "graph/node.h"
#include "graph/shapes_only.h"

namespace tenon {
namespace {

constexpr std::int64_t kPartAlign = 256;

auto rank_of(Device d) { return std::tuple(d.kind == Device::Kind::Cpu, d.kind, d.index); }

bool is_transfer(const Node& node) { return node.op == Op::ToDevice && !node.realised(); }

// ---- The engines of such programs' steps ------------------------------------------------------

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

class CallEngine final : public Engine {
 public:
  const char* name() const override { return "call"; }
  bool claims(const Region& region, std::span<const Value>, std::string* why) const override {
    const bool mine = region.kind == RegionKind::Opaque && region.opaque.op == Op::Data &&
                      region.opaque.bodies.size() == 1;
    if (!mine) *why = "it is no part of a program on several devices";
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
    if (!mine) *why = "nothing changes its device";
    return mine;
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    const ValueId from = region.opaque.inputs[0], to = region.opaque.out();
    return std::make_unique<TransferKernel>(values[at(from)], values[at(to)], from, to);
  }
};

// ---- Cutting ----------------------------------------------------------------------------------

struct Part {
  Device device;
  std::vector<Node*> nodes;    // inputs before users
  std::vector<Node*> exports;  // that others read or that were asked for, and assignments
};

class Cutter {
 public:
  Cutter(std::span<const Tensor> roots, std::span<Node* const> leaves,
         std::span<const Device> devices, const OptionsFor& options)
      : roots_(roots),
        leaves_(leaves),
        options_(options),
        order_(topological_order(roots)),
        program_(std::make_shared<Program>()) {
    program_->devices.assign(devices.begin(), devices.end());
    program_->device = devices[0];
  }

  std::shared_ptr<const Program> run() {
    const auto start = std::chrono::steady_clock::now();
    const PlanOptions home = options_(program_->device);
    program_->traits = home.traits;
    program_->traits.is_queued = true;  // its devices' arenas serve one call at a time
    program_->threads = home.threads;
    program_->node_count = static_cast<int>(order_.size());
    find_levels();
    add_leaves();
    add_exports();
    for (int level = 0; level <= last_level_; ++level) {
      for (Node* node : order_)
        if (is_transfer(*node) && level_of(*node) == level) add_transfer(*node);
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

  // Leaves and numbers stand before everything.
  static bool is_computed(const Node& node) { return !node.realised() && node.placed; }
  int level_of(const Node& node) const {
    const auto found = levels_.find(&node);
    return found == levels_.end() ? -1 : found->second;
  }

  int own_level(const Node& node) const {
    int level = level_of(node);
    for (Node* in : value_inputs(node))
      level = std::max(level, level_of(*value_of(in)) + (is_transfer(node) ? 1 : 0));
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
      if (!is_computed(*node) || is_transfer(*node) || node->op == Op::WithUpdates) continue;
      Part& part = parts_[Key(levels_[node], rank_of(node->device))];
      part.device = node->device;
      part.nodes.push_back(node);
    }
  }

  // What computes the value that a node stands for: assignments are carried out as roots.
  static Node* value_of(Node* node) {
    while (!node->realised() && (node->op == Op::WithUpdates || node->op == Op::Assign))
      node = node->input(node->op == Op::Assign ? 1 : 0);
    return node;
  }

  bool is_inside(const Part& part, const Node& node) const {
    return is_computed(node) && !is_transfer(node) && node.device == part.device &&
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
    values_[node] = add_value(*node, Value::Kind::Arena, node->device);
    if (!is_transfer(*node)) part_of(*node).exports.push_back(node);
  }
  Part& part_of(const Node& node) { return parts_.at(Key(level_of(node), rank_of(node.device))); }

  void add_exports() {
    for (Node* node : order_) {
      if (is_transfer(*node)) {
        ask(value_of(node->input(0)));
        ask(node);
      } else if (is_computed(*node) && node->op == Op::Assign) {
        part_of(*node).exports.push_back(node);
      }
      if (!is_computed(*node) || is_transfer(*node) || node->op == Op::WithUpdates) continue;
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

  void add_transfer(Node& node) {
    static const TransferEngine engine;
    const ValueId from = values_.at(value_of(node.input(0))), to = values_.at(&node);
    Region region;
    region.kind = RegionKind::Opaque;
    region.opaque.op = Op::ToDevice;
    region.opaque.attrs = node.attrs;
    region.opaque.inputs = region.reads = {from};
    region.opaque.shapes = {node.shape};
    region.opaque.outs = region.writes = {to};
    region.label = node.label;
    region.title = cat("to ", node.device.str(), " ", node.dtype, node.shape);
    add_step(std::move(region), engine);
  }

  // The part's own graph: what others compute are leaves of it.
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
    for (const std::string& line : body->graph_lines)
      program_->graph_lines.push_back(cat(part.device.str(), "  ", line));
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

  // Each device has a stretch of its own: values side by side, then the workspace of its calls,
  // which follow one another.
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
    if (options.memory_limit > 0 && p.peak_bytes() > options.memory_limit)
      throw MemoryError(cat("this would take ", size_text(p.peak_bytes()), " on ", p.devices.size(),
                            " devices, more than the limit of ", size_text(options.memory_limit),
                            ": use a smaller batch"));
  }

  const std::span<const Tensor> roots_;
  const std::span<Node* const> leaves_;
  const OptionsFor& options_;
  const std::vector<Node*> order_;
  std::shared_ptr<Program> program_;
  std::unordered_map<const Node*, int> levels_;
  int last_level_ = 0;
  std::map<Key, Part> parts_;
  std::unordered_map<const Node*, ValueId> values_;
};

}  // namespace

std::vector<Device> devices_of(std::span<Node* const> order) {
  std::vector<Device> devices;
  for (const Node* node : order)
    if (node->placed && std::find(devices.begin(), devices.end(), node->device) == devices.end())
      devices.push_back(node->device);
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
