// Schedules by name, with the length of the warm-up. Programs add schedules of their own.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include <tenon/error.h>
#include <tenon/schedules.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/option_ranges.h"
#include "base/system/registrations.h"
#include "optim/warmup.h"

namespace tenon::optim {
namespace {

std::int64_t to_steps(double epochs, std::int64_t steps_per_epoch) {
  return std::llround(epochs * static_cast<double>(steps_per_epoch));
}

// Number of warm-up steps, and of the steps after them.
struct Span {
  std::int64_t rise, total;
};

using MakeSchedule = std::unique_ptr<Schedule> (*)(const ScheduleOptions& o, const Span& span);
constexpr std::pair<const char*, MakeSchedule> kSchedules[] = {
    {"constant", [](const ScheduleOptions&, const Span&) { return constant(); }},
    {"step",
     [](const ScheduleOptions& o, const Span&) {
       return step(std::max<std::int64_t>(1, to_steps(o.every, o.steps_per_epoch)), o.gamma);
     }},
    {"multistep",
     [](const ScheduleOptions& o, const Span&) {
       std::vector<std::int64_t> at;
       for (const double epoch : o.milestones) at.push_back(to_steps(epoch, o.steps_per_epoch));
       return o.factors.empty() ? multistep(std::move(at), o.gamma)
                                : multistep(std::move(at), o.factors);
     }},
    {"exponential",
     [](const ScheduleOptions& o, const Span&) {
       return exponential(o.gamma, std::max<std::int64_t>(1, to_steps(o.every, o.steps_per_epoch)));
     }},
    {"cosine",
     [](const ScheduleOptions& o, const Span& span) { return cosine(span.total, o.minimum); }},
    {"linear",
     [](const ScheduleOptions& o, const Span& span) { return linear(span.total, o.minimum); }},
    {"polynomial", [](const ScheduleOptions& o,
                      const Span& span) { return polynomial(span.total, o.power, o.minimum); }},
    {"cosine_restarts",
     [](const ScheduleOptions& o, const Span&) {
       return cosine_restarts(std::max<std::int64_t>(1, to_steps(o.every, o.steps_per_epoch)),
                              o.multiply, o.minimum);
     }},
    {"inverse_sqrt",
     [](const ScheduleOptions&, const Span& span) { return inverse_sqrt(span.rise + 1); }},
    {"plateau", [](const ScheduleOptions& o,
                   const Span&) { return plateau(o.gamma, o.patience, 1e-4, o.minimum); }},
    {"one_cycle", [](const ScheduleOptions&, const Span& span) { return one_cycle(span.total); }},
};

constexpr double kMostEpochs = 1e9;
constexpr Range kGammaRange = finite_above(0), kMinimumRange = from_to(0, 1);
constexpr OptionRange<ScheduleOptions> kOptionRanges[] = {
    {"total_steps", &ScheduleOptions::total_steps, at_least(0)},
    {"steps_per_epoch", &ScheduleOptions::steps_per_epoch, at_least(1)},
    {"warmup", &ScheduleOptions::warmup, from_to(0, kMostEpochs)},
    {"every", &ScheduleOptions::every, above_to(0, kMostEpochs)},
    {"gamma", &ScheduleOptions::gamma, kGammaRange},
    {"minimum", &ScheduleOptions::minimum, kMinimumRange},
    {"power", &ScheduleOptions::power, finite_above(0)},
    {"multiply", &ScheduleOptions::multiply, at_least(1)},
    {"patience", &ScheduleOptions::patience, at_least(0)},
};

// Schedules that a program has registered; entries are never removed. Never destroyed: threads may
// still ask while the program ends.
struct Registry {
  std::mutex mutex;
  std::map<std::string, ScheduleMaker> makers;
};
Registry& registry() {
  static auto& registry = *new Registry;
  return registry;
}

std::unique_ptr<Schedule> make_schedule(const std::string& name, const ScheduleOptions& options,
                                        const Span& span) {
  for (const auto& [known, make] : kSchedules)
    if (name == known) return make(options, span);
  ScheduleMaker make;
  {
    const std::lock_guard lock(registry().mutex);
    const auto found = registry().makers.find(name);
    if (found == registry().makers.end()) return nullptr;
    make = found->second;
  }
  ScheduleOptions after = options;
  after.total_steps = span.total;
  after.warmup = 0;
  auto schedule = make(after);
  if (schedule == nullptr)
    throw make_error<ValueError>("the registered schedule '", name, "' made no schedule");
  return schedule;
}

}  // namespace

void register_schedule(const std::string& name, ScheduleMaker make) {
  if (name.empty() || !make)
    throw ValueError("register_schedule: give a name and a function that makes the schedule");
  const auto is_name = [&](const auto& row) { return name == row.first; };
  const std::string what = cat("schedule '", name, "'");
  const std::lock_guard lock(registry().mutex);
  if (std::any_of(std::begin(kSchedules), std::end(kSchedules), is_name) ||
      !registry().makers.emplace(name, std::move(make)).second)
    throw make_error<ValueError>("register_schedule: there is a ", what, owner_of(what),
                                 " already: give yours another name");
  note_registration(what, [name] {
    const std::lock_guard undoing(registry().mutex);
    registry().makers.erase(name);
  });
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> out;
  for (const auto& [name, make] : kSchedules) out.emplace_back(name);
  const std::lock_guard lock(registry().mutex);
  for (const auto& [name, make] : registry().makers) out.push_back(name);
  return out;
}

// Warm-up takes at most half of a run; a short run would otherwise end at a low learning rate.
WarmUp warm_up(const ScheduleOptions& options) {
  const std::int64_t wanted = to_steps(options.warmup, options.steps_per_epoch);
  return {wanted, options.total_steps > 0 ? std::min(wanted, options.total_steps / 2) : wanted};
}

std::unique_ptr<Schedule> create_schedule(const std::string& name, const ScheduleOptions& options) {
  check_options("schedule", options, kOptionRanges);
  for (const double milestone : options.milestones)
    require_range("schedule", "milestones", milestone, from_to(0, kMostEpochs));
  for (const double factor : options.factors)
    require_range("schedule", "factors", factor, finite_from(0));
  const std::int64_t rise = warm_up(options).rise;
  auto schedule =
      make_schedule(name, options, {rise, std::max<std::int64_t>(0, options.total_steps - rise)});
  if (schedule != nullptr)
    return rise > 0 ? warmup(rise, std::move(schedule)) : std::move(schedule);
  const std::vector<std::string> known = schedule_names();
  const std::string near = nearest(name, known.data(), static_cast<int>(known.size()));
  std::string list;
  for (const std::string& each : known) list += cat(list.empty() ? "" : ", ", each);
  throw make_error<ValueError>("'", name, "' is not a schedule",
                               near.empty() ? "" : cat("; did you mean '", near, "'?"), " (", list,
                               ")");
}

}  // namespace tenon::optim
