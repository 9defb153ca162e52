// More optimizers: what torch.optim holds besides sgd, adam, adamw and rmsprop, and Lion and LAMB.
// optim.h describes what all optimizers have in common. Names and defaults of options are
// PyTorch's. LBFGS is in lbfgs.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tenon/optim.h>

namespace tenon::optim {

/// Options of Adagrad.
struct AdagradOptions {
  double lr = 0.01;                      ///< learning rate
  double lr_decay = 0;                   ///< divides the rate of step t by 1 + (t - 1) · lr_decay
  double weight_decay = 0;               ///< adds weight_decay · parameter to the gradient
  double initial_accumulator_value = 0;  ///< start of the sum of squared gradients
  double eps = 1e-10;                    ///< added to the denominator
  bool maximize = false;                 ///< maximize the objective instead of minimizing it
};
/// Adagrad (Duchi et al., "Adaptive subgradient methods for online learning and stochastic
/// optimization", 2011; PyTorch: torch.optim.Adagrad). Of a sparse embedding it updates the rows
/// that were read, with the same result as for all rows; weight decay is then refused.
class TENON_API Adagrad : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Adagrad(Parameters parameters, const AdagradOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  const char* why_not_rows(double weight_decay) const override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  AdagradOptions options_;
  const std::vector<Tensor>* sum_;
  Tensor slowing_;  // 1 + (t - 1) · lr_decay, float64
};

/// Options of SparseAdam, with PyTorch's names.
struct SparseAdamOptions {
  double lr = 1e-3;       ///< learning rate
  double beta1 = 0.9;     ///< decay of the mean of gradients, at least 0 and below 1
  double beta2 = 0.999;   ///< decay of the mean of squared gradients, at least 0 and below 1
  double eps = 1e-8;      ///< added to the root of the mean of squared gradients
  bool maximize = false;  ///< maximize the objective instead of minimizing it
};
/// Lazy Adam (PyTorch: torch.optim.SparseAdam): of a sparse embedding it updates only the rows that
/// were read, and only their moments decay. The bias correction counts all steps. It updates all
/// elements of parameters with other gradients, which PyTorch refuses. A parameter that the loss
/// does not depend on keeps its value and moments.
class TENON_API SparseAdam : public Optimizer {
 public:
  /// Throws ValueError for an option out of range, or if a group has a weight decay, which would
  /// change every row.
  explicit SparseAdam(Parameters parameters, const SparseAdamOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  const char* why_not_rows(double weight_decay) const override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  SparseAdamOptions options_;
  const std::vector<Tensor>*exp_avg_, *exp_avg_sq_;
  Tensor correction_;  // sqrt(1 - beta2^t) / (1 - beta1^t), float64
};

/// Options of Adadelta.
struct AdadeltaOptions {
  double lr = 1;            ///< factor of the updates
  double rho = 0.9;         ///< decay of the means of squares, 0 to 1
  double eps = 1e-6;        ///< added to the means under the roots
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
  bool maximize = false;    ///< maximize the objective instead of minimizing it
};
/// Adadelta (Zeiler, "ADADELTA: an adaptive learning rate method", 2012; PyTorch:
/// torch.optim.Adadelta).
class TENON_API Adadelta : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Adadelta(Parameters parameters, const AdadeltaOptions& options = {});
  std::string describe() const override;

 private:
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  AdadeltaOptions options_;
  const std::vector<Tensor>*square_avg_, *acc_delta_;
};

/// Options of Adamax.
struct AdamaxOptions {
  double lr = 2e-3;         ///< learning rate
  double beta1 = 0.9;       ///< decay of the mean of gradients, at least 0 and below 1
  double beta2 = 0.999;     ///< decay of the largest gradient, at least 0 and below 1
  double eps = 1e-8;        ///< added to the absolute value of the gradient
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
  bool maximize = false;    ///< maximize the objective instead of minimizing it
};
/// Adam with the infinity norm (Kingma and Ba, 2015; PyTorch: torch.optim.Adamax).
class TENON_API Adamax : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Adamax(Parameters parameters, const AdamaxOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  AdamaxOptions options_;
  const std::vector<Tensor>*exp_avg_, *exp_inf_;
  Tensor correction_;  // 1 - beta1^t, float64
};

/// Options of NAdam.
struct NAdamOptions {
  double lr = 2e-3;              ///< learning rate
  double beta1 = 0.9;            ///< decay of the mean of gradients, at least 0 and below 1
  double beta2 = 0.999;          ///< decay of the mean of squared gradients, at least 0 and below 1
  double eps = 1e-8;             ///< added to the denominator
  double weight_decay = 0;       ///< adds weight_decay · parameter to the gradient
  double momentum_decay = 4e-3;  ///< how fast the momentum approaches beta1
  /// Scale the parameter by 1 - lr · weight_decay instead (PyTorch: decoupled_weight_decay).
  bool decoupled = false;
  bool maximize = false;  ///< maximize the objective instead of minimizing it
};
/// Adam with Nesterov momentum (Dozat, "Incorporating Nesterov momentum into Adam", 2016; PyTorch:
/// torch.optim.NAdam).
class TENON_API NAdam : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit NAdam(Parameters parameters, const NAdamOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  NAdamOptions options_;
  const std::vector<Tensor>*exp_avg_, *exp_avg_sq_, *mu_product_;
  Tensor mu_, mu_next_, correction2_;  // float64
};

/// Options of RAdam.
struct RAdamOptions {
  double lr = 1e-3;         ///< learning rate
  double beta1 = 0.9;       ///< decay of the mean of gradients, at least 0 and below 1
  double beta2 = 0.999;     ///< decay of the mean of squared gradients, at least 0 and below 1
  double eps = 1e-8;        ///< added to the denominator
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
  /// Scale the parameter by 1 - lr · weight_decay instead (PyTorch: decoupled_weight_decay).
  bool decoupled = false;
  bool maximize = false;  ///< maximize the objective instead of minimizing it
};
/// Rectified Adam (Liu et al., "On the variance of the adaptive learning rate and beyond", 2020;
/// PyTorch: torch.optim.RAdam).
class TENON_API RAdam : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit RAdam(Parameters parameters, const RAdamOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  RAdamOptions options_;
  const std::vector<Tensor>*exp_avg_, *exp_avg_sq_;
  // 1 - beta1^t, the factor of the adaptive rate, whether the rate is adaptive yet
  Tensor correction1_, rectified_, is_adaptive_;
};

/// Options of Rprop.
struct RpropOptions {
  double lr = 0.01;        ///< first step size of every element
  double eta_minus = 0.5;  ///< factor of the step size when the gradient changes its sign, below 1
  double eta_plus = 1.2;   ///< factor of the step size when it keeps its sign, above 1
  double step_min = 1e-6;  ///< smallest step size, above 0
  double step_max = 50;    ///< largest step size
  bool maximize = false;   ///< maximize the objective instead of minimizing it
};
/// Resilient backpropagation, for gradients of all the data (Riedmiller and Braun, "A direct
/// adaptive method for faster backpropagation learning: the RPROP algorithm", 1993; PyTorch:
/// torch.optim.Rprop). The learning rate matters only in the first step.
class TENON_API Rprop : public Optimizer {
 public:
  /// Throws ValueError for an option out of range, or if a group has a weight decay: the rule uses
  /// only the signs of gradients.
  explicit Rprop(Parameters parameters, const RpropOptions& options = {});
  std::string describe() const override;

 private:
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  RpropOptions options_;
  const std::vector<Tensor>*prev_, *step_size_;
};

/// Options of Asgd.
struct AsgdOptions {
  double lr = 0.01;         ///< learning rate
  double lambd = 1e-4;      ///< decay of the parameters and of the rate
  double alpha = 0.75;      ///< exponent of the decay of the rate
  double t0 = 1e6;          ///< step at which the average begins
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
  bool maximize = false;    ///< maximize the objective instead of minimizing it
};
/// Averaged stochastic gradient descent (Polyak and Juditsky, "Acceleration of stochastic
/// approximation by averaging", 1992; PyTorch: torch.optim.ASGD). state_dict() has the averages of
/// the parameters as "PARAMETER.ax".
class TENON_API Asgd : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Asgd(Parameters parameters, const AsgdOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  AsgdOptions options_;
  const std::vector<Tensor>*eta_, *ax_;
  Tensor mu_, next_;  // the weight of a step in the average, the step count; float64
};

/// Options of Lion.
struct LionOptions {
  double lr = 1e-4;         ///< learning rate
  double beta1 = 0.9;       ///< share of the momentum in the update, 0 to 1
  double beta2 = 0.99;      ///< decay of the momentum, 0 to 1
  double weight_decay = 0;  ///< scales the parameter by 1 - lr · weight_decay in each step
  bool maximize = false;    ///< maximize the objective instead of minimizing it
};
/// Sign of an interpolated momentum (Chen et al., "Symbolic discovery of optimization algorithms",
/// 2023). The learning rate is typically 3 to 10 times smaller than AdamW's. PyTorch has no
/// counterpart.
class TENON_API Lion : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Lion(Parameters parameters, const LionOptions& options = {});
  std::string describe() const override;

 private:
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  LionOptions options_;
  const std::vector<Tensor>* exp_avg_;
};

/// How Muon scales the learning rate of a matrix of R rows and C columns.
enum class MuonRate {
  Original,          ///< sqrt(max(1, R / C))
  MatchRmsAdamW,     ///< 0.2 · sqrt(max(R, C)): updates as large as AdamW's
  SpectralUnclamped  ///< sqrt(R / C)
};
/// Options of Muon.
struct MuonOptions {
  double lr = 1e-3;                    ///< learning rate
  double weight_decay = 0.1;           ///< scales the parameter by 1 - lr · weight_decay
  double momentum = 0.95;              ///< decay of the mean of gradients, 0 to 1
  bool nesterov = true;                ///< Nesterov momentum
  double eps = 1e-7;                   ///< smallest norm that the update is divided by
  int ns_steps = 5;                    ///< Newton-Schulz iterations, 1 to 99
  MuonRate rate = MuonRate::Original;  ///< PyTorch: adjust_lr_fn
  bool maximize = false;               ///< maximize the objective instead of minimizing it
  double adamw_beta1 = 0.9;            ///< of parameters that AdamW updates
  double adamw_beta2 = 0.95;           ///< of parameters that AdamW updates
  double adamw_eps = 1e-8;             ///< of parameters that AdamW updates
  /// Whether a parameter of two or more axes is orthogonalized. Empty: all of them. Embeddings and
  /// output layers are usually left to AdamW.
  std::function<bool(const std::string& name, const Tensor& parameter)> chosen{};
};
/// Momentum whose update is orthogonalized by Newton-Schulz iterations (Jordan et al., "Muon: an
/// optimizer for hidden layers in neural networks", 2024; PyTorch: torch.optim.Muon).
///
/// A parameter of more than two axes, such as the weight of a convolution, counts as a matrix of
/// its first axis and all others. AdamW updates the parameters that are not chosen, and those of
/// fewer than two axes, with the same learning rate and weight decay. PyTorch refuses both kinds.
/// The iterations run in the precision of the context; PyTorch always runs them in bf16.
class TENON_API Muon : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Muon(Parameters parameters, const MuonOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  std::vector<Assignment> adamw_rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                     const Tensor& start) const;
  MuonOptions options_;
  std::vector<bool> chosen_;
  const std::vector<Tensor>*momentum_, *exp_avg_, *exp_avg_sq_;
  Tensor correction1_, correction2_;  // 1 - beta^t, float64
};

/// Options of Lamb.
struct LambOptions {
  double lr = 1e-3;            ///< learning rate
  double beta1 = 0.9;          ///< decay of the mean of gradients, at least 0 and below 1
  double beta2 = 0.999;        ///< decay of the mean of squared gradients, at least 0 and below 1
  double eps = 1e-6;           ///< added to the denominator
  double weight_decay = 0.01;  ///< adds weight_decay · parameter to the update
  bool maximize = false;       ///< maximize the objective instead of minimizing it
};
/// Adam whose update of each parameter has the norm of that parameter (You et al., "Large batch
/// optimization for deep learning: training BERT in 76 minutes", 2020). The ratio of the norms is 1
/// if one of them is 0. PyTorch has no counterpart.
class TENON_API Lamb : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Lamb(Parameters parameters, const LambOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  LambOptions options_;
  const std::vector<Tensor>*exp_avg_, *exp_avg_sq_;
  Tensor correction1_, correction2_;  // 1 - beta^t, float64
};

/// Options of Adafactor.
struct AdafactorOptions {
  double lr = 0.01;              ///< limit of the relative step size
  double beta2_decay = -0.8;     ///< 1 - t^beta2_decay is the decay of the mean squares; below 0
  std::optional<double> eps1{};  ///< smallest root mean square; unset: the dtype's epsilon
  double eps2 = 1e-3;            ///< smallest scale of a parameter
  double d = 1;                  ///< largest root mean square of an update
  double weight_decay = 0;       ///< scales the parameter by 1 - lr · weight_decay in each step
  bool maximize = false;         ///< maximize the objective instead of minimizing it
};
/// Adam with mean squares factored into rows and columns, and without momentum (Shazeer and Stern,
/// "Adafactor: adaptive learning rates with sublinear memory cost", 2018; PyTorch:
/// torch.optim.Adafactor). A parameter [.., R, C] needs R + C numbers of state instead of R · C.
class TENON_API Adafactor : public Optimizer {
 public:
  /// Throws ValueError for an option out of range.
  explicit Adafactor(Parameters parameters, const AdafactorOptions& options = {});
  std::string describe() const override;

 private:
  void prepare(const Tensor& taken, const Tensor& next) override;
  std::vector<Assignment> rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                               double weight_decay) override;
  AdafactorOptions options_;
  const std::vector<Tensor>*row_var_, *col_var_, *variance_;
  Tensor share_, limit_;  // weight of a new gradient in the mean squares, 1 / sqrt(t); float64
};

}  // namespace tenon::optim
