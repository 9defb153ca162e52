// Learning-rate schedules: factors as functions of the step number, so a resumed run needs no
// history (except Plateau, whose state is saved).
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>

#include <tenon/error.h>
#include <tenon/optim.h>

#include "base/str.h"
#include "base/system/option_ranges.h"
#include "optim/warmup.h"

namespace tenon::optim {
namespace {

void check(bool good, const std::string& message) {
  if (!good) throw ValueError("schedule " + message);
}

class Constant : public Schedule {
 public:
  double factor(std::int64_t) const override { return 1; }
};

class Steps : public Schedule {
 public:
  Steps(std::vector<std::int64_t> milestones, std::vector<double> factors)
      : milestones_(std::move(milestones)), factors_(std::move(factors)) {}
  double factor(std::int64_t step) const override {
    const auto passed =
        std::upper_bound(milestones_.begin(), milestones_.end(), step) - milestones_.begin();
    return passed == 0 ? 1 : factors_[static_cast<std::size_t>(passed - 1)];
  }

 private:
  std::vector<std::int64_t> milestones_;
  std::vector<double> factors_;
};

class EverySteps : public Schedule {
 public:
  EverySteps(std::int64_t every, double gamma) : every_(every), gamma_(gamma) {}
  double factor(std::int64_t step) const override {
    const std::int64_t times = step / every_;
    return std::pow(gamma_, static_cast<double>(times));
  }

 private:
  std::int64_t every_;
  double gamma_;
};

class Exponential : public Schedule {
 public:
  Exponential(double gamma, std::int64_t every) : gamma_(gamma), every_(every) {}
  double factor(std::int64_t step) const override {
    return std::pow(gamma_, static_cast<double>(step) / static_cast<double>(every_));
  }

 private:
  double gamma_;
  std::int64_t every_;
};

// Completed share of `total`, in [0, 1].
double progress(std::int64_t step, std::int64_t total) {
  if (total <= 0) return step > 0 ? 1.0 : 0.0;
  return std::clamp(static_cast<double>(step) / static_cast<double>(total), 0.0, 1.0);
}

double cosine_between(double from, double to, double share) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

class Cosine : public Schedule {
 public:
  Cosine(std::int64_t total, double minimum) : total_(total), minimum_(minimum) {}
  double factor(std::int64_t step) const override {
    return cosine_between(1, minimum_, progress(step, total_));
  }

 private:
  std::int64_t total_;
  double minimum_;
};

class Linear : public Schedule {
 public:
  Linear(std::int64_t total, double minimum) : total_(total), minimum_(minimum) {}
  double factor(std::int64_t step) const override {
    return 1 + (minimum_ - 1) * progress(step, total_);
  }

 private:
  std::int64_t total_;
  double minimum_;
};

class Polynomial : public Schedule {
 public:
  Polynomial(std::int64_t total, double power, double minimum)
      : total_(total), power_(power), minimum_(minimum) {}
  double factor(std::int64_t step) const override {
    return minimum_ + (1 - minimum_) * std::pow(1 - progress(step, total_), power_);
  }

 private:
  std::int64_t total_;
  double power_, minimum_;
};

class CosineRestarts : public Schedule {
 public:
  CosineRestarts(std::int64_t period, std::int64_t multiply, double minimum)
      : period_(period), multiply_(multiply), minimum_(minimum) {}
  double factor(std::int64_t step) const override {
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    std::int64_t period = period_;
    while (multiply_ > 1 && step >= period) {
      step -= period;
      period = period > kLast / multiply_ ? kLast : period * multiply_;
    }
    return cosine_between(1, minimum_, progress(step % period, period));
  }

 private:
  std::int64_t period_, multiply_;
  double minimum_;
};

class InverseSquareRoot : public Schedule {
 public:
  explicit InverseSquareRoot(std::int64_t from) : from_(static_cast<double>(from)) {}
  double factor(std::int64_t step) const override {
    return std::sqrt(from_ / (from_ + static_cast<double>(step)));
  }

 private:
  double from_;
};

class Warmup : public Schedule {
 public:
  Warmup(std::int64_t steps, std::unique_ptr<Schedule> after)
      : steps_(steps), after_(std::move(after)) {}
  double factor(std::int64_t step) const override {
    if (step >= steps_) return after_->factor(step - steps_);
    return static_cast<double>(step + 1) / static_cast<double>(steps_ + 1) * after_->factor(0);
  }
  void observe(double figure) override { after_->observe(figure); }
  std::map<std::string, double> state() const override { return after_->state(); }
  void load_state(const std::map<std::string, double>& state) override {
    after_->load_state(state);
  }

 private:
  std::int64_t steps_;
  std::unique_ptr<Schedule> after_;
};

class Plateau : public Schedule {
 public:
  Plateau(double gamma, int patience, double threshold, double minimum)
      : gamma_(gamma), threshold_(threshold), minimum_(minimum), patience_(patience) {}
  double factor(std::int64_t) const override { return factor_; }
  void observe(double figure) override {
    // As in PyTorch: better means below the best by a share of it. NaN is never better.
    const bool is_first = best_ == std::numeric_limits<double>::infinity() && !std::isnan(figure);
    if (figure < best_ * (1 - threshold_) || is_first) {
      best_ = figure;
      bad_ = 0;
    } else if (++bad_ > patience_) {
      factor_ = std::max(factor_ * gamma_, minimum_);
      bad_ = 0;
    }
  }
  std::map<std::string, double> state() const override {
    return {{"factor", factor_}, {"best", best_}, {"bad_epochs", static_cast<double>(bad_)}};
  }
  void load_state(const std::map<std::string, double>& state) override {
    for (const char* key : {"factor", "best", "bad_epochs"})
      check(state.count(key) == 1, cat("plateau: the saved state lacks '", key, "'"));
    factor_ = state.at("factor");
    best_ = state.at("best");
    if (std::isnan(best_))
      best_ = std::numeric_limits<double>::infinity();  // older versions saved NaN
    bad_ = static_cast<int>(state.at("bad_epochs"));
  }

 private:
  double gamma_, threshold_, minimum_;
  int patience_;
  double factor_ = 1, best_ = std::numeric_limits<double>::infinity();
  int bad_ = 0;
};

class OneCycle : public Schedule {
 public:
  OneCycle(std::int64_t total, double rise, double div, double final_div)
      : top_(rise * static_cast<double>(total) - 1),
        last_(static_cast<double>(total) - 1),
        low_(1 / div),
        end_(1 / (div * final_div)) {}
  double factor(std::int64_t step) const override {
    const auto at = static_cast<double>(step);
    if (at <= top_) return cosine_between(low_, 1, top_ > 0 ? at / top_ : 1);
    return cosine_between(1, end_,
                          std::min(1.0, last_ > top_ ? (at - top_) / (last_ - top_) : 1.0));
  }

 private:
  double top_, last_, low_, end_;
};

}  // namespace

Schedule::~Schedule() = default;
void Schedule::observe(double) {}
void Schedule::load_state(const std::map<std::string, double>&) {}

std::unique_ptr<Schedule> constant() { return std::make_unique<Constant>(); }

namespace {

constexpr double kMostEpochs = 1e9;
constexpr Range kSteps = at_least(1), kGammas = finite_above(0), kShares = from_to(0, 1);

}  // namespace

std::unique_ptr<Schedule> step(std::int64_t every, double gamma) {
  require_range("schedule step", "every", every, kSteps);
  require_range("schedule step", "gamma", gamma, kGammas);
  return std::make_unique<EverySteps>(every, gamma);
}

std::unique_ptr<Schedule> multistep(std::vector<std::int64_t> milestones, double gamma) {
  require_range("schedule multistep", "gamma", gamma, kGammas);
  std::vector<double> factors;
  factors.reserve(milestones.size());
  for (std::size_t k = 0; k < milestones.size(); ++k)
    factors.push_back(std::pow(gamma, static_cast<double>(k + 1)));
  return multistep(std::move(milestones), std::move(factors));
}

std::unique_ptr<Schedule> multistep(std::vector<std::int64_t> milestones,
                                    std::vector<double> factors) {
  check(std::is_sorted(milestones.begin(), milestones.end()),
        "multistep: the milestones must increase");
  check(factors.size() == milestones.size(),
        cat("multistep: ", factors.size(), " factors for ", milestones.size(), " milestones"));
  for (const std::int64_t milestone : milestones)
    require_range("schedule multistep", "a milestone", milestone, at_least(0));
  for (const double factor : factors)
    require_range("schedule multistep", "a factor", factor, finite_from(0));
  return std::make_unique<Steps>(std::move(milestones), std::move(factors));
}

std::unique_ptr<Schedule> exponential(double gamma, std::int64_t every) {
  require_range("schedule exponential", "every", every, kSteps);
  require_range("schedule exponential", "gamma", gamma, kGammas);
  return std::make_unique<Exponential>(gamma, every);
}

std::unique_ptr<Schedule> cosine(std::int64_t total, double minimum) {
  require_range("schedule cosine", "total", total, at_least(0));
  require_range("schedule cosine", "minimum", minimum, kShares);
  return std::make_unique<Cosine>(total, minimum);
}
std::unique_ptr<Schedule> linear(std::int64_t total, double minimum) {
  require_range("schedule linear", "total", total, at_least(0));
  require_range("schedule linear", "minimum", minimum, kShares);
  return std::make_unique<Linear>(total, minimum);
}

std::unique_ptr<Schedule> polynomial(std::int64_t total, double power, double minimum) {
  require_range("schedule polynomial", "total", total, at_least(0));
  require_range("schedule polynomial", "power", power, finite_above(0));
  require_range("schedule polynomial", "minimum", minimum, kShares);
  return std::make_unique<Polynomial>(total, power, minimum);
}

std::unique_ptr<Schedule> cosine_restarts(std::int64_t period, std::int64_t multiply,
                                          double minimum) {
  require_range("schedule cosine_restarts", "period", period, kSteps);
  require_range("schedule cosine_restarts", "multiply", multiply, at_least(1));
  require_range("schedule cosine_restarts", "minimum", minimum, kShares);
  return std::make_unique<CosineRestarts>(period, multiply, minimum);
}

std::unique_ptr<Schedule> inverse_sqrt(std::int64_t from) {
  require_range("schedule inverse_sqrt", "from", from, kSteps);
  return std::make_unique<InverseSquareRoot>(from);
}

std::unique_ptr<Schedule> warmup(std::int64_t steps, std::unique_ptr<Schedule> after) {
  require_range("schedule warmup", "steps", steps, at_least(0));
  check(after != nullptr, "warmup: it needs a schedule to follow");
  return std::make_unique<Warmup>(steps, std::move(after));
}

std::unique_ptr<Schedule> plateau(double gamma, int patience, double threshold, double minimum) {
  require_range("schedule plateau", "gamma", gamma, between(0, 1));
  require_range("schedule plateau", "patience", std::int64_t{patience}, at_least(0));
  require_range("schedule plateau", "threshold", threshold, from_below(0, 1));
  require_range("schedule plateau", "minimum", minimum, kShares);
  return std::make_unique<Plateau>(gamma, patience, threshold, minimum);
}

std::unique_ptr<Schedule> one_cycle(std::int64_t total, double rise, double div, double final_div) {
  require_range("schedule one_cycle", "total", total, at_least(0));
  require_range("schedule one_cycle", "rise", rise, between(0, 1));
  require_range("schedule one_cycle", "div", div, finite_from(1));
  require_range("schedule one_cycle", "final_div", final_div, finite_from(1));
  return std::make_unique<OneCycle>(total, rise, div, final_div);
}

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

constexpr OptionRange<ScheduleOptions> kOptionRanges[] = {
    {"total_steps", &ScheduleOptions::total_steps, at_least(0)},
    {"steps_per_epoch", &ScheduleOptions::steps_per_epoch, at_least(1)},
    {"warmup", &ScheduleOptions::warmup, from_to(0, kMostEpochs)},
    {"every", &ScheduleOptions::every, above_to(0, kMostEpochs)},
    {"gamma", &ScheduleOptions::gamma, kGammas},
    {"minimum", &ScheduleOptions::minimum, kShares},
    {"power", &ScheduleOptions::power, finite_above(0)},
    {"multiply", &ScheduleOptions::multiply, at_least(1)},
    {"patience", &ScheduleOptions::patience, at_least(0)},
};

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> out;
  for (const auto& [name, make] : kSchedules) out.emplace_back(name);
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
  for (const auto& [known, make] : kSchedules) {
    if (name != known) continue;
    const std::int64_t rise = warm_up(options).rise;
    auto schedule = make(options, {rise, std::max<std::int64_t>(0, options.total_steps - rise)});
    return rise > 0 ? warmup(rise, std::move(schedule)) : std::move(schedule);
  }
  const std::vector<std::string> known = schedule_names();
  const std::string near = nearest(name, known.data(), static_cast<int>(known.size()));
  std::string list;
  for (const std::string& each : known) list += cat(list.empty() ? "" : ", ", each);
  throw ValueError(cat("'", name, "' is not a schedule",
                       near.empty() ? "" : cat("; did you mean '", near, "'?"), " (", list, ")"));
}

}  // namespace tenon::optim
