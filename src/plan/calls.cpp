// Telling steps that compute the same, and calling their kernels.
#include "plan/calls.h"

#include <utility>

#include "base/index.h"
#include "plan/program_sizes.h"
#include "plan/schedule.h"

namespace tenon {
namespace {

constexpr std::size_t kFewSteps = 64;

struct CollectWords {
  std::vector<std::uint64_t>& words;
  void fixed(std::uint64_t word) { words.push_back(word); }
  void size(std::int64_t size) { words.push_back(static_cast<std::uint64_t>(size)); }
};

/// Calls f(id) for every name of a value, which f may change.
template <class F>
void each_value(View& view, F&& f) {
  f(view.value);
}
template <class F>
void each_value(MapProgram& map, F&& f) {
  for (MapInstr& instr : map.instrs) f(instr.view.value);
  for (MapStore& store : map.stores) f(store.view.value);
  for (MapReduce& reduce : map.reduces) f(reduce.value);
}
template <class F>
void each_value(Region& region, F&& f) {
  for (std::vector<ValueId>* list : {&region.reads, &region.writes, &region.local})
    for (ValueId& id : *list) f(id);
  each_value(region.map, f);
  each_value(region.prologue_a, f);
  each_value(region.prologue_b, f);
  f(region.contraction.a.value);
  f(region.contraction.b.value);
  f(region.contraction.out);
  for (std::vector<ValueId>* list : {&region.opaque.inputs, &region.opaque.outs})
    for (ValueId& id : *list) f(id);
  for (std::vector<View>* list : {&region.opaque.views, &region.opaque.out_views})
    for (View& view : *list) f(view.value);
  for (Region& part : region.parts) each_value(part, f);
}

/// Labels are for people, but where a kernel names the layer of an index that is outside.
void drop_labels(Region& region) {
  if (region.kind != RegionKind::Opaque) region.label = 0;
  for (Region& part : region.parts) drop_labels(part);
}

}  // namespace

SharedKernels::SharedKernels(std::span<const Value> values, const PlanOptions& options)
    : values_(values), options_(options), number_(values.size(), kNoValue) {}

bool SharedKernels::serves(const Program& program, const PlanOptions& options) {
  return !options.traits.is_queued && options.tuning == nullptr &&
         program.steps.size() >= kFewSteps;
}

std::size_t SharedKernels::Hash::operator()(const Key& key) const {
  std::uint64_t hash = key.size();
  for (const std::uint64_t word : key) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

Region SharedKernels::numbered(const Region& region, std::vector<ValueId>& bound) {
  Region own = region;
  each_value(own, [&](ValueId& id) {
    if (id == kNoValue) return;
    ValueId& number = number_[at(id)];
    if (number == kNoValue) {
      number = static_cast<ValueId>(bound.size());
      bound.push_back(id);
    }
    id = number;
  });
  for (const ValueId id : bound) number_[at(id)] = kNoValue;
  drop_labels(own);
  return own;
}

SharedKernels::Key SharedKernels::key_of(const Region& region,
                                         const std::vector<Value>& values) const {
  Key key;
  CollectWords collect{key};
  ProgramSizes<CollectWords> sizes(collect);
  sizes.region(region);
  for (const Value& value : values) sizes.value(value);
  return key;
}

bool SharedKernels::choose(Step& step) {
  if (!step.region.opaque.bodies.empty()) return false;
  std::vector<ValueId> bound;
  Step shared;
  shared.region = numbered(step.region, bound);
  if (bound.size() > kMostBound) return false;
  std::vector<Value> values;
  values.reserve(bound.size());
  for (const ValueId id : bound) {
    values.push_back(values_[at(id)]);
    values.back().label = 0;
    values.back().slot = -1;
  }
  const auto [place, fresh] = made_.try_emplace(key_of(shared.region, values));
  Made& made = place->second;
  if (fresh) {
    choose_by_estimate(shared, values, options_);
    made = {shared.engine, std::move(shared.kernel), std::move(shared.passed_over)};
  }
  step.engine = made.engine;
  step.kernel = made.kernel;
  step.passed_over = made.passed_over;
  step.bound = std::move(bound);
  return true;
}

void list_calls(Program& program) {
  program.calls.clear();
  program.calls.reserve(program.steps.size());
  program.call_values.clear();
  for (const Step& step : program.steps) {
    program.calls.push_back({step.kernel.get(), step.workspace_offset,
                             static_cast<std::uint32_t>(program.call_values.size()),
                             static_cast<std::uint32_t>(step.bound.size())});
    program.call_values.insert(program.call_values.end(), step.bound.begin(), step.bound.end());
  }
}

void run_calls(const Program& program, std::byte* const* values, std::byte* arena, void* stream) {
  const ValueId* const ids = program.call_values.data();
  const std::size_t calls = program.calls.size();
  std::byte* table[2][kMostBound];
  const auto bind = [&](std::size_t k) {
    const KernelCall& call = program.calls[k];
    for (std::uint32_t v = 0; v < call.bound; ++v) {
      std::byte* const at = values[ids[call.first + v]];
      table[k & 1][v] = at;
      __builtin_prefetch(at);  // the call before is at work while memory brings it
    }
  };
  if (calls > 0) bind(0);
  for (std::size_t k = 0; k < calls; ++k) {
    if (k + 1 < calls) bind(k + 1);
    const KernelCall& call = program.calls[k];
    call.kernel->run(
        {call.bound == 0 ? values : table[k & 1], arena + call.workspace_offset, stream});
  }
}

BoundValues::BoundValues(const Step& step, std::byte* const* values) : all_(values) {
  own_.reserve(step.bound.size());
  for (const ValueId id : step.bound) own_.push_back(values[id]);
}

}  // namespace tenon
