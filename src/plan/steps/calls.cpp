// Sharing kernels between steps that compute the same, and running the kernels of a program. The
// types are described in calls.h. A kernel itself is made by an engine (engine.h).
#include "plan/steps/calls.h"

#include <utility>

#include "base/index.h"
#include "plan/steps/engine_choice.h"

namespace tenon {
namespace {

constexpr std::size_t kFewSteps = 64;

}  // namespace

SharedKernels::SharedKernels(std::span<const Value> values, const PlanOptions& options)
    : values_(values), options_(options) {}

bool SharedKernels::serves(const Program& program, const PlanOptions& options) {
  return !options.traits.is_queued && options.tuning == nullptr &&
         program.steps.size() >= kFewSteps;
}

bool SharedKernels::choose(Step& step) {
  if (!step.region.opaque.bodies.empty()) return false;
  std::vector<ValueId> bound = numbering_.named(step.region);
  if (bound.size() > kMostBound) return false;
  const auto [place, fresh] = made_.try_emplace(numbering_.key(step.region, bound, values_));
  Made& made = place->second;
  if (fresh) {
    Step shared;
    shared.region = numbering_.numbered(step.region, bound);
    std::vector<Value> values;
    values.reserve(bound.size());
    for (const ValueId id : bound) values.push_back(without_name(values_[at(id)]));
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
      std::byte* const place = values[ids[call.first + v]];
      table[k & 1][v] = place;
      __builtin_prefetch(place);  // prefetch the next call's data while the previous call works
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
