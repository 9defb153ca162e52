// A sequence of schedules, each used up to a given step.
#include "train/batches/lengths.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tenon/error.h>

namespace tenon::train {
namespace {

// Every schedule receives every metric, so that each schedule can take over at any step.
class OfLengths : public optim::Schedule {
 public:
  using Part = std::pair<std::int64_t, std::unique_ptr<optim::Schedule>>;  // the step that ends its
                                                                           // use, and the schedule
  OfLengths(std::vector<Part> earlier, std::unique_ptr<optim::Schedule> last)
      : earlier_(std::move(earlier)), last_(std::move(last)) {}
  double factor(std::int64_t step) const override {
    for (const auto& [until, schedule] : earlier_)
      if (step < until) return schedule->factor(step);
    return last_->factor(step);
  }
  void observe(double figure) override {
    for (const Part& part : earlier_) part.second->observe(figure);
    last_->observe(figure);
  }
  std::map<std::string, double> state() const override { return last_->state(); }
  void load_state(const std::map<std::string, double>& state) override {
    for (const Part& part : earlier_) part.second->load_state(state);
    last_->load_state(state);
  }

 private:
  std::vector<Part> earlier_;
  std::unique_ptr<optim::Schedule> last_;
};

}  // namespace

std::unique_ptr<optim::Schedule> schedule_of(const TrainOptions& options, std::int64_t total,
                                             std::int64_t steps_per_epoch) {
  const auto of = [&](std::int64_t steps) {
    optim::ScheduleOptions schedule = options.schedule_options;
    schedule.total_steps = steps;
    schedule.steps_per_epoch = steps_per_epoch;
    if (!options.make_schedule) return optim::create_schedule(options.schedule, schedule);
    std::unique_ptr<optim::Schedule> made = options.make_schedule(schedule);
    if (made == nullptr) throw ValueError("Trainer: make_schedule returned a null pointer");
    return made;
  };
  if (options.earlier_lengths.empty()) return of(total);
  std::vector<OfLengths::Part> earlier;
  for (const TrainOptions::Length& length : options.earlier_lengths)
    earlier.emplace_back(length.until, of(length.total));
  return std::make_unique<OfLengths>(std::move(earlier), of(total));
}

}  // namespace tenon::train
