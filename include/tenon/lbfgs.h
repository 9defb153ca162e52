// L-BFGS. Unlike the optimizers of optim.h it evaluates the loss several times in a step, so it
// takes a function that builds the loss, and its steps are not part of a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/optim.h>

namespace tenon::optim {

/// Options of Lbfgs, with PyTorch's names.
struct LbfgsOptions {
  double lr = 1;                   ///< step length; with a line search the first one that is tried
  int max_iter = 20;               ///< iterations of one step()
  int max_eval = 0;                ///< evaluations of the loss in one step(); 0: 1.25 · max_iter
  double tolerance_grad = 1e-7;    ///< a step ends when no gradient is larger
  double tolerance_change = 1e-9;  ///< a step ends when loss or parameters change less
  int history_size = 100;          ///< pairs of changes that are kept
  bool strong_wolfe = false;       ///< line search by the strong Wolfe conditions
  bool maximize = false;           ///< maximize the objective instead of minimizing it
};

/// Limited-memory BFGS (Liu and Nocedal, "On the limited memory BFGS method for large scale
/// optimization", 1989; PyTorch: torch.optim.LBFGS), for losses of all the data:
///
///     optim::Lbfgs lbfgs(net, {.strong_wolfe = true});
///     for (int k = 0; k < 20; ++k) lbfgs.step([&] { return mse_loss(net(x), y); });
///
/// It needs 2 · history_size + 4 times the memory of the parameters. Frozen parameters keep their
/// values. The Trainer does not take it, because a step of the Trainer evaluates the loss once.
class TENON_API Lbfgs {
 public:
  /// Builds the loss, a scalar, from the present parameters. It must give the same loss for the
  /// same parameters: without dropout, and without new data.
  using Closure = std::function<Tensor()>;
  /// Throws ValueError for an option out of range, for parameters that cannot be trained, and for
  /// several groups or a group with settings of its own.
  explicit Lbfgs(Parameters parameters, const LbfgsOptions& options = {});

  /// One step: up to max_iter iterations. Throws ValueError if the loss depends on none of the
  /// parameters. If the closure throws, the parameters are those of the last finished iteration.
  ///
  /// @return the loss before the step, a scalar without a graph
  Tensor step(const Closure& closure);

  /// The parameters.
  const std::vector<Tensor>& parameters() const { return parameters_; }
  double lr() const { return lr_; }                          ///< the step length
  void set_lr(double lr);                                    ///< Sets the step length.
  std::int64_t iterations() const { return iterations_; }    ///< iterations so far
  std::int64_t evaluations() const { return evaluations_; }  ///< evaluations of the loss so far

  /// Direction, history and counts. A step after load_state_dict() has the same bits as without.
  StateDict state_dict() const;
  /// Loads what state_dict() returned. Throws ValueError or ShapeError, and loads nothing, if a key
  /// is missing or unexpected, or does not fit the parameters.
  void load_state_dict(const StateDict& state);
  /// The name and the settings that differ from the defaults.
  std::string describe() const;

 private:
  struct Pair {
    Tensor y, s;    // changes of gradient and parameters, [size]
    double ro = 0;  // 1 / (y · s)
  };
  using Evaluation = std::pair<double, Tensor>;  // the loss to minimize, its gradient [size]
  Evaluation evaluate(const Closure& closure, Tensor* loss = nullptr);
  Tensor flat(TensorList values) const;
  void move(const Tensor& from, const Tensor& direction, double length) const;
  void remember(const Tensor& grad);
  Tensor newton_direction(const Tensor& grad) const;
  Evaluation advance(const Closure& closure, const Evaluation& at, bool is_last, int budget);

  std::vector<Tensor> parameters_;
  LbfgsOptions options_;
  double lr_ = 1;
  DType dtype_ = DType::Float32;
  std::int64_t size_ = 0, iterations_ = 0, evaluations_ = 0;
  std::vector<Pair> history_;
  Tensor direction_, last_grad_;   // undefined before the first iteration
  double length_ = 0, scale_ = 1;  // of the last step; of the first guess of the inverse Hessian
};

}  // namespace tenon::optim
