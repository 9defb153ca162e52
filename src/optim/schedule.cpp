// Learning-rate schedules: factors as functions of the step number, so a resumed run needs no
// history (except Plateau, whose state is saved).
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>

#include <tenon/error.h>
#include <tenon/schedules.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/option_ranges.h"

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
  explicit Plateau(const PlateauOptions& options)
      : options_(options), best_(options.maximize ? -kNoLimit : kNoLimit) {}
  double factor(std::int64_t) const override { return factor_; }
  void observe(double figure) override {
    if (is_better(figure)) {
      best_ = figure;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (resting_ > 0) {
      --resting_;
      bad_ = 0;
    }
    if (bad_ <= options_.patience) return;
    const double next = std::max(factor_ * options_.gamma, options_.minimum);
    if (factor_ - next > options_.eps) factor_ = next;
    resting_ = options_.cooldown;
    bad_ = 0;
  }
  std::map<std::string, double> state() const override {
    return {{"factor", factor_},
            {"best", best_},
            {"bad_epochs", static_cast<double>(bad_)},
            {"cooldown", static_cast<double>(resting_)}};
  }
  void load_state(const std::map<std::string, double>& state) override {
    for (const char* key : {"factor", "best", "bad_epochs"})
      check(state.count(key) == 1, cat("plateau: the saved state lacks '", key, "'"));
    factor_ = state.at("factor");
    best_ = state.at("best");
    if (std::isnan(best_)) best_ = kNoLimit;  // older versions saved NaN
    bad_ = static_cast<int>(state.at("bad_epochs"));
    resting_ = state.contains("cooldown") ? static_cast<int>(state.at("cooldown")) : 0;
  }

 private:
  // NaN is never better; the first other figure always is.
  bool is_better(double figure) const {
    if (std::isinf(best_) && (best_ > 0) != options_.maximize) return !std::isnan(figure);
    const double least = options_.absolute ? options_.threshold : best_ * options_.threshold;
    return options_.maximize ? figure > best_ + least : figure < best_ - least;
  }

  PlateauOptions options_;
  double factor_ = 1, best_;
  int bad_ = 0, resting_ = 0;
};

class OneCycle : public Schedule {
 public:
  OneCycle(std::int64_t total, const OneCycleOptions& o) : linear_(o.linear) {
    const double low = 1 / o.div, top = o.rise * static_cast<double>(total) - 1;
    phases_.push_back({top, low, 1});
    if (o.three_phase) phases_.push_back({2 * top, 1, low});
    phases_.push_back({static_cast<double>(total) - 1, phases_.back().to, low / o.final_div});
  }
  double factor(std::int64_t step) const override {
    const auto at = static_cast<double>(step);
    double begin = 0;
    for (const Phase& phase : phases_) {
      if (at <= phase.end || &phase == &phases_.back()) {
        const double length = phase.end - begin;
        const double share = length > 0 ? std::clamp((at - begin) / length, 0.0, 1.0) : 1;
        return linear_ ? phase.from + (phase.to - phase.from) * share
                       : cosine_between(phase.from, phase.to, share);
      }
      begin = phase.end;
    }
    return 1;
  }

 private:
  struct Phase {
    double end, from, to;  // its last step
  };
  std::vector<Phase> phases_;
  bool linear_;
};

}  // namespace

Schedule::~Schedule() = default;
void Schedule::observe(double) {}
std::map<std::string, double> Schedule::state() const { return {}; }
void Schedule::load_state(const std::map<std::string, double>&) {}

std::unique_ptr<Schedule> constant() { return std::make_unique<Constant>(); }

namespace {

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

std::unique_ptr<Schedule> plateau(const PlateauOptions& options) {
  static constexpr OptionRange<PlateauOptions> kRanges[] = {
      {"gamma", &PlateauOptions::gamma, between(0, 1)},
      {"patience", &PlateauOptions::patience, at_least(0)},
      {"threshold", &PlateauOptions::threshold, finite_from(0)},
      {"minimum", &PlateauOptions::minimum, kShares},
      {"cooldown", &PlateauOptions::cooldown, at_least(0)},
      {"eps", &PlateauOptions::eps, finite_from(0)},
  };
  check_options("schedule plateau", options, kRanges);
  if (!options.absolute)
    require_range("schedule plateau", "threshold", options.threshold, from_below(0, 1));
  return std::make_unique<Plateau>(options);
}

std::unique_ptr<Schedule> plateau(double gamma, int patience, double threshold, double minimum) {
  return plateau(PlateauOptions{
      .gamma = gamma, .patience = patience, .threshold = threshold, .minimum = minimum, .eps = 0});
}

std::unique_ptr<Schedule> one_cycle(std::int64_t total, const OneCycleOptions& options) {
  static constexpr OptionRange<OneCycleOptions> kRanges[] = {
      {"rise", &OneCycleOptions::rise, between(0, 1)},
      {"div", &OneCycleOptions::div, finite_from(1)},
      {"final_div", &OneCycleOptions::final_div, finite_from(1)},
  };
  require_range("schedule one_cycle", "total", total, at_least(0));
  check_options("schedule one_cycle", options, kRanges);
  if (options.three_phase && options.rise > 0.5)
    throw make_error<ValueError>("schedule one_cycle: rise is ", options.rise,
                                 ", must be at most 0.5 in three phases: the second is as long");
  return std::make_unique<OneCycle>(total, options);
}

std::unique_ptr<Schedule> one_cycle(std::int64_t total, double rise, double div, double final_div) {
  return one_cycle(total, OneCycleOptions{.rise = rise, .div = div, .final_div = final_div});
}

}  // namespace tenon::optim
