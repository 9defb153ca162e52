// Averages of weights (EMA, SWA), and gradients that are accumulated over several batches: what
// torch.optim.swa_utils holds, and the loop that PyTorch programs write around backward().
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/nn.h>
#include <tenon/optim.h>

namespace tenon::optim {

/// How the weights of several steps are averaged. ema() and swa() make one.
struct Averaging {
  /// The kinds of average.
  enum class Kind {
    None,  ///< no average
    Ema,   ///< exponential moving average, updated after every step
    Swa    ///< mean with equal weights, updated after every epoch
  };
  Kind kind = Kind::None;  ///< the kind of average
  double decay = 0.999;    ///< of Ema: the average's own share in an update, at least 0 and below 1
  /// Of train::Trainer: epochs before the average begins. Until then it is a copy of the weights.
  int start_epochs = 0;
  /// Whether there is an average.
  bool any() const { return kind != Kind::None; }
};
/// An exponential moving average: average ← decay · average + (1 - decay) · weights. The first
/// update copies the weights. Throws ValueError for a decay outside [0, 1). PyTorch:
/// `get_ema_avg_fn(decay)`.
TENON_API Averaging ema(double decay = 0.999, int start_epochs = 0);
/// Stochastic weight averaging: the mean of the weights after each update, all with equal weight
/// (Izmailov et al., "Averaging weights leads to wider optima and better generalization", 2018).
TENON_API Averaging swa(int start_epochs = 0);

/// A deep copy of a network whose parameters are averages of the network's (PyTorch:
/// torch.optim.swa_utils.AveragedModel). Buffers are copied from the network at each update.
///
///     optim::AveragedModel average(net, optim::ema(0.999));
///     for (…) {
///       adam.step(loss(net(x), y));
///       average.update();
///     }
///     average.net()(x);
class TENON_API AveragedModel {
 public:
  /// Copies the network (nn::clone()); the copy is in evaluation mode. Throws as nn::clone(), and
  /// ValueError for Averaging::Kind::None or an option out of range.
  explicit AveragedModel(const nn::AnyModule& net, const Averaging& averaging = ema());
  /// The network with the averaged parameters.
  const nn::AnyModule& net() const { return average_; }
  /// Number of updates so far (PyTorch: `n_averaged`).
  std::int64_t count() const;
  /// Takes the current parameters and buffers of the network into the average.
  void update();
  /// The assignments of update(), for a program that also takes a step.
  ///
  /// @param step   assignments that are evaluated together with these, for example those of
  ///               Optimizer::updates(): the average takes the values that they assign
  /// @param guard  a bool scalar: where it is false, nothing changes
  [[nodiscard("an update happens when it is evaluated")]]  //
  std::vector<Tensor>
  updates(TensorList step = {}, const Tensor& guard = {}) const;
  /// Begins again: copies the network's parameters and buffers and sets count() to 0.
  void restart();
  /// The average's tensors by PyTorch's names ("module.0.weight") and "n_averaged".
  StateDict state_dict() const;
  /// Loads what state_dict() returned. Throws as nn::ModuleBase::load_state_dict().
  void load_state_dict(const StateDict& state);

 private:
  struct Pair {
    Tensor source, average;
    bool is_buffer;
  };
  Averaging averaging_;
  nn::AnyModule net_, average_;
  std::vector<Pair> pairs_;
  Tensor count_;
};

/// Adds up the gradients of several batches and lets the optimizer take one step with their mean:
/// steps of a large batch in the memory of a small one.
///
///     optim::GradientAccumulator accumulated(adam, 4);
///     for (…) accumulated.step(loss(net(x), y));  // updates the weights at every fourth call
class TENON_API GradientAccumulator {
 public:
  /// Accumulates the gradients of `batches` batches. The optimizer must outlive the accumulator.
  /// Throws ValueError if `batches` is below 1.
  GradientAccumulator(Optimizer& optimizer, int batches);
  /// The gradients of one batch. Every call whose number is a multiple of `batches` clips the mean
  /// of the gradients and updates the parameters. Otherwise as Optimizer::step().
  Tensor step(const Tensor& loss, const Clip& clip = {}, TensorList with = {});
  /// Number of batches since the last update.
  std::int64_t pending() const;

  /// What add() returns.
  struct Sums {
    std::vector<Tensor> means;  ///< gradients so far divided by the number of batches in a step
    Tensor complete;            ///< bool scalar: whether the step has all its batches
    std::vector<Tensor> sums;   ///< the gradients so far
  };
  /// The sums with the gradients of one more batch, for a program of your own. Evaluate
  /// `optimizer.updates(means, complete)` and updates().
  ///
  /// @param grads  one gradient for each of the optimizer's parameters; undefined for frozen ones
  Sums add(TensorList grads) const;
  /// Assignments that keep the sums, or clear them after a complete step. Where `guard`, a bool
  /// scalar, is false, the batch is left out.
  [[nodiscard("an update happens when it is evaluated")]]  //
  std::vector<Tensor>
  updates(const Sums& sums, const Tensor& guard = {}) const;

  /// The sums ("0.weight.gradient_sum") and the number of batches in them ("batches").
  StateDict state_dict() const;
  /// Loads what state_dict() returned. Throws ValueError or ShapeError that names a key that is
  /// missing, unexpected or does not fit.
  void load_state_dict(const StateDict& state);

 private:
  Optimizer& optimizer_;
  int batches_;
  std::vector<Tensor> sums_;
  Tensor filled_;
};

}  // namespace tenon::optim
