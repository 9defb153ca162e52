// Schedules of pieces: ramps and cycles, functions of the user, sequences and products of
// schedules.
#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <utility>

#include <tenon/error.h>
#include <tenon/schedules.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/option_ranges.h"

namespace tenon::optim {
namespace {

class Ramp : public Schedule {
 public:
  Ramp(double from, double to, std::int64_t steps) : from_(from), to_(to), steps_(steps) {}
  double factor(std::int64_t step) const override {
    if (step >= steps_) return to_;
    return from_ + (to_ - from_) * static_cast<double>(step) / static_cast<double>(steps_);
  }

 private:
  double from_, to_;
  std::int64_t steps_;
};

class Cyclic : public Schedule {
 public:
  explicit Cyclic(const CyclicOptions& o) : options_(o) {
    if (options_.down == 0) options_.down = options_.up;
  }
  double factor(std::int64_t step) const override {
    const std::int64_t length = options_.up + options_.down;
    const std::int64_t cycle = step / length, within = step % length;
    const double share =
        within <= options_.up ? ratio(within, options_.up) : ratio(length - within, options_.down);
    return options_.low + (options_.high - options_.low) * share * height(step, cycle);
  }

 private:
  static double ratio(std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }
  double height(std::int64_t step, std::int64_t cycle) const {
    switch (options_.mode) {
      case CyclicMode::Triangular2:
        return std::pow(0.5, static_cast<double>(cycle));
      case CyclicMode::ExpRange:
        return std::pow(options_.gamma, static_cast<double>(step));
      case CyclicMode::Triangular:
        break;
    }
    return 1;
  }
  CyclicOptions options_;
};

class FromFunction : public Schedule {
 public:
  explicit FromFunction(std::function<double(std::int64_t)> factor) : factor_(std::move(factor)) {}
  double factor(std::int64_t step) const override { return factor_(step); }

 private:
  std::function<double(std::int64_t)> factor_;
};

class Multiplicative : public Schedule {
 public:
  explicit Multiplicative(std::function<double(std::int64_t)> ratio) : ratio_(std::move(ratio)) {}
  double factor(std::int64_t step) const override {
    const std::lock_guard lock(mutex_);
    if (step < step_) step_ = 0, product_ = 1;
    while (step_ < step) product_ *= ratio_(++step_);
    return product_;
  }

 private:
  std::function<double(std::int64_t)> ratio_;
  mutable std::mutex mutex_;
  mutable std::int64_t step_ = 0;
  mutable double product_ = 1;  // of the ratios up to step_
};

// Observations go to all parts; the state of part k is saved with the prefix "k.".
class Parts : public Schedule {
 public:
  explicit Parts(std::vector<std::unique_ptr<Schedule>> parts) : parts_(std::move(parts)) {}
  void observe(double figure) override {
    for (const auto& part : parts_) part->observe(figure);
  }
  std::map<std::string, double> state() const override {
    std::map<std::string, double> out;
    for (std::size_t k = 0; k < parts_.size(); ++k)
      for (const auto& [name, value] : parts_[k]->state()) out.emplace(cat(k, ".", name), value);
    return out;
  }
  void load_state(const std::map<std::string, double>& state) override {
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const std::string prefix = cat(k, ".");
      std::map<std::string, double> own;
      for (const auto& [name, value] : state)
        if (name.starts_with(prefix)) own.emplace(name.substr(prefix.size()), value);
      parts_[k]->load_state(own);
    }
  }

 protected:
  std::vector<std::unique_ptr<Schedule>> parts_;
};

class Sequence : public Parts {
 public:
  Sequence(std::vector<std::unique_ptr<Schedule>> parts, std::vector<std::int64_t> milestones)
      : Parts(std::move(parts)), milestones_(std::move(milestones)) {}
  double factor(std::int64_t step) const override {
    const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), step);
    const std::int64_t begin = next == milestones_.begin() ? 0 : *(next - 1);
    return parts_[static_cast<std::size_t>(next - milestones_.begin())]->factor(step - begin);
  }

 private:
  std::vector<std::int64_t> milestones_;
};

class Product : public Parts {
 public:
  using Parts::Parts;
  double factor(std::int64_t step) const override {
    double out = 1;
    for (const auto& part : parts_) out *= part->factor(step);
    return out;
  }
};

constexpr Range kFactors = finite_from(0);

void require_parts(const char* name, const std::vector<std::unique_ptr<Schedule>>& parts) {
  if (parts.empty()) throw make_error<ValueError>("schedule ", name, ": there are no schedules");
  for (const auto& part : parts)
    if (part == nullptr) throw make_error<ValueError>("schedule ", name, ": a schedule is null");
}

}  // namespace

std::unique_ptr<Schedule> constant(double value, std::int64_t steps) {
  require_range("schedule constant", "value", value, kFactors);
  require_range("schedule constant", "steps", steps, at_least(0));
  return sequential(schedule_list(ramp(value, value, 1), constant()), {steps});
}

std::unique_ptr<Schedule> ramp(double from, double to, std::int64_t steps) {
  require_range("schedule ramp", "from", from, kFactors);
  require_range("schedule ramp", "to", to, kFactors);
  require_range("schedule ramp", "steps", steps, at_least(0));
  return std::make_unique<Ramp>(from, to, steps);
}

std::unique_ptr<Schedule> cyclic(const CyclicOptions& options) {
  static constexpr OptionRange<CyclicOptions> kRanges[] = {
      {"low", &CyclicOptions::low, finite_from(0)},
      {"high", &CyclicOptions::high, finite_from(0)},
      {"up", &CyclicOptions::up, from_to(1, 1e15)},
      {"down", &CyclicOptions::down, from_to(0, 1e15)},
      {"gamma", &CyclicOptions::gamma, above_to(0, 1)},
  };
  check_options("schedule cyclic", options, kRanges);
  if (options.low > options.high)
    throw make_error<ValueError>("schedule cyclic: low is ", options.low,
                                 ", must be at most high, ", options.high);
  return std::make_unique<Cyclic>(options);
}

std::unique_ptr<Schedule> from_function(std::function<double(std::int64_t)> factor) {
  if (!factor) throw ValueError("schedule from_function: the function is empty");
  return std::make_unique<FromFunction>(std::move(factor));
}

std::unique_ptr<Schedule> multiplicative(std::function<double(std::int64_t)> ratio) {
  if (!ratio) throw ValueError("schedule multiplicative: the function is empty");
  return std::make_unique<Multiplicative>(std::move(ratio));
}

std::unique_ptr<Schedule> sequential(std::vector<std::unique_ptr<Schedule>> schedules,
                                     std::vector<std::int64_t> milestones) {
  require_parts("sequential", schedules);
  if (milestones.size() + 1 != schedules.size())
    throw make_error<ValueError>("schedule sequential: ", milestones.size(), " milestones for ",
                                 schedules.size(), " schedules, must be one less");
  if (!std::is_sorted(milestones.begin(), milestones.end()) ||
      (!milestones.empty() && milestones.front() < 0))
    throw ValueError("schedule sequential: the milestones must be at least 0 and increase");
  return std::make_unique<Sequence>(std::move(schedules), std::move(milestones));
}

std::unique_ptr<Schedule> product(std::vector<std::unique_ptr<Schedule>> schedules) {
  require_parts("product", schedules);
  return std::make_unique<Product>(std::move(schedules));
}

}  // namespace tenon::optim
