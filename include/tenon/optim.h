// Optimizers and learning-rate schedules.
//
// An update is graph like everything else: updates() returns assignments, and loss, gradients and
// updates evaluated together are one program. Learning rate, step count and moments are variables,
// so that changing them plans nothing anew. Every update rule is PyTorch's.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/nn.h>
#include <tenon/tensor.h>

namespace tenon::optim {

/// Parameters that share settings; what is not given is the optimizer's.
struct ParameterGroup {
  std::vector<nn::NamedTensor> parameters{};
  std::optional<double> lr{}, weight_decay{};
  /// These begin to learn later than others: their steps are counted from their own first one
  /// (Adam's corrections depend on them), and a state that lacks them all leaves them at their
  /// beginning.
  bool own_steps = false;
};

/// Limits of gradients; 0: none. Elements are clamped to [-value, value] first, then all gradients
/// scaled so that their common norm is at most `norm`.
struct Clip {
  double norm = 0, value = 0;
};

class TENON_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// All parameters, group after group: the order in which updates() expects gradients.
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// In the order of parameters().
  const std::vector<std::string>& parameter_names() const { return names_; }
  /// Assignments that take one step with these gradients, when evaluated. Parameters that are
  /// frozen by now stay as they are. With `guard` (a bool scalar) none of them changes anything
  /// where it is false: updates(grads, isfinite(loss)) never lets a NaN into the weights. Running
  /// statistics are the loss's: take_updates() and guarded() (ops.h) guard those. With `rates` (a
  /// vector, one a group) these are the learning rates instead of those in force: for steps that
  /// are queued together, each with its own.
  [[nodiscard("an update happens when it is evaluated")]]  //
  std::vector<Tensor>
  updates(const std::vector<Tensor>& grads, const Tensor& guard = {}, const Tensor& rates = {});
  /// The groups' rates where the optimizer's is `lr`.
  std::vector<double> rates(double lr) const;
  /// In which `rates` have the digits that the updates use: Float32 unless a parameter is Float64.
  DType rate_dtype() const;
  /// Gradients of the loss, clipped where asked for, updates, evaluation: one step of a plain
  /// loop. Returns the loss. Throws ValueError where the loss is made of none of the parameters, as
  /// behind detach() or of what a compiled function returned. One thread at a time takes steps: on
  /// the CPU one that begins during another's meets a ValueError. So does a class or an index out
  /// of range: on the CPU the weights are then as they were; a GPU tells of it when the step has
  /// run, and the weights are what the other samples made of them, unless what is evaluated is
  /// updates(grads, isfinite(loss)). As in PyTorch, a loss that is not finite is no error and makes
  /// the weights NaN: guard updates() where that may come.
  ///
  /// `with` is evaluated in the same program, with the values from before the update: a recurrent
  /// state that the next step begins with, or what one wants to look at.
  double step(const Tensor& loss, const Clip& clip = {}, const std::vector<Tensor>& with = {});

  /// The learning rate that schedules start from.
  double base_lr() const { return base_lr_; }
  /// The rate in force, of the optimizer (groups with a rate of their own keep its proportion to
  /// base_lr).
  double lr() const { return lr_; }
  void set_lr(double lr);
  std::int64_t steps() const;  ///< taken so far (skipped ones do not count)

  /// Moments by parameter name ("0.weight.momentum_buffer"), the step count, the learning rate.
  StateDict state_dict() const;
  /// Throws ValueError or ShapeError naming the key that is missing, unexpected or does not fit, or
  /// whose values no steps make: a moment that is not finite, a mean of squares that is NaN or
  /// below 0. Nothing is loaded then.
  void load_state_dict(const StateDict& state);
  virtual std::string describe() const = 0;

 protected:
  struct Group {
    Tensor lr;    // scalar variable
    Tensor step;  // that of all, or of its own
    double lr_scale = 1, weight_decay = 0;
  };
  /// A variable and the value that it holds after the step.
  using Assignment = std::pair<Tensor, Tensor>;
  Optimizer(std::vector<ParameterGroup> groups, double lr, double weight_decay);
  /// A state variable of zeros beside each parameter, saved under this name; its values are finite
  /// and never below `least`.
  const std::vector<Tensor>* add_slot(const std::string& name,
                                      double least = -std::numeric_limits<double>::infinity());
  /// The new values of parameter k and of its state, given its gradient and the rate (a scalar of
  /// its dtype).
  virtual std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                       double weight_decay) = 0;
  /// Called once before the rules of one updates(), with the number of steps taken and the number
  /// after this one (float64 scalars): makes what the rules share.
  virtual void prepare(const Tensor& taken, const Tensor& next);
  const Tensor& parameter(std::size_t k) const { return parameters_[k]; }

 private:
  std::vector<Tensor> gradients_for_step(const Tensor& loss, const Clip& clip) const;
  bool begins_own_steps(std::size_t k) const;
  StateDict beginnings(const StateDict& state) const;
  void check_values(const StateDict& state) const;
  struct Slot {
    std::string name;
    double least = 0;
    std::vector<Tensor> tensors;
  };
  std::vector<Tensor> parameters_;
  std::vector<std::string> names_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Tensor step_;  // float64 scalar variable: 1 - beta^step needs the digits
  double base_lr_, lr_;
};

/// Parameters for an optimizer: a module's trainable ones, a list, or groups.
struct Parameters {
  std::vector<ParameterGroup> groups;
  TENON_API Parameters(const nn::ModuleBase& module);                        // NOLINT
  Parameters(std::vector<ParameterGroup> list) : groups(std::move(list)) {}  // NOLINT
  TENON_API Parameters(const std::vector<Tensor>& list);                     // NOLINT
};

struct SgdOptions {
  double lr = 0.01, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;  ///< uphill
};
class TENON_API Sgd : public Optimizer {
 public:
  explicit Sgd(Parameters parameters, const SgdOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  SgdOptions options_;
  const std::vector<Tensor>* momentum_ = nullptr;
  Tensor first_;  // whether this is the first step
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;  ///< weight decay as in AdamW
  bool amsgrad = false;    ///< divides by the largest mean square so far (Reddi et al., 2018)
  bool maximize = false;   ///< uphill
};
class TENON_API Adam : public Optimizer {
 public:
  explicit Adam(Parameters parameters, const AdamOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  AdamOptions options_;
  const std::vector<Tensor>*exp_avg_, *exp_avg_sq_, *max_exp_avg_sq_ = nullptr;
  Tensor correction1_, correction2_sqrt_;  // 1 - beta1^t, sqrt(1 - beta2^t), float64
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  bool amsgrad = false, maximize = false;  ///< as Adam's
};
class TENON_API AdamW : public Adam {
 public:
  explicit AdamW(Parameters parameters, const AdamWOptions& options = {});
};

struct RmsPropOptions {
  double lr = 0.01, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
  bool maximize = false;  ///< uphill
};
class TENON_API RmsProp : public Optimizer {
 public:
  explicit RmsProp(Parameters parameters, const RmsPropOptions& options = {});
  std::string describe() const override;

 private:
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  RmsPropOptions options_;
  const std::vector<Tensor>*square_avg_, *grad_avg_ = nullptr, *momentum_ = nullptr;
};

struct LevenbergOptions {
  double lr = 5e-4, mu = 0.02, weight_decay = 0;
};
/// Stochastic diagonal Levenberg–Marquardt (LeCun et al., "Gradient-based learning applied to
/// document recognition", 1998): every weight learns at a rate of its own, lr / (mu + h), where h
/// is its curvature, which steps leave as it was last measured. Until then h is 0. train::Trainer
/// measures it before every epoch.
class TENON_API Levenberg : public Optimizer {
 public:
  explicit Levenberg(Parameters parameters, const LevenbergOptions& options = {});
  /// Assignments h ← keep · h + share · g², for the gradients of a single example in the order of
  /// parameters(). Carried out for N examples with a share of 1 / N, and with `keep` (a scalar
  /// float32) 0 for the first and 1 for the others, they make h the mean square of the gradients.
  /// Where the loss is a negative log-likelihood and each target is drawn from the network's own
  /// scores, that is Gauss–Newton's diagonal in the mean, without a second pass backwards. Throws
  /// ValueError for another number of gradients.
  [[nodiscard("an update happens when it is evaluated")]]  //
  std::vector<Tensor>
  curvature_updates(const std::vector<Tensor>& grads, const Tensor& keep, double share) const;
  std::string describe() const override;

 private:
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  LevenbergOptions options_;
  const std::vector<Tensor>* curvature_;
};

/// Settings of an optimizer chosen by name; what is not given is that optimizer's default.
struct OptimizerOptions {
  std::optional<double> lr{}, momentum{}, weight_decay{}, beta1{}, beta2{}, eps{}, alpha{},
      dampening{};
  bool nesterov = false, centered = false;
};
/// "sgd", "adam", "adamw", "rmsprop", "levenberg" (whose mu is `eps`). Throws
/// ValueError for another name (with a near miss) or an option it does not have.
TENON_API std::unique_ptr<Optimizer> create(const std::string& name, Parameters parameters,
                                            const OptimizerOptions& options = {});
TENON_API std::vector<std::string> names();

// ---- Gradients
struct ClippedGrads {
  std::vector<Tensor> grads;
  Tensor norm;  ///< of all gradients together, before clipping
};
/// The gradients within the limits. Throws ValueError for a limit that is negative or no number.
TENON_API std::vector<Tensor> clipped(const std::vector<Tensor>& grads, const Clip& clip);
/// Scales all gradients so that their common Euclidean norm is at most max_norm.
TENON_API ClippedGrads clip_grad_norm(const std::vector<Tensor>& grads, double max_norm);
/// Clamps every element to [-limit, limit].
TENON_API std::vector<Tensor> clip_grad_value(const std::vector<Tensor>& grads, double limit);

// ---- Schedules: the learning rate as a factor of the base rate
class TENON_API Schedule {
 public:
  virtual ~Schedule();
  /// Factor for the step with this number (0: the first).
  virtual double factor(std::int64_t step) const = 0;
  /// Told the monitored figure (lower is better) at the end of each epoch; only Plateau listens.
  virtual void observe(double figure);
  virtual std::map<std::string, double> state() const { return {}; }
  virtual void load_state(const std::map<std::string, double>& state);
};

TENON_API std::unique_ptr<Schedule> constant();
/// × gamma every `every` steps.
TENON_API std::unique_ptr<Schedule> step(std::int64_t every, double gamma = 0.1);
TENON_API std::unique_ptr<Schedule> multistep(std::vector<std::int64_t> milestones,
                                              double gamma = 0.1);
/// Factors of its own, one for each milestone, from there to the next; 1 before the first.
TENON_API std::unique_ptr<Schedule> multistep(std::vector<std::int64_t> milestones,
                                              std::vector<double> factors);
/// × gamma each `every` steps, smoothly.
TENON_API std::unique_ptr<Schedule> exponential(double gamma, std::int64_t every = 1);
/// Half a cosine from 1 to `minimum` over `total` steps.
TENON_API std::unique_ptr<Schedule> cosine(std::int64_t total, double minimum = 0);
/// A straight line from 1 to `minimum` over `total` steps.
TENON_API std::unique_ptr<Schedule> linear(std::int64_t total, double minimum = 0);
/// minimum + (1 - minimum) · (1 - step / total)^power over `total` steps.
TENON_API std::unique_ptr<Schedule> polynomial(std::int64_t total, double power = 1,
                                               double minimum = 0);
/// Half a cosine from 1 to `minimum` over `period` steps, then again from 1, each time `multiply`
/// times as long (Loshchilov and Hutter, 2017).
TENON_API std::unique_ptr<Schedule> cosine_restarts(std::int64_t period, std::int64_t multiply = 1,
                                                    double minimum = 0);
/// sqrt(from / (from + step)). Behind a warm-up of from - 1 steps the rate of step t, counted from
/// 1, is in proportion to min(t / from, sqrt(from / t)) (Vaswani et al., 2017).
TENON_API std::unique_ptr<Schedule> inverse_sqrt(std::int64_t from);
/// Rises in a straight line over `steps` steps, then goes on with `after`, which starts at its own
/// step 0.
TENON_API std::unique_ptr<Schedule> warmup(std::int64_t steps, std::unique_ptr<Schedule> after);
/// × gamma when the figure has not improved by more than `threshold` (relative) for `patience`
/// epochs.
TENON_API std::unique_ptr<Schedule> plateau(double gamma = 0.1, int patience = 10,
                                            double threshold = 1e-4, double minimum = 0);
/// From 1/div up to 1 (cosine) over the first `rise` of `total` steps, then down to
/// 1/(div·final_div). The learning rate only: PyTorch's OneCycleLR with cycle_momentum = false.
TENON_API std::unique_ptr<Schedule> one_cycle(std::int64_t total, double rise = 0.3,
                                              double div = 25, double final_div = 1e4);

/// Settings of a schedule chosen by name. Times are in epochs.
struct ScheduleOptions {
  std::int64_t total_steps = 0, steps_per_epoch = 1;
  double warmup = 0;                 ///< epochs of linear warm-up before any schedule
  double every = 1;                  ///< step, exponential; cosine_restarts: the first period
  std::vector<double> milestones{};  ///< multistep
  std::vector<double> factors{};     ///< multistep: one a milestone, or none: powers of gamma
  double gamma = 0.1;
  double minimum = 0;         ///< cosine, linear, polynomial, cosine_restarts, plateau
  double power = 1;           ///< polynomial
  std::int64_t multiply = 1;  ///< cosine_restarts: how much longer each period is than the last
  int patience = 2;           ///< plateau
};
/// "constant", "step", "multistep", "exponential", "cosine", "linear", "polynomial",
/// "cosine_restarts", "inverse_sqrt", "plateau", "one_cycle". Throws ValueError for another name.
TENON_API std::unique_ptr<Schedule> create_schedule(const std::string& name,
                                                    const ScheduleOptions& options);
TENON_API std::vector<std::string> schedule_names();

}  // namespace tenon::optim
