// Compiled functions: traced once for each combination of input shapes, then replayed with bound
// pointers, by any number of threads. Traces themselves are in trace.h.
#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <unordered_map>

#include <tenon/anomaly.h>
#include <tenon/compute.h>
#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "base/system/log.h"
#include "base/thread_pool.h"
#include "graph/constants_guard.h"
#include "graph/recording.h"
#include "graph/tracing/traced_state.h"
#include "plan/program/tune.h"
#include "plan/steps/calls.h"
#include "run/api/plan_api.h"
#include "run/api/settings.h"
#include "run/api/trace.h"
#include "run/counts.h"
#include "run/devices.h"
#include "run/queue.h"
#include "run/result_sizes.h"
#include "run/runner.h"
#include "run/tuning/tune.h"

namespace tenon {

struct CompiledFunction::Impl final : Trace::Owner, std::enable_shared_from_this<Impl> {
  Body function;
  Guards guards;
  Context context;
  bool constant = builds_constants();  // whether it was compiled under NoGrad
  std::uint64_t planning = 0;          // planning key of the context
  std::shared_ptr<ArenaPool> arenas = std::make_shared<ArenaPool>();
  std::mutex stepping;           // one call that assigns variables at a time
  std::recursive_mutex tracing;  // one trace at a time
  int active_traces = 0;         // traces of the thread that holds `tracing`
  std::mutex mutex;              // protects the members below
  std::unordered_multimap<std::uint64_t, std::shared_ptr<Trace>> traces;
  std::shared_ptr<Trace> latest;

  bool warned = false;  // the warning about many traces of one signature was logged

  Impl(Body f, Guards g)
      : function(std::move(f)),
        guards(std::move(g)),
        context(current_context()),
        planning(planning_key(context)) {}
  void drop(Trace& trace, bool all) override;
  std::uint64_t key_of(const std::vector<Tensor>& inputs, int runs) const;
  std::shared_ptr<Trace> find(std::uint64_t key, const std::vector<Tensor>& inputs, int runs);
  void add(const std::shared_ptr<Trace>& made);
  std::shared_ptr<Trace> find_or_trace(const std::vector<Tensor>& inputs, int runs = 0);
  // A NoGrad of the caller has no effect.
  std::shared_ptr<Trace> trace(std::vector<Input> signature, std::uint64_t key,
                               bool anew = false) const {
    const ConstantsGuard constants(constant);
    std::uint64_t guarded_by = 0;
    const auto guarded = [&](const std::vector<Tensor>& inputs) {
      guarded_by = guards_now();
      return function(inputs);
    };
    std::shared_ptr<Trace> made = make_trace(guarded, context, std::move(signature), key, anew);
    made->guards = guarded_by;
    return made;
  }
  // A hash of the values of the function's own guards. Called without a lock: it runs user code.
  std::uint64_t guards_now() const { return guards ? hash_of_guards(this) : 0; }
  // The guards of an inlined function become part of the state that the caller's trace has read.
  void note_guards() const {
    if (guards) note_state_read(shared_from_this(), hash_of_guards, true);
  }
  static std::uint64_t hash_of_guards(const void* impl) {
    std::uint64_t hash = 0;
    for (const double value : static_cast<const Impl*>(impl)->guards()) {
      hash = (hash ^ std::bit_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    }
    return hash;
  }
  Outputs inlined(const std::vector<Tensor>& inputs);
  Outputs run(const std::vector<Tensor>& inputs, int runs);
  Outputs checked(const std::vector<Tensor>& inputs, int runs);
};

namespace {

double gflop_of(const Region& region) {
  double gflop =
      region.kind == RegionKind::Contraction ? 2e-9 * multiply_adds(region.contraction) : 0;
  for (const Region& part : region.parts) gflop += gflop_of(part);
  return gflop;
}

double time_step(const Program& p, std::size_t s, std::byte* const* values, std::byte* arena) {
  const Step& step = p.steps[s];
  constexpr int kRepeats = 20;
  Backend& backend = backend_for(p.device);
  const ThreadCount count(p.threads);
  const BoundValues bound(step, values);
  return backend.measure(
      *step.kernel, {bound.data(), arena + step.workspace_offset, backend.stream(p.device.index)},
      p.device.index, kRepeats);
}

void require_values(const std::vector<Tensor>& inputs) {
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (!inputs[k].defined())
      throw ValueError(
          cat("a compiled function: inputs[", k, "] has no value: it was never assigned"));
}

constexpr int kMostTraces = 16;  // nested traces of one function
constexpr int kMostStates = 16;  // traces of one signature

// Counts the nested traces of a function that are under way.
class Counted {
 public:
  explicit Counted(int& count) : count_(count) {
    if (count >= kMostTraces)
      throw ValueError(cat("a compiled function calls itself: it is being traced ", kMostTraces,
                           " times within itself; call the function that it was compiled from"));
    ++count_;
  }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int& count_;
};

// A call in progress. Its arena and addresses go back to their pools when the call ends, with or
// without an exception.
class Call {
 public:
  Call(std::shared_ptr<Trace> trace, ArenaPool& arenas, std::mutex& stepping, int runs)
      : trace_(std::move(trace)), arenas_(arenas) {
    const Program& p = *trace_->program;
    if (!p.assigned.empty()) stepping_ = std::unique_lock(stepping);
    arena_ = arenas_.take(p, p.traits.queues_calls ? 1 : std::max(2, num_threads_by_default()));
    bound_ = trace_->take_bound(runs);
  }
  ~Call() {
    if (bound_ != nullptr) trace_->give_back(std::move(bound_));
    if (arena_ != nullptr) arenas_.give_back(std::move(arena_));
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::byte* arena() const { return static_cast<std::byte*>(arena_->data()); }
  Bound& bound() const { return *bound_; }

 private:
  const std::shared_ptr<Trace> trace_;
  ArenaPool& arenas_;
  std::unique_lock<std::mutex> stepping_;
  std::shared_ptr<Buffer> arena_;
  std::unique_ptr<Bound> bound_;
};

void run_on_host(const Program& program, const Bound& b, int times, std::byte* arena) {
  if (times == 1) return run_steps(program, b.values.data(), arena);
  std::vector<std::byte*> values = b.values;
  for (int r = 0; r < times; ++r) {
    run_steps(program, values.data(), arena);
    for (std::size_t k = 0; k < values.size(); ++k)
      if (b.strides[k] != 0) values[k] += b.strides[k];
  }
}

}  // namespace

// ---- Outputs ----------------------------------------------------------------------------------

Outputs::Outputs(Held* held) noexcept : held_(held) {
  held_->users.fetch_add(1, std::memory_order_relaxed);
}
Outputs::Outputs(const Outputs& other) noexcept : held_(other.held_) {
  if (held_ != nullptr) held_->users.fetch_add(1, std::memory_order_relaxed);
}
Outputs::~Outputs() {
  if (held_ == nullptr || held_->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::shared_ptr<Trace> trace = std::move(held_->trace);
  if (trace == nullptr) {  // outputs of an inlined call have no trace
    delete held_;
    return;
  }
  trace->give_back(held_);
}
const std::vector<std::int64_t>& Outputs::sizes() const noexcept {
  return held_->trace != nullptr ? held_->trace->sizes : held_->sizes;
}
std::size_t Outputs::size() const noexcept { return held_->tensors.size(); }
const Tensor& Outputs::operator[](std::size_t k) const& noexcept { return held_->tensors[k]; }
Tensor Outputs::operator[](std::size_t k) const&& noexcept { return held_->tensors[k]; }
const Tensor* Outputs::begin() const noexcept { return held_->tensors.data(); }
const Tensor* Outputs::end() const noexcept { return begin() + size(); }

// ---- Traces of a function ---------------------------------------------------------------------

void CompiledFunction::Impl::drop(Trace& trace, bool all) {
  std::shared_ptr<Trace> last;  // destroyed after the lock is released
  const std::lock_guard lock(mutex);
  if (latest.get() == &trace) {
    if (!all) return;
    latest.reset();
  }
  const auto [begin, end] = traces.equal_range(trace.key);
  for (auto it = begin; it != end; ++it) {
    if (it->second.get() != &trace) continue;
    last = std::move(it->second);
    traces.erase(it);
    return;
  }
}

std::uint64_t CompiledFunction::Impl::key_of(const std::vector<Tensor>& inputs, int runs) const {
  std::uint64_t key = planning ^ current_tune_record();
  const auto mix = [&key](std::uint64_t v) {
    key = (key ^ v) * 0x9E3779B97F4A7C15ull;
    key ^= key >> 29;
  };
  for (const Tensor& t : inputs) {
    const Shape& shape = t.shape();
    const Device device = t.device();
    mix(static_cast<std::uint64_t>(t.dtype()) << 32 |
        static_cast<std::uint64_t>(device.kind) << 16 | static_cast<std::uint16_t>(device.index));
    for (int d = runs == 0 ? 0 : 1; d < shape.rank(); ++d)
      mix(static_cast<std::uint64_t>(shape[d]));
  }
  return key;
}

std::shared_ptr<Trace> CompiledFunction::Impl::find(std::uint64_t key,
                                                    const std::vector<Tensor>& inputs, int runs) {
  const std::uint64_t epoch = state_epoch(), guarded_by = guards_now();
  const auto matches = [&](const Trace& t) {
    if (t.guards != guarded_by || inputs.size() != t.signature.size()) return false;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (!(describe(inputs[k], runs) == t.signature[k])) return false;
    return t.state.hold(epoch);
  };
  std::shared_ptr<Trace> before;
  const std::lock_guard lock(mutex);
  const auto [begin, end] = traces.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    if (!matches(*it->second)) continue;
    it->second->touch();
    if (latest != it->second) {
      before = std::exchange(latest, it->second);
      if (before != nullptr) before->drop_idle_outputs();
    }
    return it->second;
  }
  return nullptr;
}

// Limits the traces of one signature. Otherwise a function whose state differs at each call would
// keep a trace for each call.
void CompiledFunction::Impl::add(const std::shared_ptr<Trace>& made) {
  std::shared_ptr<Trace> oldest;  // destroyed after the lock is released
  bool warn = false;
  {
    const std::lock_guard lock(mutex);
    const auto [begin, end] = traces.equal_range(made->key);
    auto least = end;
    int alike = 0;
    for (auto it = begin; it != end; ++it) {
      if (it->second->signature != made->signature) continue;
      ++alike;
      if (least == end || it->second->used() < least->second->used()) least = it;
    }
    if (alike >= kMostStates) {
      oldest = std::move(least->second);
      traces.erase(least);
      if (latest == oldest) latest.reset();
      warn = !std::exchange(warned, true);
    }
    traces.emplace(made->key, made);
  }
  if (warn)
    log_message(LogLevel::Warning,
                cat("a compiled function was traced for ", kMostStates,
                    " states of its modules or values of its guards and is traced again: pass a "
                    "value that changes often as an input"));
  enter(made);
}

std::shared_ptr<Trace> CompiledFunction::Impl::find_or_trace(const std::vector<Tensor>& inputs,
                                                             int runs) {
  const std::uint64_t key = key_of(inputs, runs);
  if (std::shared_ptr<Trace> found = find(key, inputs, runs)) return found;
  const std::lock_guard one(tracing);
  if (std::shared_ptr<Trace> found = find(key, inputs, runs)) return found;
  const Counted counted(active_traces);
  std::vector<Input> signature;
  signature.reserve(inputs.size());
  for (const Tensor& in : inputs) signature.push_back(describe(in, runs));
  std::shared_ptr<Trace> made = trace(std::move(signature), key);
  made->owner = weak_from_this();
  add(made);
  find(key, inputs, runs);  // marks it as the most recently used one
  return made;
}

// The caller's trace contains the nodes of this function, so gradients go through them.
Outputs CompiledFunction::Impl::inlined(const std::vector<Tensor>& inputs) {
  const std::lock_guard one(tracing);
  const Counted counted(active_traces);
  const ContextScope scope(context);
  const ConstantsGuard constants(constant || builds_constants());
  note_guards();
  auto held = std::make_unique<Outputs::Held>();
  held->tensors = function(inputs);
  held->sizes = take_result_sizes();
  return Outputs(held.release());
}

namespace {

Tensor value_of(const Tensor& computed) {
  return make_data(computed.node()->value, computed.shape(), computed.dtype());
}

std::size_t bytes_of(const Tensor& t) { return at(t.numel()) * item_size(t.dtype()); }

// Row `r` of the first axis; the tensor has a value.
Tensor row_of(const Tensor& t, int r) {
  const std::size_t row = bytes_of(t) / at(t.size(0));
  const Shape shape(t.shape().begin() + 1, t.rank() - 1);
  return make_data(Buffer::window(t.node()->value, at(r) * row, row), shape, t.dtype());
}

Tensor stacked(const std::vector<Tensor>& rows) {
  const std::size_t row = bytes_of(rows[0]);
  const std::shared_ptr<Buffer> all = Buffer::allocate(rows.size() * row, rows[0].device());
  for (std::size_t k = 0; k < rows.size(); ++k)
    Buffer::window(all, k * row, row)->copy_from(*rows[k].node()->value, row);
  return make_data(all, stack_of(static_cast<int>(rows.size()), rows[0].shape()), rows[0].dtype());
}

}  // namespace

// Used while anomalies are detected. The function's graph is evaluated at each call instead of
// replaying its trace. The results are values, like those of a plan.
Outputs CompiledFunction::Impl::checked(const std::vector<Tensor>& inputs, int runs) {
  std::vector<std::vector<Tensor>> results;  // by run
  auto held = std::make_unique<Outputs::Held>();
  for (int r = 0; r < std::max(runs, 1); ++r) {
    std::vector<Tensor> of_run = inputs;
    if (runs > 0)
      for (Tensor& in : of_run) in = row_of(in, in.size(0) == 1 ? 0 : r);
    const Outputs out = inlined(of_run);
    compute(std::vector<Tensor>(out));
    results.emplace_back(out);
    held->sizes = out.sizes();
  }
  for (std::size_t k = 0; k < results[0].size(); ++k) {
    std::vector<Tensor> rows;
    rows.reserve(results.size());
    for (const std::vector<Tensor>& of_run : results) rows.push_back(of_run[k]);
    const bool is_variable = rows[0].node()->op == Op::Assign;
    held->tensors.push_back(runs == 0 || is_variable ? value_of(rows.back()) : stacked(rows));
  }
  return Outputs(held.release());
}

Outputs CompiledFunction::Impl::run(const std::vector<Tensor>& inputs, int runs) {
  for (const Tensor& in : inputs) in.compute();
  if (DetectAnomaly::is_on()) return checked(inputs, runs);
  const std::shared_ptr<Trace> t = find_or_trace(inputs, runs);
  Outputs out(t->take_outputs(runs));
  const Call call(t, *arenas, stepping, runs);
  Bound& b = call.bound();
  bind(*t, inputs, call.arena(), b, out.held().tensors);
  const int times = std::max(runs, 1);
  if (t->replay != nullptr) {
    const std::unique_lock<std::mutex> queue = lock_queue(t->program->device);
    t->replay->run(b.values, b.strides, times, call.arena());
    for (int r = 0; r < times; ++r) count_run();
  } else {
    run_on_host(*t->program, b, times, call.arena());
  }
  after_run(*t, b, out.held().tensors);
  return out;
}

// ---- The public function ----------------------------------------------------------------------

CompiledFunction::CompiledFunction(Body f, Guards guards) {
  if (!f) throw ValueError("compile: the function is empty");
  impl_ = std::make_shared<Impl>(std::move(f), std::move(guards));
  enter(impl_->arenas);
}

namespace {

// Whether the call is part of a function whose graph is being built.
bool is_inside_another() noexcept { return is_tracing() || is_tracing_body() || is_recording(); }

}  // namespace

Outputs CompiledFunction::operator()(const std::vector<Tensor>& inputs) const {
  if (!impl_) throw ValueError("a compiled function was called before it was given a function");
  require_values(inputs);
  if (is_inside_another()) return impl_->inlined(inputs);
  return impl_->run(inputs, 0);
}

Outputs CompiledFunction::run_many(int runs, const std::vector<Tensor>& inputs) const {
  if (!impl_) throw ValueError("a compiled function was called before it was given a function");
  if (runs < 1) throw ValueError(cat("run_many: ", runs, " runs: use 1 or more"));
  require_values(inputs);
  if (is_inside_another())
    throw NotSupported(
        "run_many: it was called inside a function that is being compiled, recorded by a transform "
        "such as vmap(), or inside a loop's body: call the function itself, or use scan()");
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (inputs[k].rank() == 0 || (inputs[k].size(0) != runs && inputs[k].size(0) != 1))
      throw ShapeError(cat("run_many: input ", k, " is ", inputs[k].shape(),
                           "; its first axis must be ", runs,
                           ", the number of runs, or 1 if all runs share it"));
  return impl_->run(inputs, runs);
}

std::vector<StepTime> CompiledFunction::profile(const std::vector<Tensor>& inputs,
                                                int repeats) const {
  if (!impl_) throw ValueError("a compiled function was profiled before it was given a function");
  if (repeats < 1) throw ValueError(cat("profile: ", repeats, " repeats: use 1 or more"));
  require_values(inputs);
  for (const Tensor& in : inputs) in.compute();
  const std::shared_ptr<Trace> t = impl_->find_or_trace(inputs);
  const Program& p = *t->program;
  if (p.devices.size() > 1)
    throw NotSupported(cat("profile: the function runs on ", p.devices.size(),
                           " devices: profile its parts, each on its own device"));
  const Outputs out(t->take_outputs(0));
  const Call call(t, *impl_->arenas, impl_->stepping, 0);
  std::vector<std::vector<double>> ms(p.steps.size());
  constexpr std::chrono::seconds kEnough(5);  // maximum time for timing
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < repeats; ++r) {
    if (r > 0 && std::chrono::steady_clock::now() - start > kEnough) break;
    bind(*t, inputs, call.arena(), call.bound(), out.held().tensors);
    for (std::size_t s = 0; s < p.steps.size(); ++s)
      ms[s].push_back(time_step(p, s, call.bound().values.data(), call.arena()));
    after_run(*t, call.bound(), out.held().tensors);
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

Plan CompiledFunction::plan(const std::vector<Tensor>& inputs) const {
  if (!impl_) throw ValueError("a compiled function was planned before it was given a function");
  require_values(inputs);
  auto impl = std::make_shared<Plan::Impl>();
  const std::shared_ptr<Trace> t = impl_->find_or_trace(inputs);
  impl->program = t->program;
  if (t->program->rebound) {  // a re-bound program lacks some of its texts
    const std::lock_guard one(impl_->tracing);
    impl->program = impl_->trace(t->signature, t->key, true)->program;
  }
  return Plan(std::move(impl));
}

int CompiledFunction::traced() const {
  if (!impl_) return 0;
  const std::lock_guard lock(impl_->mutex);
  return static_cast<int>(impl_->traces.size());
}

CompiledFunction compile(CompiledFunction::Body f, CompiledFunction::Guards guards) {
  return CompiledFunction(std::move(f), std::move(guards));
}

}  // namespace tenon
