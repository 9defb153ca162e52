// Optimizers and gradient clipping: what torch.optim holds. More optimizers are in optimizers.h,
// learning-rate schedules in schedules.h.
//
// An update is part of the graph: updates() returns assignments, and a loss, its gradients and its
// updates can be evaluated together as one program. The learning rate, the step count and the
// moments are variables, so a new value of them needs no new plan. The update rules of sgd, adam,
// adamw and rmsprop are those of PyTorch.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/nn.h>
#include <tenon/schedules.h>
#include <tenon/tensor.h>

/// Optimizers, gradient clipping and learning-rate schedules.
namespace tenon::optim {

class GradientAccumulator;
struct RowGradient;

/// Parameters that share settings (PyTorch: a dict of `param_groups`). A setting that is unset has
/// the optimizer's value.
struct ParameterGroup {
  /// The parameters with the names under which their state is saved.
  std::vector<nn::NamedTensor> parameters{};
  std::optional<double> lr{};            ///< learning rate; unset: the optimizer's
  std::optional<double> weight_decay{};  ///< weight decay; unset: the optimizer's
  /// True for parameters that begin to learn later than others. The group then counts its own
  /// steps, because Adam's bias corrections depend on the count. load_state_dict() accepts a state
  /// that has no entry for the whole group; the group then starts with zero moments at step 0.
  bool own_steps = false;
};

/// Limits for gradients. First every element is clamped to [-value, value], then all gradients are
/// scaled by one factor so that their common Euclidean norm is at most `norm`.
struct Clip {
  double norm = 0;   ///< the largest common norm; 0: no limit
  double value = 0;  ///< the largest absolute value of an element; 0: no limit
};

/// How Optimizer::add_slot() makes a state variable.
struct SlotOptions {
  /// load_state_dict() requires finite values; with 0, values that are not negative.
  double least = -std::numeric_limits<double>::infinity();
  double start = 0;              ///< all elements before the first step
  std::optional<DType> dtype{};  ///< unset: that of the parameter
  /// The shape for parameter k, or nothing if that parameter has no such state. Empty: the
  /// parameter's shape.
  std::function<std::optional<Shape>(std::size_t k)> shape{};
};

/// The base class of all optimizers (PyTorch: torch.optim.Optimizer). A subclass gives the update
/// rule.
class TENON_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;             ///< an optimizer is not copied
  Optimizer& operator=(const Optimizer&) = delete;  ///< an optimizer is not copied

  /// All parameters, group after group. updates() expects the gradients in this order.
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// The parameters' names, in the order of parameters().
  const std::vector<std::string>& parameter_names() const { return names_; }
  /// Assignments that take one step with these gradients when they are evaluated. Parameters that
  /// are frozen by now keep their values.
  ///
  /// @param grads  one gradient for each of parameters(), in that order
  /// @param guard  a bool scalar. Where it is false, no assignment changes anything: updates(grads,
  ///               isfinite(loss)) never lets a NaN into the weights. Running statistics belong to
  ///               the loss; take_updates() and guarded() (ops.h) guard them.
  /// @param rates  learning rates, a vector with one element for each group, of type rate_dtype().
  ///               They replace the current learning rates, so that steps that are queued together
  ///               can each have a rate. Undefined: the current rates.
  [[nodiscard("an update happens when it is evaluated")]]  //
  std::vector<Tensor>
  updates(TensorList grads, const Tensor& guard = {}, const Tensor& rates = {});
  /// The learning rate of each group when the optimizer's learning rate is `lr`.
  std::vector<double> rates(double lr) const;
  /// The data type of `rates` that loses no digits: Float32, or Float64 if a parameter is Float64.
  DType rate_dtype() const;
  /// One step of a plain training loop: computes the gradients of `loss`, clips them, updates the
  /// parameters, and evaluates all of it as one program. It does what PyTorch's zero_grad(),
  /// backward() and step() do together.
  ///
  /// Throws ValueError if the loss depends on none of the parameters, for instance because of
  /// detach() or because a compiled function returned it. Only one thread at a time may take steps:
  /// on the CPU, a step that begins during another thread's step throws ValueError.
  ///
  /// On a GPU, step() queues the work and returns without waiting for it. Reading the result with
  /// item() waits; a loop that prints the loss every 100 steps should read it only then.
  ///
  /// A class or an index out of range is a ValueError too. On the CPU step() throws it and the
  /// weights are unchanged. On a GPU the next read of a value throws it, and the weights have been
  /// updated by the other samples, unless the program evaluates updates(grads, isfinite(loss))
  /// instead.
  ///
  /// As in PyTorch, a loss that is not finite is no error and makes the weights NaN. Pass a guard
  /// to updates() if the loss can become non-finite.
  ///
  /// @param loss  a scalar
  /// @param clip  limits for the gradients; by default none
  /// @param with  more tensors to evaluate in the same program, with the values from before the
  ///              update: for instance a recurrent state from which the next step continues, or
  ///              values to print
  /// @return the loss before the update, a scalar without a graph: keeping the losses of many steps
  ///         keeps one number each
  Tensor step(const Tensor& loss, const Clip& clip = {}, TensorList with = {});

  /// The learning rate from which schedules start.
  double base_lr() const { return base_lr_; }
  /// The optimizer's current learning rate. A group with a learning rate of its own keeps the ratio
  /// of that rate to base_lr().
  double lr() const { return lr_; }
  /// Sets the current learning rate. The next step uses it without a new plan.
  void set_lr(double lr);
  std::int64_t steps() const;  ///< steps taken so far; skipped steps are not counted

  /// Moments by parameter name ("0.weight.momentum_buffer"), the step count and the learning rate.
  StateDict state_dict() const;
  /// Loads what state_dict() returned. Throws ValueError or ShapeError that names the key, and then
  /// loads nothing, if a key is missing or unexpected, if a shape does not fit, or if no training
  /// can produce the values: a moment that is not finite, or a mean of squares that is NaN or
  /// negative.
  void load_state_dict(const StateDict& state);
  /// The name and the settings that differ from the defaults: "sgd(lr=0.1, momentum=0.9)".
  virtual std::string describe() const = 0;

 protected:
  /// A parameter group as the optimizer keeps it.
  struct Group {
    Tensor lr;                ///< the learning rate, a scalar variable
    Tensor step;              ///< the step count: the optimizer's, or the group's own
    double lr_scale = 1;      ///< the group's learning rate divided by the optimizer's
    double weight_decay = 0;  ///< the group's weight decay
  };
  /// A variable and the value that the variable holds after the step.
  using Assignment = std::pair<Tensor, Tensor>;
  /// Takes the parameters and the settings that all optimizers have. Throws ValueError for a
  /// learning rate or weight decay out of range, or for parameters that cannot be trained.
  Optimizer(std::vector<ParameterGroup> groups, double lr, double weight_decay);
  /// Adds a state variable for each parameter, saved as "PARAMETER.name".
  const std::vector<Tensor>* add_slot(const std::string& name, const SlotOptions& options = {});
  /// Why the optimizer cannot update only the rows that a sparse embedding read, or null if it
  /// can: while rule() runs, parameter(k) and its state are then only those rows. A rule that would
  /// change rows with a zero gradient may do so only if it is documented as lazy.
  ///
  /// @param weight_decay  the group's weight decay
  virtual const char* why_not_rows(double weight_decay) const;
  /// The update rule: the new values of parameter k and of its state.
  ///
  /// @param k             the parameter's index in parameters()
  /// @param grad          its gradient
  /// @param lr            the learning rate, a scalar of the parameter's data type
  /// @param weight_decay  the group's weight decay
  virtual std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                       double weight_decay) = 0;
  /// Called before the rules of one updates(), to compute what the rules share.
  ///
  /// @param taken  the number of steps taken so far, a float64 scalar
  /// @param next   that number after this step, a float64 scalar
  virtual void prepare(const Tensor& taken, const Tensor& next);
  /// parameters()[k].
  const Tensor& parameter(std::size_t k) const { return parameters_[k]; }

 private:
  friend class GradientAccumulator;
  struct Update;  // of one parameter
  void check_gradient(std::size_t k, const Tensor& grad) const;
  std::vector<Tensor> update(const Update& of, const Tensor& guard);
  std::vector<Tensor> row_updates(const Update& of, const RowGradient& gradient,
                                  const Tensor& guard);
  std::vector<Tensor> gradients_for_step(const Tensor& loss, const Clip& clip) const;
  static Tensor evaluate_step(const Tensor& loss, std::vector<Tensor> updates, TensorList with);
  bool begins_own_steps(std::size_t k) const;
  StateDict beginnings(const StateDict& state) const;
  void check_values(const StateDict& state) const;
  struct Slot {
    std::string name;
    double least = 0, start = 0;
    std::vector<Tensor> tensors;  // undefined for a parameter without this state
  };
  std::vector<Tensor> parameters_;
  std::vector<std::string> names_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Tensor step_;  // float64 scalar variable: 1 - beta^step needs the digits
  double base_lr_, lr_;
};

/// The parameters that an optimizer's constructor takes: a module, a list of tensors, or groups.
/// All three convert implicitly.
struct Parameters {
  std::vector<ParameterGroup> groups;  ///< the parameter groups
  /// The trainable parameters of a module, as one group.
  TENON_API Parameters(const nn::ModuleBase& module);  // NOLINT
  /// Groups with settings of their own.
  Parameters(std::vector<ParameterGroup> list) : groups(std::move(list)) {}  // NOLINT
  /// A list of variables, as one group.
  TENON_API Parameters(const std::vector<Tensor>& list);  // NOLINT
  /// A list of variables in braces, as one group: `optim::Sgd sgd({weight, bias}, {.lr = 0.1});`
  Parameters(std::initializer_list<Tensor> list) : Parameters(std::vector<Tensor>(list)) {}
};

/// Options of Sgd, with PyTorch's names.
struct SgdOptions {
  double lr = 0.01;         ///< learning rate
  double momentum = 0;      ///< factor of the momentum buffer, 0 to 1; 0: no buffer
  double dampening = 0;     ///< share of the gradient that the buffer leaves out, 0 to 1
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
  bool nesterov = false;    ///< Nesterov momentum; needs momentum > 0 and dampening = 0
  bool maximize = false;    ///< maximize the objective instead of minimizing it
};
/// Stochastic gradient descent with momentum (PyTorch: torch.optim.SGD). Of a sparse embedding it
/// updates the rows that were read, with the same result as for all rows; momentum and weight
/// decay, which change every row, are then refused.
class TENON_API Sgd : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Sgd(Parameters parameters, const SgdOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  const char* why_not_rows(double weight_decay) const override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  SgdOptions options_;
  const std::vector<Tensor>* momentum_ = nullptr;
  Tensor first_;  // whether this is the first step
};

/// Options of Adam, with PyTorch's names.
struct AdamOptions {
  double lr = 1e-3;         ///< learning rate
  double beta1 = 0.9;       ///< decay of the mean of gradients, at least 0 and below 1
  double beta2 = 0.999;     ///< decay of the mean of squared gradients, at least 0 and below 1
  double eps = 1e-8;        ///< added to the denominator
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
  bool decoupled = false;   ///< scale the parameter by 1 - lr · weight_decay instead (AdamW)
  bool amsgrad = false;     ///< divide by the largest mean square so far (Reddi et al., 2018)
  bool maximize = false;    ///< maximize the objective instead of minimizing it
};
/// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", 2015; PyTorch:
/// torch.optim.Adam).
class TENON_API Adam : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
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

/// Options of AdamW, with PyTorch's names.
struct AdamWOptions {
  double lr = 1e-3;            ///< learning rate
  double beta1 = 0.9;          ///< decay of the mean of gradients, at least 0 and below 1
  double beta2 = 0.999;        ///< decay of the mean of squared gradients, at least 0 and below 1
  double eps = 1e-8;           ///< added to the denominator
  double weight_decay = 0.01;  ///< scales the parameter by 1 - lr · weight_decay in each step
  bool amsgrad = false;        ///< divide by the largest mean square so far (Reddi et al., 2018)
  bool maximize = false;       ///< maximize the objective instead of minimizing it
};
/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay
/// regularization", 2019; PyTorch: torch.optim.AdamW).
class TENON_API AdamW : public Adam {
 public:
  /// Throws ValueError for an option out of range.
  explicit AdamW(Parameters parameters, const AdamWOptions& options = {});
};

/// Options of RmsProp, with PyTorch's names.
struct RmsPropOptions {
  double lr = 0.01;         ///< learning rate
  double alpha = 0.99;      ///< decay of the mean of squared gradients, 0 to 1
  double eps = 1e-8;        ///< added to the denominator
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
  double momentum = 0;      ///< factor of the momentum buffer, 0 to 1; 0: no buffer
  bool centered = false;    ///< divide by the estimated standard deviation of the gradient
  bool maximize = false;    ///< maximize the objective instead of minimizing it
};
/// RMSprop (PyTorch: torch.optim.RMSprop).
class TENON_API RmsProp : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit RmsProp(Parameters parameters, const RmsPropOptions& options = {});
  std::string describe() const override;

 private:
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  RmsPropOptions options_;
  const std::vector<Tensor>*square_avg_, *grad_avg_ = nullptr, *momentum_ = nullptr;
};

/// Options of Levenberg.
struct LevenbergOptions {
  double lr = 5e-4;         ///< learning rate, before the division by mu + curvature
  double mu = 0.02;         ///< added to the curvature, above 0: limits the rate of flat weights
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
};
/// Stochastic diagonal Levenberg–Marquardt (LeCun et al., "Gradient-based learning applied to
/// document recognition", 1998). Every weight has its own learning rate, lr / (mu + h), where h is
/// the weight's curvature. Steps do not change h. Before the first measurement h is 0.
/// train::Trainer measures h before every epoch. PyTorch has no counterpart.
class TENON_API Levenberg : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Levenberg(Parameters parameters, const LevenbergOptions& options = {});
  /// Assignments h ← keep · h + share · g² for the gradients g of one sample. To make h the mean
  /// square of the gradients of N samples, evaluate the assignments for each sample with a share of
  /// 1 / N and with `keep` 0 for the first sample and 1 for the others.
  ///
  /// If the loss is a negative log-likelihood and each target is drawn from the network's own
  /// scores, the expected value of h is the diagonal of the Gauss–Newton matrix, without a second
  /// backward pass.
  ///
  /// @param grads  one gradient for each of parameters(), in that order; ValueError for another
  ///               number of gradients
  /// @param keep   a float32 scalar
  /// @param share  the weight of this sample
  [[nodiscard("an update happens when it is evaluated")]]  //
  std::vector<Tensor>
  curvature_updates(TensorList grads, const Tensor& keep, double share) const;
  std::string describe() const override;

 private:
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  LevenbergOptions options_;
  const std::vector<Tensor>* curvature_;
};

/// Options of create(). An option that is unset has the optimizer's default. defaults() says which
/// optimizer has which option.
struct OptimizerOptions {
  std::optional<double> lr{};            ///< learning rate, of all optimizers
  std::optional<double> momentum{};      ///< of sgd, rmsprop and muon
  std::optional<double> weight_decay{};  ///< of all optimizers but rprop
  std::optional<double> beta1{};         ///< of adam and its relatives, lion and lamb
  std::optional<double> beta2{};         ///< of adam and its relatives, lion and lamb
  std::optional<double> eps{};           ///< of optimizers that divide; of levenberg: mu
  std::optional<double> alpha{};         ///< of rmsprop and asgd
  std::optional<double> dampening{};     ///< of sgd
  std::optional<bool> nesterov{};        ///< of sgd and muon
  std::optional<bool> centered{};        ///< of rmsprop
  std::optional<bool> amsgrad{};         ///< of adam and adamw
  std::optional<bool> maximize{};        ///< of all optimizers but levenberg
};
/// Creates an optimizer by its name, one of names(). Throws ValueError for another name (the
/// message suggests a similar one) and for an option that the optimizer does not have.
TENON_API std::unique_ptr<Optimizer> create(const std::string& name, Parameters parameters,
                                            const OptimizerOptions& options = {});
/// Makes an optimizer. Options that are unset have its defaults.
using OptimizerMaker = std::function<std::unique_ptr<Optimizer>(Parameters parameters,
                                                                const OptimizerOptions& options)>;
/// Adds an optimizer of one's own, for create(), settings and the command. `has` holds the options
/// that it has with their default values; `lr` must be set. create() refuses the others. Throws
/// ValueError for a name that is taken, or that has other characters than lower-case letters,
/// digits and underscores, and for an empty function.
TENON_API void register_optimizer(const std::string& name, const OptimizerOptions& has,
                                  OptimizerMaker make);
/// The default values of the options that an optimizer has; the others are unset. Throws ValueError
/// for a name that is not in names().
TENON_API OptimizerOptions defaults(const std::string& name);
/// The names that create() takes: "sgd", "adam", "adamw", "rmsprop", "levenberg", "adagrad",
/// "adadelta", "adamax", "nadam", "radam", "rprop", "asgd", "lion", "muon", "lamb", "adafactor",
/// then the registered ones.
TENON_API std::vector<std::string> names();

// ---- Gradients

/// What clip_grad_norm() returns.
struct ClippedGrads {
  std::vector<Tensor> grads;  ///< the clipped gradients
  Tensor norm;                ///< the Euclidean norm of all gradients together, before clipping
};
/// The gradients after both limits of `clip`. Throws ValueError for a limit that is negative or
/// NaN.
TENON_API std::vector<Tensor> clipped(TensorList grads, const Clip& clip);
/// Scales all gradients by one factor so that their common Euclidean norm is at most `max_norm`
/// (PyTorch: torch.nn.utils.clip_grad_norm_).
TENON_API ClippedGrads clip_grad_norm(TensorList grads, double max_norm);
/// Clamps every element to [-limit, limit] (PyTorch: torch.nn.utils.clip_grad_value_).
TENON_API std::vector<Tensor> clip_grad_value(TensorList grads, double limit);

}  // namespace tenon::optim
