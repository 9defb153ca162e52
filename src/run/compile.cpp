// Compiled functions: traced once a combination of input shapes, then replayed with bound pointers.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include <tenon/error.h>
#include <tenon/eval.h>

#include "base/str.h"
#include "cuda/cuda.h"
#include "graph/node.h"
#include "graph/random_trace.h"
#include "graph/shapes_only.h"
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

// What a call is given by the caller, one run's worth.
struct Input {
  Shape shape;
  DType dtype;
  Device device;
  bool operator==(const Input&) const = default;
};

Shape row_of(const Shape& shape) {
  Shape row;
  for (int d = 1; d < shape.rank(); ++d) row.push_back(shape[d]);
  return row;
}

Shape stack_of(int runs, const Shape& row) {
  Shape shape{runs};
  for (std::int64_t extent : row) shape.push_back(extent);
  return shape;
}

// `runs` 0: a plain call; else inputs and outputs have the runs as their first axis.
Input describe(const Tensor& t, int runs) {
  return {runs == 0 ? t.shape() : row_of(t.shape()), t.dtype(), t.device()};
}

// What calls for so many runs bind.
struct Bound {
  std::vector<Tensor> outputs;
  std::vector<std::byte*> values;     // of the first run
  std::vector<std::int64_t> strides;  // bytes to the next run
  std::shared_ptr<Buffer> random;     // states of the generator, kRandomStride apart
  std::vector<std::int64_t> states;   // the same on the host
};
constexpr std::int64_t kRandomStride = 64;

struct Trace {
  std::vector<Input> signature;
  std::uint64_t settings_version = 0;
  std::shared_ptr<const Program> program;
  std::vector<Tensor> leaves;      // by slot
  std::vector<int> input_of_slot;  // the input bound to a slot, or -1
  std::vector<Shape> shapes;       // of the caller's outputs; assignments of copies stand behind
  std::map<int, Bound> bound;      // by number of runs; 0: a plain call
  std::shared_ptr<Buffer> arena;
  std::unique_ptr<cuda::Replay> replay;  // on a card
  std::vector<KeptWeight> kept;          // rounded copies that the program reads
  RandomTrace random;

  bool matches(const std::vector<Tensor>& inputs, int runs, std::uint64_t version) const {
    if (version != settings_version || inputs.size() != signature.size()) return false;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (!(describe(inputs[k], runs) == signature[k])) return false;
    return true;
  }
};

}  // namespace

struct CompiledFunction::Impl {
  Body function;
  std::vector<std::unique_ptr<Trace>> traces;

  Trace& find_or_trace(const std::vector<Tensor>& inputs, int runs = 0);
  std::unique_ptr<Trace> trace(std::vector<Input> signature, std::uint64_t version);
  const std::vector<Tensor>& run(const std::vector<Tensor>& inputs, int runs);
};

Trace& CompiledFunction::Impl::find_or_trace(const std::vector<Tensor>& inputs, int runs) {
  const std::uint64_t version = settings_version();
  for (auto& t : traces)
    if (t->matches(inputs, runs, version)) return *t;
  std::vector<Input> signature;
  signature.reserve(inputs.size());
  for (const Tensor& in : inputs) signature.push_back(describe(in, runs));
  traces.push_back(trace(std::move(signature), version));
  return *traces.back();
}

std::unique_ptr<Trace> CompiledFunction::Impl::trace(std::vector<Input> signature,
                                                     std::uint64_t version) {
  auto t = std::make_unique<Trace>();
  t->settings_version = version;
  t->signature = std::move(signature);
  std::vector<Tensor> stand_ins;
  stand_ins.reserve(t->signature.size());
  for (const Input& in : t->signature)
    stand_ins.push_back(without_memory(in.shape, in.dtype, in.device));  // bound at each call
  const Device home = t->signature.empty() ? default_device() : t->signature[0].device;
  t->random.leaf = ShapesOnly::is_on() ? without_memory(Shape{2}, DType::Int64, home)
                                       : make_data(Buffer::allocate(2 * sizeof(std::int64_t), home),
                                                   Shape{2}, DType::Int64);
  std::vector<Tensor> outputs;
  {
    RandomTraceGuard guard(&t->random);
    outputs = function(stand_ins);
  }
  // Outputs that are no computation (an input passed through, a value known already) are copied by
  // the program.
  std::vector<Tensor> roots;
  for (Tensor& out : outputs) {
    if (!out.defined()) throw ValueError("a compiled function returned a tensor without a value");
    if (out.node()->realised())
      out = make_node(Op::Cast, out.dtype(), out.shape(), {}, std::span(&out, 1));
    t->shapes.push_back(out.shape());
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
  if (ShapesOnly::is_on()) return t;
  t->arena = allocate_arena(p);
  if (device.kind == Device::Kind::Cuda) t->replay = cuda::make_replay(t->program);
  return t;
}

namespace {

Bound& bound_for(Trace& t, int runs) {
  const auto [found, fresh] = t.bound.try_emplace(runs);
  Bound& b = found->second;
  if (!fresh) return b;
  const Program& p = *t.program;
  b.outputs.resize(t.shapes.size());
  b.values.assign(p.values.size(), nullptr);
  b.strides.assign(p.values.size(), 0);
  bind_arena(p, static_cast<std::byte*>(t.arena->data()), b.values);
  return b;
}

// Lets go of the other results of one value, of the same shape or not, before the first is looked
// at; whether the caller has kept one of them.
bool release_same(const Program& p, std::vector<Tensor>& outputs, std::size_t first) {
  bool kept = false;
  for (std::size_t l = first + 1; l < outputs.size(); ++l) {
    if (!outputs[l].defined() || p.outputs[l].is_variable ||
        p.outputs[l].value != p.outputs[first].value)
      continue;
    const bool shared = outputs[first].defined() && outputs[l].node() == outputs[first].node();
    kept |= !shared && outputs[l].node()->refs.load(std::memory_order_acquire) != 1;
    outputs[l] = Tensor();
  }
  return kept;
}

// Outputs are reused while only the trace holds them; one that the caller kept is left alone and
// replaced. Results that are one value but for their shape share its memory.
void bind_outputs(Trace& t, Bound& b, int runs) {
  const Program& p = *t.program;
  for (std::size_t k = 0; k < b.outputs.size(); ++k) {
    const OutputSlot& slot = p.outputs[k];
    Tensor& out = b.outputs[k];
    if (slot.is_variable) {
      const int leaf = p.values[static_cast<std::size_t>(slot.value)].slot;
      if (!out.defined()) out = t.leaves[static_cast<std::size_t>(leaf)];
      continue;
    }
    const Shape shape = runs == 0 ? t.shapes[k] : stack_of(runs, t.shapes[k]);
    std::size_t same = 0;
    while (p.outputs[same].is_variable || p.outputs[same].value != slot.value) ++same;
    if (same != k) {
      const Tensor& first = b.outputs[same];
      out = first.shape() == shape ? first : make_data(first.node()->value, shape, slot.dtype);
      continue;
    }
    const std::int64_t bytes = p.values[static_cast<std::size_t>(slot.value)].bytes;
    const bool kept = release_same(p, b.outputs, k);
    if (kept || !out.defined() || out.node()->refs.load(std::memory_order_acquire) != 1)
      out =
          make_data(Buffer::allocate(static_cast<std::size_t>(bytes * std::max(runs, 1)), p.device),
                    shape, slot.dtype);
    out.node()->host_copy.reset();  // of the call before
    b.values[static_cast<std::size_t>(slot.value)] =
        static_cast<std::byte*>(out.node()->value->data());
    b.strides[static_cast<std::size_t>(slot.value)] = runs > 1 ? bytes : 0;
  }
}

// Every run draws from where the one before has left the generator.
void feed_random(Trace& t, Bound& b, ValueId value, int runs) {
  const RandomTrace& random = t.random;
  if (runs == 0) {
    std::int64_t state[2];
    random.feed(random.generator, random.draws, state);
    random.leaf.node()->value->write(state, sizeof state);
    b.values[static_cast<std::size_t>(value)] = leaf_memory(*random.leaf.node());
    return;
  }
  constexpr std::size_t kWords = kRandomStride / sizeof(std::int64_t);
  if (b.random == nullptr) {
    b.states.assign(kWords * static_cast<std::size_t>(runs), 0);
    b.random = Buffer::allocate(b.states.size() * sizeof(std::int64_t), t.program->device);
  }
  for (std::size_t r = 0; r < static_cast<std::size_t>(runs); ++r)
    random.feed(random.generator, random.draws, &b.states[r * kWords]);
  b.random->write(b.states.data(), b.states.size() * sizeof(std::int64_t));
  b.values[static_cast<std::size_t>(value)] = static_cast<std::byte*>(b.random->data());
  b.strides[static_cast<std::size_t>(value)] = runs > 1 ? kRandomStride : 0;
}

// Draws that no output needs are no input of the program; they count all the same.
void skip_random(const RandomTrace& random, int runs) {
  std::int64_t unread[2];
  for (int r = 0; r < std::max(runs, 1); ++r) random.feed(random.generator, random.draws, unread);
}

Bound& bind(Trace& t, const std::vector<Tensor>& inputs, int runs) {
  const Program& p = *t.program;
  Bound& b = bound_for(t, runs);
  refresh(t.kept);
  bool fed = t.random.draws == 0;
  for (std::size_t s = 0; s < p.slots.size(); ++s) {
    if (p.slots[s] == kNoValue) continue;
    const auto value = static_cast<std::size_t>(p.slots[s]);
    const int input = t.input_of_slot[s];
    if (input < 0 && t.leaves[s].node() == t.random.leaf.node()) {
      feed_random(t, b, p.slots[s], runs);
      fed = true;
      continue;
    }
    const Tensor& source =
        input >= 0 ? inputs[static_cast<std::size_t>(input)].eval() : t.leaves[s];
    b.values[value] = leaf_memory(*source.node());
    b.strides[value] = input >= 0 && runs > 1 && source.size(0) == runs ? p.values[value].bytes : 0;
  }
  if (!fed) skip_random(t.random, runs);
  bind_outputs(t, b, runs);
  return b;
}

void after_run(Trace& t) {
  for (ValueId id : t.program->assigned) {
    const int slot = t.program->values[static_cast<std::size_t>(id)].slot;
    mark_assigned(*t.leaves[static_cast<std::size_t>(slot)].node());
  }
  mark_fresh(t.kept);
}

double gflop_of(const Region& region) {
  double gflop =
      region.kind == RegionKind::Contraction ? 2e-9 * multiply_adds(region.contraction) : 0;
  for (const Region& part : region.parts) gflop += gflop_of(part);
  return gflop;
}

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

CompiledFunction::CompiledFunction(Body f) : impl_(std::make_shared<Impl>()) {
  if (!f) throw ValueError("compile: it was given an empty function");
  impl_->function = std::move(f);
}

const std::vector<Tensor>& CompiledFunction::Impl::run(const std::vector<Tensor>& inputs,
                                                       int runs) {
  Trace& t = find_or_trace(inputs, runs);
  Bound& b = bind(t, inputs, runs);
  auto* arena = static_cast<std::byte*>(t.arena->data());
  const int times = std::max(runs, 1);
  if (t.replay != nullptr) {
    t.replay->run(b.values, b.strides, times, arena);
    for (int r = 0; r < times; ++r) count_run();
  } else if (times == 1) {
    run_steps(*t.program, b.values.data(), arena);
  } else {
    std::vector<std::byte*> values = b.values;
    for (int r = 0; r < times; ++r) {
      run_steps(*t.program, values.data(), arena);
      for (std::size_t k = 0; k < values.size(); ++k)
        if (b.strides[k] != 0) values[k] += b.strides[k];
    }
  }
  after_run(t);
  return b.outputs;
}

const std::vector<Tensor>& CompiledFunction::operator()(const std::vector<Tensor>& inputs) {
  if (!impl_) throw ValueError("a compiled function was called before it was given a function");
  return impl_->run(inputs, 0);
}

const std::vector<Tensor>& CompiledFunction::run_many(int runs, const std::vector<Tensor>& inputs) {
  if (!impl_) throw ValueError("a compiled function was called before it was given a function");
  if (runs < 1) throw ValueError(cat("run_many: ", runs, " runs: use 1 or more"));
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (inputs[k].rank() == 0 || (inputs[k].size(0) != runs && inputs[k].size(0) != 1))
      throw ShapeError(cat("run_many: input ", k, " is ", inputs[k].shape(),
                           "; its first axis must be ", runs,
                           ", the number of runs, or 1 for one that they share"));
  return impl_->run(inputs, runs);
}

std::vector<StepTime> CompiledFunction::profile(const std::vector<Tensor>& inputs, int repeats) {
  if (!impl_) throw ValueError("a compiled function was profiled before it was given a function");
  if (repeats < 1) throw ValueError(cat("profile: ", repeats, " repeats: use 1 or more"));
  Trace& t = impl_->find_or_trace(inputs);
  const Program& p = *t.program;
  std::vector<std::vector<double>> ms(p.steps.size());
  for (int r = 0; r < repeats; ++r) {
    const Bound& b = bind(t, inputs, 0);
    auto* arena = static_cast<std::byte*>(t.arena->data());
    for (std::size_t s = 0; s < p.steps.size(); ++s)
      ms[s].push_back(time_step(p, s, b.values.data(), arena));
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
  if (!impl_) throw ValueError("a compiled function was planned before it was given a function");
  auto impl = std::make_shared<Plan::Impl>();
  impl->program = impl_->find_or_trace(inputs).program;
  return Plan(std::move(impl));
}

int CompiledFunction::traced() const { return impl_ ? static_cast<int>(impl_->traces.size()) : 0; }

CompiledFunction compile(CompiledFunction::Body f) { return CompiledFunction(std::move(f)); }

}  // namespace tenon
