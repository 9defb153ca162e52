// Tracing a function, and the pools of arenas, addresses and outputs that its calls use.
#include "run/api/trace.h"

#include <algorithm>
#include <new>

#include <tenon/error.h>

#include <tenon/shapes_only.h>
#include "base/str.h"
#include "base/thread_pool.h"
#include "graph/context.h"
#include "graph/effects.h"
#include "graph/order.h"
#include "plan/steps/placed.h"
#include "run/api/settings.h"
#include "run/counts.h"
#include "run/devices.h"
#include "run/placed.h"
#include "run/result_sizes.h"
#include "run/runner.h"
#include "run/tuning/known_plans.h"

namespace tenon {
namespace {

constexpr std::size_t kIdleBounds = 64;  // sets of addresses kept for later calls
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kLarge = kMiB;            // larger outputs, in bytes, are not kept long
constexpr std::int64_t kIdleOutputs = 8 * kMiB;  // bytes kept for other numbers of runs

// Plans the computation of the roots, for one device or several. With `anew`, does not reuse a plan
// of another size.
void plan(Trace& t, std::vector<Tensor> roots, std::vector<Node*>& leaves, bool anew) {
  NumberedOrder order = numbered_order(roots);
  for (Node* node : order.nodes)
    if (node->realised()) leaves.push_back(node);
  std::vector<Device> devices = devices_of(order.nodes);
  if (devices.empty()) devices = {default_device()};
  const auto options_for = [](Device device) { return plan_options(current_context(), device); };
  if (devices.size() > 1) {
    t.program = plan_placed(roots, leaves, devices, options_for);
    count_planned(*t.program);
    if (!ShapesOnly::is_on()) t.replay = make_placed_replay(t.program);
    return;
  }
  PlanOptions options = options_for(devices[0]);
  KeptWeights kept = keep_rounded(roots, options);
  if (!kept.copies.empty()) order = numbered_order(roots);
  for (const RoundedCopy& copy : kept.copies) leaves.push_back(copy.copy.node());
  t.kept = std::move(kept.weights);
  options.copies = kept.copies;
  if (anew) {
    t.program = plan_program(roots, leaves, options);
    count_planned(*t.program);
  } else {
    t.program = known_or_planned(order, roots, leaves, options, planning_key(current_context()));
  }
  if (!ShapesOnly::is_on()) t.replay = backend_for(devices[0]).make_replay(t.program);
}

Shape row_of(const Shape& shape) {
  Shape row;
  for (int d = 1; d < shape.rank(); ++d) row.push_back(shape[d]);
  return row;
}

// A hash of the variable's dtype, shape and number of conversions. The number is needed, because a
// conversion replaces the buffer: an earlier trace holds the old one, even if the dtype is the same
// again.
std::uint64_t form_of_variable(const void* variable) {
  const Node& node = *static_cast<const Node*>(variable);
  std::uint64_t form = static_cast<std::uint64_t>(node.dtype) |
                       static_cast<std::uint64_t>(node.leaf->conversions) << 8;
  for (const std::int64_t size : node.shape)
    form = (form ^ static_cast<std::uint64_t>(size)) * 0x9E3779B97F4A7C15ull;
  return form;
}

// The function's results for placeholder inputs.
std::vector<Tensor> roots_of(Trace& t, const CompiledFunction::Body& function,
                             const std::vector<Tensor>& placeholders) {
  std::vector<Tensor> outputs;
  {
    RandomTraceGuard guard(&t.random);
    StateTrace state;
    outputs = function(placeholders);
    t.sizes = take_result_sizes();
    for (Node* node : topological_order(outputs))
      if (node->op == Op::Variable) note_state_read(Tensor(node), form_of_variable);
    state.finish(t.state);
  }
  // Outputs that need no computation (an input passed through, a known value) are copied by the
  // program.
  for (Tensor& out : outputs) {
    if (!out.defined()) throw ValueError("a compiled function returned a tensor without a value");
    if (out.node()->realised())
      out = make_node(Op::Cast, out.dtype(), out.shape(), {}, std::span(&out, 1));
    t.shapes.push_back(out.shape());
  }
  return with_effects(outputs, topological_order(outputs)).roots;
}

}  // namespace

Shape stack_of(int runs, const Shape& row) {
  Shape shape{runs};
  for (std::int64_t extent : row) shape.push_back(extent);
  return shape;
}

Input describe(const Tensor& t, int runs) {
  return {runs == 0 ? t.shape() : row_of(t.shape()), t.dtype(), t.device()};
}

std::shared_ptr<Trace> make_trace(const CompiledFunction::Body& function, const Context& context,
                                  std::vector<Input> signature, std::uint64_t key, bool anew) {
  const ContextScope scope(context);
  auto t = std::make_shared<Trace>();
  t->signature = std::move(signature);
  t->key = key;
  std::vector<Tensor> placeholders;
  placeholders.reserve(t->signature.size());
  for (const Input& in : t->signature)
    // Bound to an input at each call.
    placeholders.push_back(without_memory(in.shape, in.dtype, in.device));
  const Device home = t->signature.empty() ? default_device() : t->signature[0].device;
  t->random.leaf = without_memory(Shape{2}, DType::Int64, home);
  // Values that the function creates itself live as long as its results.
  const std::vector<Tensor> roots = roots_of(*t, function, placeholders);
  std::vector<Node*> leaves;
  plan(*t, roots, leaves, anew);
  for (Node* leaf : leaves) {
    int input = -1;
    for (std::size_t k = 0; k < placeholders.size(); ++k)
      if (placeholders[k].node() == leaf) input = static_cast<int>(k);
    t->input_of_slot.push_back(input);
    t->leaves.emplace_back(leaf);
  }
  t->charge(footprint(*t->program));
  return t;
}

// ---- Arenas -----------------------------------------------------------------------------------

std::shared_ptr<Buffer> ArenaPool::take(const Program& program, int at_once) {
  const std::size_t bytes = arena_of_call(program);
  std::shared_ptr<Buffer> too_small;  // released before a larger one is allocated
  {
    std::unique_lock lock(mutex_);
    given_back_.wait(lock, [&] { return in_use_ < at_once; });
    ++in_use_;
    // The smallest arena that is large enough. If none is, the largest is released.
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      if (best == idle_.end()) {
        best = it;
        continue;
      }
      const bool fits = (*it)->bytes() >= bytes, best_fits = (*best)->bytes() >= bytes;
      if (fits != best_fits ? fits : fits == ((*it)->bytes() < (*best)->bytes())) best = it;
    }
    if (best != idle_.end()) {
      too_small = std::move(*best);
      idle_.erase(best);
      charge(-static_cast<std::int64_t>(too_small->bytes()));
      if (too_small->bytes() >= bytes) return too_small;
    }
  }
  too_small.reset();
  try {
    return allocate_arena(program);
  } catch (...) {
    give_back(nullptr);
    throw;
  }
}

void ArenaPool::give_back(std::shared_ptr<Buffer> arena) noexcept {
  {
    const std::lock_guard lock(mutex_);
    --in_use_;
    if (arena != nullptr) try {
        idle_.push_back(arena);
        charge(static_cast<std::int64_t>(arena->bytes()));
      } catch (const std::bad_alloc&) {  // the arena is freed instead
      }
  }
  given_back_.notify_one();
}

void ArenaPool::leave(bool all) {
  if (!all) return;
  std::vector<std::shared_ptr<Buffer>> gone;
  const std::lock_guard lock(mutex_);
  gone.swap(idle_);
  for (const std::shared_ptr<Buffer>& arena : gone)
    charge(-static_cast<std::int64_t>(arena->bytes()));
}

// ---- What a call takes -------------------------------------------------------------------------

Trace::~Trace() {
  for (Outputs::Held* held : outputs_) delete held;
}

void Trace::leave(bool all) {
  if (const std::shared_ptr<Owner> o = owner.lock()) o->drop(*this, all);
}

std::unique_ptr<Bound> Trace::take_bound(int runs) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(bounds_.rbegin(), bounds_.rend(),
                                    [&](const auto& b) { return b->runs == runs; });
    if (found != bounds_.rend()) {
      std::unique_ptr<Bound> bound = std::move(*found);
      bounds_.erase(std::next(found).base());
      return bound;
    }
  }
  std::vector<Node*> nodes;
  nodes.reserve(leaves.size());
  for (const Tensor& leaf : leaves) nodes.push_back(leaf.node());
  return std::make_unique<Bound>(*program, nodes, runs);
}

void Trace::give_back(std::unique_ptr<Bound> bound) noexcept {
  bound->variables.abandon();  // a failed call may have left them in use
  bound->given_use.abandon();
  std::unique_ptr<Bound> last;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  try {
    bounds_.push_back(std::move(bound));
  } catch (const std::bad_alloc&) {  // the addresses are freed instead
    return;
  }
  if (bounds_.size() <= kIdleBounds) return;
  // Addresses for the number of runs that was used least recently.
  last = std::move(bounds_.front());
  bounds_.erase(bounds_.begin());
}

std::int64_t Trace::output_bytes(int runs) const {
  return program->output_bytes * std::max(runs, 1);
}
bool Trace::large(int runs) const { return output_bytes(runs) > kLarge; }

Outputs::Held* Trace::take_outputs(int runs) {
  Outputs::Held* held = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(outputs_.rbegin(), outputs_.rend(), [&](auto* h) { return h->runs == runs; });
    if (found != outputs_.rend()) {
      held = *found;
      outputs_.erase(std::next(found).base());
    }
  }
  if (held == nullptr) {
    held = new Outputs::Held;
    held->runs = runs;
    held->tensors.resize(shapes.size());
    if (!large(runs)) charge(output_bytes(runs));
  }
  held->trace = shared_from_this();
  return held;
}

void Trace::release_variables(Outputs::Held& held) const noexcept {
  for (std::size_t k = 0; k < held.tensors.size(); ++k) {
    Tensor& out = held.tensors[k];
    if (!out.defined() || !program->outputs[k].is_variable) continue;
    Node& node = *out.node();
    if (node.refs.load(std::memory_order_acquire) != 1) {
      out = Tensor();  // the caller still holds it
      continue;
    }
    node.value->mirror(nullptr);
    if (node.leaf != nullptr) node.leaf->host_copy.reset();
  }
}

void Trace::give_back(Outputs::Held* held) noexcept {
  release_variables(*held);
  std::vector<Outputs::Held*> gone;
  bool waits = false;
  try {
    const std::lock_guard lock(mutex_);
    outputs_.push_back(held);
    waits = true;
    gone = superfluous(held->runs);
  } catch (const std::bad_alloc&) {
    if (!waits) return drop(std::span(&held, 1));
  }
  drop(gone);
}

std::vector<Outputs::Held*> Trace::superfluous(int runs) {
  const auto at_once = static_cast<std::size_t>(2 * std::max(4, num_threads_by_default()));
  std::int64_t others = 0;  // bytes
  std::size_t same = 0;
  for (const Outputs::Held* held : outputs_)
    if (held->runs == runs)
      ++same;
    else
      others += output_bytes(held->runs);
  std::vector<Outputs::Held*> gone;
  if (others <= kIdleOutputs && same <= at_once && outputs_.size() <= kIdleBounds) return gone;
  gone.reserve(outputs_.size());                      // nothing may throw while some are taken out
  std::erase_if(outputs_, [&](Outputs::Held* held) {  // those idle longest come first
    const bool is_same = held->runs == runs;
    const bool goes = is_same
                          ? same > at_once
                          : others > kIdleOutputs || outputs_.size() - gone.size() > kIdleBounds;
    if (!goes) return false;
    if (is_same)
      --same;
    else
      others -= output_bytes(held->runs);
    gone.push_back(held);
    return true;
  });
  return gone;
}

void Trace::drop(std::span<Outputs::Held* const> gone) {
  for (Outputs::Held* held : gone) {
    if (!large(held->runs)) charge(-output_bytes(held->runs));
    delete held;
  }
}

void Trace::drop_idle_outputs() {
  std::vector<Outputs::Held*> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto is_large = [&](const Outputs::Held* held) { return large(held->runs); };
    gone.reserve(
        static_cast<std::size_t>(std::count_if(outputs_.begin(), outputs_.end(), is_large)));
    std::erase_if(outputs_, [&](Outputs::Held* held) {
      if (large(held->runs)) gone.push_back(held);
      return large(held->runs);
    });
  }
  drop(gone);
}

}  // namespace tenon
