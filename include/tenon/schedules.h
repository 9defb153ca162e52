// Learning-rate schedules: what torch.optim.lr_scheduler holds.
//
// A schedule gives the learning rate of each step as a factor of the base rate. Apart from
// plateau() it depends on the step number alone, so a resumed run needs no history. In a plain
// loop: `optimizer.set_lr(optimizer.base_lr() * schedule->factor(step))`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/export.h>

namespace tenon::optim {

/// A learning-rate schedule: the learning rate of each step as a factor of the base rate (PyTorch:
/// torch.optim.lr_scheduler). All functions that create one throw ValueError for an argument out of
/// range.
class TENON_API Schedule {
 public:
  virtual ~Schedule();
  /// The factor for a step; the first step is 0.
  virtual double factor(std::int64_t step) const = 0;
  /// Receives the monitored metric at the end of each epoch; lower is better, unless the schedule
  /// says otherwise. Only plateau() uses it.
  virtual void observe(double figure);
  /// The state that a checkpoint stores; empty for a schedule that depends on the step alone.
  virtual std::map<std::string, double> state() const;
  /// Restores what state() returned.
  virtual void load_state(const std::map<std::string, double>& state);
};

/// The factor is always 1.
TENON_API std::unique_ptr<Schedule> constant();
/// Multiplies by `gamma` after every `every` steps (PyTorch: StepLR).
TENON_API std::unique_ptr<Schedule> step(std::int64_t every, double gamma = 0.1);
/// Multiplies by `gamma` at each milestone, a step number (PyTorch: MultiStepLR). The milestones
/// must be in ascending order.
TENON_API std::unique_ptr<Schedule> multistep(std::vector<std::int64_t> milestones,
                                              double gamma = 0.1);
/// Sets the factor at each milestone: `factors` has one for each, valid until the next milestone.
/// Before the first milestone the factor is 1.
TENON_API std::unique_ptr<Schedule> multistep(std::vector<std::int64_t> milestones,
                                              std::vector<double> factors);
/// gamma^(step / every): falls smoothly, by `gamma` in `every` steps (PyTorch: ExponentialLR).
TENON_API std::unique_ptr<Schedule> exponential(double gamma, std::int64_t every = 1);
/// Half a cosine from 1 to `minimum` over `total` steps (PyTorch: CosineAnnealingLR).
TENON_API std::unique_ptr<Schedule> cosine(std::int64_t total, double minimum = 0);
/// A straight line from 1 to `minimum` over `total` steps (PyTorch: LinearLR).
TENON_API std::unique_ptr<Schedule> linear(std::int64_t total, double minimum = 0);
/// minimum + (1 - minimum) · (1 - step / total)^power over `total` steps (PyTorch: PolynomialLR).
TENON_API std::unique_ptr<Schedule> polynomial(std::int64_t total, double power = 1,
                                               double minimum = 0);
/// Half a cosine from 1 to `minimum` over `period` steps, then again from 1. Each period is
/// `multiply` times as long as the one before (Loshchilov and Hutter, "SGDR: stochastic gradient
/// descent with warm restarts", 2017; PyTorch: CosineAnnealingWarmRestarts).
TENON_API std::unique_ptr<Schedule> cosine_restarts(std::int64_t period, std::int64_t multiply = 1,
                                                    double minimum = 0);
/// sqrt(from / (from + step)). After a warm-up of from - 1 steps the learning rate of step t,
/// counted from 1, is proportional to min(t / from, sqrt(from / t)) (Vaswani et al., "Attention is
/// all you need", 2017).
TENON_API std::unique_ptr<Schedule> inverse_sqrt(std::int64_t from);
/// Rises linearly over `steps` steps and then follows `after`, which starts at its own step 0.
TENON_API std::unique_ptr<Schedule> warmup(std::int64_t steps, std::unique_ptr<Schedule> after);
/// The factor `value` for `steps` steps, then 1 (PyTorch: ConstantLR).
TENON_API std::unique_ptr<Schedule> constant(double value, std::int64_t steps);
/// A straight line from `from` to `to` over `steps` steps (PyTorch: LinearLR with start_factor and
/// end_factor).
TENON_API std::unique_ptr<Schedule> ramp(double from, double to, std::int64_t steps);

/// How the height of the cycles of cyclic() changes.
enum class CyclicMode {
  Triangular,   ///< it stays
  Triangular2,  ///< it is halved after each cycle
  ExpRange      ///< it is multiplied by gamma^step
};
/// Options of cyclic().
struct CyclicOptions {
  double low = 0.1;                          ///< factor at the ends of a cycle, 0 to 1
  double high = 1;                           ///< factor at its top, above `low`
  std::int64_t up = 2000;                    ///< steps from low to high
  std::int64_t down = 0;                     ///< steps from high to low; 0: as many
  CyclicMode mode = CyclicMode::Triangular;  ///< how the height changes
  double gamma = 1;                          ///< of ExpRange
};
/// Rises and falls linearly again and again (Smith, "Cyclical learning rates for training neural
/// networks", 2017; PyTorch: CyclicLR with cycle_momentum = false).
TENON_API std::unique_ptr<Schedule> cyclic(const CyclicOptions& options = {});

/// Options of plateau(), with PyTorch's names but for `minimum` (min_lr) and `gamma` (factor),
/// which are factors of the base rate.
struct PlateauOptions {
  double gamma = 0.1;       ///< multiplied into the factor, above 0 and below 1
  int patience = 10;        ///< epochs without improvement that are accepted
  double threshold = 1e-4;  ///< the least improvement
  double minimum = 0;       ///< the factor never falls below, 0 to 1
  bool maximize = false;    ///< a higher metric is better (PyTorch: mode)
  bool absolute = false;    ///< the threshold is a difference, not a share (threshold_mode)
  int cooldown = 0;         ///< epochs after a change in which none is counted
  double eps = 1e-8;        ///< smaller changes of the factor are left out
};
/// Multiplies by `gamma` when the monitored metric has not improved by more than `threshold` for
/// `patience` epochs (PyTorch: ReduceLROnPlateau).
TENON_API std::unique_ptr<Schedule> plateau(const PlateauOptions& options);
/// plateau() with a relative threshold for a metric that should fall.
TENON_API std::unique_ptr<Schedule> plateau(double gamma = 0.1, int patience = 10,
                                            double threshold = 1e-4, double minimum = 0);

/// Options of one_cycle().
struct OneCycleOptions {
  double rise = 0.3;       ///< share of the steps in which the rate rises (PyTorch: pct_start)
  double div = 25;         ///< the first factor is 1 / div
  double final_div = 1e4;  ///< the last factor is 1 / (div · final_div)
  bool linear = false;     ///< straight lines instead of cosines (PyTorch: anneal_strategy)
  bool three_phase =
      false;  ///< fall to 1 / div in as many steps as it rose, then to the last factor
};
/// Rises from 1/div to 1 over the first share `rise` of `total` steps, then falls to
/// 1/(div·final_div) (Smith and Topin, "Super-convergence", 2019). Only the learning rate changes:
/// PyTorch's OneCycleLR with cycle_momentum = false.
TENON_API std::unique_ptr<Schedule> one_cycle(std::int64_t total, const OneCycleOptions& options);
/// one_cycle() along cosines.
TENON_API std::unique_ptr<Schedule> one_cycle(std::int64_t total, double rise = 0.3,
                                              double div = 25, double final_div = 1e4);

// ---- Schedules from functions and from other schedules
/// A function of the step (PyTorch: LambdaLR).
TENON_API std::unique_ptr<Schedule> from_function(std::function<double(std::int64_t)> factor);
/// The product of `ratio(1)` to `ratio(step)` (PyTorch: MultiplicativeLR). factor() keeps the last
/// product, so steps that follow each other cost one call each.
TENON_API std::unique_ptr<Schedule> multiplicative(std::function<double(std::int64_t)> ratio);
/// One schedule after another: schedule k + 1 begins at step milestones[k], with its own step 0
/// (PyTorch: SequentialLR). There is one milestone less than schedules, in ascending order.
TENON_API std::unique_ptr<Schedule> sequential(std::vector<std::unique_ptr<Schedule>> schedules,
                                               std::vector<std::int64_t> milestones);
/// The product of the factors of several schedules (PyTorch: ChainedScheduler).
TENON_API std::unique_ptr<Schedule> product(std::vector<std::unique_ptr<Schedule>> schedules);
/// A list for sequential() and product(): `schedule_list(step(3), exponential(0.9))`.
template <class... S>
std::vector<std::unique_ptr<Schedule>> schedule_list(std::unique_ptr<S>... schedules) {
  std::vector<std::unique_ptr<Schedule>> out;
  (out.push_back(std::move(schedules)), ...);
  return out;
}

/// Options of create_schedule(). Times are in epochs.
struct ScheduleOptions {
  std::int64_t total_steps = 0;      ///< steps of the whole run, the warm-up included
  std::int64_t steps_per_epoch = 1;  ///< converts epochs to steps
  double warmup = 0;  ///< epochs of linear warm-up before the schedule, at most half of the run
  double every = 1;   ///< of step and exponential; of cosine_restarts: the first period
  std::vector<double> milestones{};  ///< of multistep
  std::vector<double> factors{};  ///< of multistep: one for each milestone; empty: powers of gamma
  double gamma = 0.1;             ///< of step, multistep, exponential and plateau
  double minimum = 0;  ///< of cosine, linear, polynomial, cosine_restarts and plateau, 0 to 1
  double power = 1;    ///< of polynomial
  std::int64_t multiply = 1;  ///< of cosine_restarts: the ratio of a period to the one before
  int patience = 2;           ///< of plateau, in epochs
};
/// Makes a schedule from the options of a run.
using ScheduleMaker = std::function<std::unique_ptr<Schedule>(const ScheduleOptions& options)>;
/// Gives a name to a schedule of one's own, so that the Trainer, settings and the command know it.
/// `make` gets the steps after the warm-up as total_steps; the warm-up itself is added to the
/// result. Throws ValueError if the name is taken.
TENON_API void register_schedule(const std::string& name, ScheduleMaker make);
/// Creates a schedule by its name: "constant", "step", "multistep", "exponential", "cosine",
/// "linear", "polynomial", "cosine_restarts", "inverse_sqrt", "plateau" or "one_cycle", or a
/// registered name. Throws ValueError for another name or an option out of range.
TENON_API std::unique_ptr<Schedule> create_schedule(const std::string& name,
                                                    const ScheduleOptions& options);
/// The names that create_schedule() takes.
TENON_API std::vector<std::string> schedule_names();

}  // namespace tenon::optim
