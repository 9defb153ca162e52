// Compiled functions: traced once a combination of input shapes, then replayed with bound pointers.
#include <algorithm>
#include <chrono>

#include <tenon/error.h>
#include <tenon/eval.h>

#include "base/str.h"
#include "cuda/cuda.h"
#include "graph/node.h"
#include "graph/random_trace.h"
#include "plan/tune.h"
#include "run/plan_api.h"
#include "run/rounded.h"
#include "run/runner.h"
#include "run/settings.h"

namespace tenon {
namespace {

std::string what_is(const Node& leaf) {
  const std::string& label = label_text(leaf.label);
  return cat(leaf.dtype, leaf.shape, label.empty() ? "" : cat(" (", label, ")"));
}

// A leaf that only has a shape; its memory is bound at each call.
Tensor stand_in(const Tensor& input) {
  return make_data(Buffer::allocate(0, input.device()), input.shape(), input.dtype());
}

// Where the function runs: where what it reads lives.
Device device_of(const std::vector<Node*>& leaves) {
  const Device device = leaves.empty() ? default_device() : leaves[0]->device;
  for (const Node* leaf : leaves)
    if (leaf->device != device)
      throw DeviceError(cat("a compiled function reads ", what_is(*leaves[0]), " on ", device.str(),
                            " and ", what_is(*leaf), " on ", leaf->device.str(),
                            ": move one of them with to()"));
  return device;
}

struct Trace {
  struct Input {
    Shape shape;
    DType dtype;
    Device device;
    bool operator==(const Input&) const = default;
  };
  std::vector<Input> signature;
  std::uint64_t settings_version = 0;
  std::shared_ptr<const Program> program;
  std::vector<Tensor> leaves;      // by slot
  std::vector<int> input_of_slot;  // the input bound to a slot, or -1
  std::vector<Tensor> outputs;
  std::vector<std::byte*> values;
  std::shared_ptr<Buffer> arena;
  std::unique_ptr<cuda::Replay> replay;  // on a card
  std::vector<KeptWeight> kept;          // rounded copies that the program reads
  RandomTrace random;

  static Input describe(const Tensor& t) { return {t.shape(), t.dtype(), t.device()}; }
  bool matches(const std::vector<Tensor>& inputs, std::uint64_t version) const {
    if (version != settings_version || inputs.size() != signature.size()) return false;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (!(describe(inputs[k]) == signature[k])) return false;
    return true;
  }
};

}  // namespace

struct CompiledFunction::Impl {
  Body function;
  std::vector<std::unique_ptr<Trace>> traces;

  Trace& find_or_trace(const std::vector<Tensor>& inputs);
  std::unique_ptr<Trace> trace(const std::vector<Tensor>& inputs, std::uint64_t version);
};

Trace& CompiledFunction::Impl::find_or_trace(const std::vector<Tensor>& inputs) {
  const std::uint64_t version = settings_version();
  for (auto& t : traces)
    if (t->matches(inputs, version)) return *t;
  traces.push_back(trace(inputs, version));
  return *traces.back();
}

std::unique_ptr<Trace> CompiledFunction::Impl::trace(const std::vector<Tensor>& inputs,
                                                     std::uint64_t version) {
  auto t = std::make_unique<Trace>();
  t->settings_version = version;
  std::vector<Tensor> stand_ins;
  for (const Tensor& in : inputs) {
    t->signature.push_back(Trace::describe(in));
    stand_ins.push_back(stand_in(in));
  }
  const Device home = inputs.empty() ? default_device() : inputs[0].device();
  t->random.leaf =
      make_data(Buffer::allocate(2 * sizeof(std::int64_t), home), Shape{2}, DType::Int64);
  {
    RandomTraceGuard guard(&t->random);
    t->outputs = function(stand_ins);
  }
  // Outputs that are no computation (an input passed through, a value known already) are copied by
  // the program.
  std::vector<Tensor> roots;
  for (Tensor& out : t->outputs) {
    if (!out.defined()) throw ValueError("a compiled function returned a tensor without a value");
    if (out.node()->realised())
      out = make_node(Op::Cast, out.dtype(), out.shape(), {}, std::span(&out, 1));
    roots.push_back(out);
  }
  std::vector<Node*> leaves;
  for (Node* node : topological_order(roots))
    if (node->realised()) leaves.push_back(node);
  const Device device = device_of(leaves);
  PlanOptions options = current_settings(device).options;
  KeptWeights kept = keep_rounded(roots, options);
  for (const RoundedCopy& copy : kept.copies) leaves.push_back(copy.copy.node());
  t->kept = std::move(kept.weights);
  options.copies = kept.copies;
  t->program = plan_program(roots, leaves, options);
  count_planned(*t->program);
  const Program& p = *t->program;
  for (Node* leaf : leaves) {
    int input = -1;
    for (std::size_t k = 0; k < stand_ins.size(); ++k)
      if (stand_ins[k].node() == leaf) input = static_cast<int>(k);
    t->input_of_slot.push_back(input);
    t->leaves.emplace_back(leaf);
  }
  t->arena = Buffer::allocate(static_cast<std::size_t>(p.arena_bytes), device);
  if (device.kind == Device::Kind::Cuda) t->replay = cuda::make_replay(t->program);
  t->values.assign(p.values.size(), nullptr);
  bind_arena(p, static_cast<std::byte*>(t->arena->data()), t->values);
  for (Tensor& out : t->outputs) out = Tensor();
  return t;
}

namespace {

// Outputs are reused while only the trace holds them; one that the caller kept is left alone and
// replaced.
void bind_outputs(Trace& t) {
  const Program& p = *t.program;
  // Behind those of the caller stand the assignments of rounded copies.
  for (std::size_t k = 0; k < t.outputs.size(); ++k) {
    const OutputSlot& slot = p.outputs[k];
    Tensor& out = t.outputs[k];
    if (slot.is_variable) {
      const int leaf = p.values[static_cast<std::size_t>(slot.value)].slot;
      if (!out.defined()) out = t.leaves[static_cast<std::size_t>(leaf)];
      continue;
    }
    std::size_t same = k;
    for (std::size_t e = 0; e < k; ++e)
      if (!p.outputs[e].is_variable && p.outputs[e].value == slot.value) same = e;
    if (same != k) {
      out = t.outputs[same];
      continue;
    }
    // An output returned twice would count as kept by the caller: only its first place holds a
    // share while we look.
    for (std::size_t l = k + 1; l < t.outputs.size(); ++l)
      if (!p.outputs[l].is_variable && p.outputs[l].value == slot.value) t.outputs[l] = Tensor();
    if (!out.defined() || out.node()->refs.load(std::memory_order_acquire) != 1)
      out = make_data(Buffer::allocate(static_cast<std::size_t>(
                                           p.values[static_cast<std::size_t>(slot.value)].bytes),
                                       p.device),
                      slot.shape, slot.dtype);
    out.node()->host_copy.reset();  // of the call before
    t.values[static_cast<std::size_t>(slot.value)] =
        static_cast<std::byte*>(out.node()->value->data());
  }
}

void feed_random(Trace& t) {
  if (t.random.draws == 0) return;
  std::int64_t state[2];
  t.random.feed(t.random.generator, t.random.draws, state);
  t.random.leaf.node()->value->write(state, sizeof state);
}

}  // namespace

CompiledFunction::CompiledFunction(Body f) : impl_(share<Impl>()) {
  impl_->function = std::move(f);
}

namespace {

void bind(Trace& t, const std::vector<Tensor>& inputs) {
  const Program& p = *t.program;
  refresh(t.kept);
  for (std::size_t s = 0; s < p.slots.size(); ++s) {
    if (p.slots[s] == kNoValue) continue;
    const int input = t.input_of_slot[s];
    const Tensor& source =
        input >= 0 ? inputs[static_cast<std::size_t>(input)].eval() : t.leaves[s];
    t.values[static_cast<std::size_t>(p.slots[s])] = leaf_memory(*source.node());
  }
  bind_outputs(t);
  feed_random(t);
}

void after_run(Trace& t) {
  for (ValueId id : t.program->assigned) {
    const int slot = t.program->values[static_cast<std::size_t>(id)].slot;
    mark_assigned(*t.leaves[static_cast<std::size_t>(slot)].node());
  }
  mark_fresh(t.kept);
}

double gflop_of(const Region& region) {
  return region.kind == RegionKind::Contraction ? 2e-9 * multiply_adds(region.contraction) : 0;
}

}  // namespace

namespace {

double time_step(const Program& p, std::size_t s, std::byte* const* values, std::byte* arena) {
  const Step& step = p.steps[s];
  Binding binding{values, arena + step.workspace_offset, nullptr};
  if (p.device.kind == Device::Kind::Cuda) {
    binding.stream = cuda::stream(p.device.index);
    return cuda::measure(*step.kernel, binding, p.device.index, 20);
  }
  const auto start = std::chrono::steady_clock::now();
  step.kernel->run(binding);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

const std::vector<Tensor>& CompiledFunction::operator()(const std::vector<Tensor>& inputs) {
  if (!impl_) throw ValueError("a compiled function was called before it was given a function");
  Trace& t = impl_->find_or_trace(inputs);
  bind(t, inputs);
  auto* arena = static_cast<std::byte*>(t.arena->data());
  if (t.replay != nullptr) {
    t.replay->run(t.values.data(), arena);
    count_run();
  } else {
    run_steps(*t.program, t.values.data(), arena);
  }
  after_run(t);
  return t.outputs;
}

std::vector<StepTime> CompiledFunction::profile(const std::vector<Tensor>& inputs, int repeats) {
  if (!impl_) throw ValueError("a compiled function was profiled before it was given a function");
  if (repeats < 1) throw ValueError(cat("profile: ", repeats, " repeats: use 1 or more"));
  Trace& t = impl_->find_or_trace(inputs);
  const Program& p = *t.program;
  std::vector<std::vector<double>> ms(p.steps.size());
  for (int r = 0; r < repeats; ++r) {
    bind(t, inputs);
    auto* arena = static_cast<std::byte*>(t.arena->data());
    for (std::size_t s = 0; s < p.steps.size(); ++s)
      ms[s].push_back(time_step(p, s, t.values.data(), arena));
    after_run(t);
  }
  std::vector<StepTime> times;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    std::sort(ms[s].begin(), ms[s].end());
    const Region& region = p.steps[s].region;
    times.push_back({region.title, label_text(region.label), p.steps[s].engine->name(),
                     ms[s][ms[s].size() / 2], ms[s][0], gflop_of(region)});
  }
  return times;
}

Plan CompiledFunction::plan(const std::vector<Tensor>& inputs) {
  auto impl = share<Plan::Impl>();
  impl->program = impl_->find_or_trace(inputs).program;
  return Plan(std::move(impl));
}

int CompiledFunction::traced() const { return impl_ ? static_cast<int>(impl_->traces.size()) : 0; }

CompiledFunction compile(CompiledFunction::Body f) { return CompiledFunction(std::move(f)); }

}  // namespace tenon
