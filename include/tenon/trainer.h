// The Trainer: trains a module that a program built, on batches of a loader.
//
// Every step is one program: forward pass, loss, number of correct predictions, gradients and
// guarded updates. Nothing here prints.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/averaging.h>
#include <tenon/data.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/task.h>
#include <tenon/train_reports.h>

namespace tenon::train {

/// Number of steps to queue in one launch on a GPU if one step takes `seconds`: a power of two from
/// 1 to 32 that fills about four milliseconds. Between two launches a GPU is idle for some
/// microseconds. Throws ValueError for a negative or NaN time.
TENON_API int steps_in_launch(double seconds);

/// What training continues with from some epoch on (TrainOptions::next_stage). The network must
/// have the same tensors under the same names, and the loader the same batch size. All members must
/// outlive the trainer.
struct Stage {
  nn::AnyModule net;                      ///< the network to train from now on
  optim::Optimizer* optimizer = nullptr;  ///< its optimizer
  data::Loader* train = nullptr;          ///< its training data
  data::Loader* validation = nullptr;     ///< its validation data; null if fit() was given none
  data::Loader* test = nullptr;           ///< its test data; null if fit() was given none
};

/// Options of Trainer.
struct TrainOptions {
  int epochs = 5;              ///< passes over the training data
  std::int64_t max_steps = 0;  ///< stop after this many steps; 0: no limit
  /// Learning-rate schedule, a name that optim::create_schedule() takes.
  std::string schedule = "constant";
  /// Options of the schedule. The trainer fills in the step counts.
  optim::ScheduleOptions schedule_options{};
  /// Makes a schedule of your own, which then replaces `schedule`: a class derived from
  /// optim::Schedule, or a combination of schedules. It gets `schedule_options` with the step
  /// counts. The constructor of the Trainer calls it once with counts of 1 to check it. PyTorch:
  /// `LambdaLR`.
  std::function<std::unique_ptr<optim::Schedule>(const optim::ScheduleOptions& options)>
      make_schedule{};
  /// An earlier length of a run whose number of epochs was changed: up to step `until` the schedule
  /// is that of a run of `total` steps.
  struct Length {
    std::int64_t until = 0;  ///< the last step with this length
    std::int64_t total = 0;  ///< the number of steps that the run had then
  };
  std::vector<Length> earlier_lengths{};  ///< earlier lengths, in ascending order
  /// Batches whose gradients are accumulated for one update of the weights. The update uses their
  /// mean and the learning rate of the last one; schedules and step counts continue to count
  /// batches. A batch that is left out, for instance because the guard refuses it, does not count.
  /// Batches that do not fill an update at the end of an epoch belong to the first update of the
  /// next epoch; at the end of a stage or of the run they have no effect.
  int accumulate = 1;
  /// Averages the weights (optim::ema(), optim::swa()). The average is what is validated, chosen
  /// as the best epoch, tested, saved and left in the network; training continues from the weights
  /// themselves. With swa() the running statistics of batch normalization are measured again on
  /// the training data before the average is used (update_batch_norm()).
  optim::Averaging averaging{};
  double clip_norm = 0;   ///< largest common norm of all gradients (optim::Clip); 0: no limit
  double clip_value = 0;  ///< largest absolute value of a gradient's element; 0: no limit
  /// What the network is trained for, for instance find_task("language"): metrics, their names, and
  /// which one chooses the best epoch. Null: the task of the loss (nn::Loss::for_task()), else
  /// "classification" if the data has classes and "regression" if it has none.
  std::shared_ptr<const Task> task{};
  nn::Loss evaluation_loss{};  ///< the loss of evaluations; empty: the training loss
  /// A teacher network for distillation. It is in evaluation mode and does not learn. It takes the
  /// network's inputs and gives scores of the same shape. The training loss is then
  ///
  ///     (1 - distill_weight) · loss
  ///       + distill_weight · distillation_loss(scores, teacher's scores, temperature)
  ///
  /// For sequences the distillation loss covers the tokens whose target is not negative.
  std::optional<nn::AnyModule> teacher{};
  double temperature = 4;       ///< distillation temperature, above 0
  double distill_weight = 0.5;  ///< weight of the teacher's scores in the loss, 0 to 1
  /// Mixup and CutMix of the images of each training batch and their labels. The draws depend on
  /// the loader's seed, the epoch and the batch. A sample counts as correct if the prediction is
  /// the class with the larger share.
  data::Mixing mixing{};
  bool guard = true;  ///< a step whose loss is not finite changes nothing
  /// Early stopping: epochs without a better metric after which training ends; 0: off. The metric
  /// is what the task monitors on the validation part: the accuracy of a classification, else the
  /// loss unless the task says otherwise. Without a validation part it is the training loss.
  int early_stopping = 0;
  /// fit() leaves the weights of the epoch with the best validation metric in the model. Without a
  /// validation part the weights of the last epoch stay.
  bool keep_best = true;
  int evaluate_every = 1;  ///< epochs between two measurements of the validation part
  /// After this many epochs the run continues with what `next_stage` returns, for instance when
  /// frozen parts begin to learn; 0: never.
  int stage_epochs = 0;
  /// Returns the network, optimizer and loaders of the next stage. Called once: when the epoch
  /// after `stage_epochs` begins, or when a run that is past that epoch is resumed. Parameters that
  /// the old and the new optimizer share keep their state. All other parameters must be in groups
  /// with steps of their own (optim::ParameterGroup::own_steps).
  std::function<Stage()> next_stage{};
  /// Steps in one launch if the training data is in GPU memory; 0: chosen by steps_in_launch(). The
  /// results are the same for every value.
  int steps_per_launch = 0;
  // The run folder.
  std::string run_dir{};  ///< folder for logs, checkpoints and the model; "": nothing is written
  bool resume = false;    ///< continue from the folder's latest checkpoint
  /// Identifies the training samples; stored in checkpoints. A resume with another digest is
  /// refused unless one of the two is "".
  std::string data_digest{};
  /// Identifies the weights of `teacher`, in the same way.
  std::string teacher_digest{};
  int keep_checkpoints = 2;           ///< how many of the newest checkpoints are kept
  std::int64_t checkpoint_steps = 0;  ///< steps between checkpoints inside an epoch; 0: by time
  double checkpoint_seconds = 30;     ///< seconds between them; 0: only at the end of epochs
  std::vector<std::shared_ptr<Callback>> callbacks{};  ///< receivers of progress; none null
  /// Called after every step (on a GPU: after every launch). If it returns true, fit() writes a
  /// checkpoint and returns StopReason::Interrupted.
  std::function<bool()> stop{};
  /// If above 0, fit() stops after this step of the run as if `stop` had returned true there. (On a
  /// GPU steps are queued ahead, so a callback learns of a step when later ones have begun.)
  std::int64_t stop_after = 0;
  /// Key-value pairs that are added to the metadata of model.safetensors.
  std::vector<std::pair<std::string, std::string>> model_metadata{};
  /// Settings::toml(). Stored in checkpoints, and written to settings.toml with the first
  /// checkpoint.
  std::string settings_toml{};
  std::string tokenizer_json{};  ///< written to tokenizer.json; "": no file
  /// Writes more files into the run folder, whose path it gets. Called before settings.toml is
  /// written. It may begin work in the background that `before_results` waits for.
  std::function<void(const std::string& dir)> write_extra_files{};
  /// Called before weights of a later step than the first checkpoint's are written: at each
  /// checkpoint, each best epoch and the end.
  std::function<void()> before_results{};
};

/// Combines the scores of the views of N samples (test-time augmentation, ten-crop testing).
///
/// @param scores      [N * views, classes], all views of the first sample first
/// @param views       views of each sample
/// @param quantities  false: the result's softmax is the mean of the views' softmax; true: the
///                    result is the mean of the scores, for regression
/// @return [N, classes]. Throws ShapeError for another shape.
TENON_API Tensor mean_of_views(const Tensor& scores, std::int64_t views, bool quantities = false);

/// Applies mixup or CutMix to a batch (TrainOptions::mixing).
///
/// @param batch    floating-point inputs [N, …] and class targets [N]
/// @param draw     what data::draw_mix() drew
/// @param classes  the number of classes
/// @return mixed inputs, and targets as probabilities [N, classes], float32. Throws DTypeError or
///         ShapeError for another batch.
TENON_API data::Batch mixed(const data::Batch& batch, const data::MixDraw& draw,
                            std::int64_t classes);

/// Measures the running means and variances of all batch normalization layers again: their mean
/// over the batches of one epoch of the loader, in training mode. For weights that were averaged or
/// changed otherwise. Draws no numbers of the current generator; modes are kept. Does nothing
/// without such layers. PyTorch: `torch.optim.swa_utils.update_bn`.
TENON_API void update_batch_norm(const nn::AnyModule& net, data::Loader& loader);

/// Trains a module on batches (input, target), as Keras's fit() or PyTorch Lightning's Trainer. The
/// optimizer must outlive the trainer.
class TENON_API Trainer {
 public:
  /// Throws ValueError if the loss is empty, a callback is null, an option is out of range, or none
  /// of the network's parameters is in the optimizer. A subset of them is enough. Parameters of the
  /// optimizer that are not in the network must be in the loss, else fit() throws.
  Trainer(nn::AnyModule net, nn::Loss loss, optim::Optimizer& optimizer, TrainOptions options = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;             ///< a trainer is not copied
  Trainer& operator=(const Trainer&) = delete;  ///< a trainer is not copied

  /// Trains. After each epoch it measures the validation part; the best weights, early stopping and
  /// the schedule "plateau" depend on that part alone. It measures the test part once, when
  /// training has ended, with the weights that are kept (TrainResult::test); nothing depends on the
  /// result. A run that is resumed after its end does not measure the test part again.
  ///
  /// Throws:
  /// - NumericError if the loss becomes non-finite. It names the first layer whose output is not
  ///   finite; the weights are those from before that step. NumericError too if non-finite weights
  ///   would be saved or left by the last step.
  /// - ValueError, before the first step, if the epoch's last batch has one sample and the network
  ///   cannot train on one, for instance because of batch normalization.
  /// - ValueError, before the first step, if the loss depends on no parameter of the optimizer.
  /// - ShapeError, DTypeError or ValueError that names the validation or the test part if the
  ///   network or the loss cannot take its samples.
  ///
  /// The modules of the network and of the teacher are left in the mode (training or evaluation)
  /// that they had, also after an exception.
  TrainResult fit(data::Loader& train, data::Loader* validation = nullptr,
                  data::Loader* test = nullptr);
  /// Trains with a validation part and without a test part.
  TrainResult fit(data::Loader& train, data::Loader& validation) { return fit(train, &validation); }
  /// Trains with a validation part and a test part.
  TrainResult fit(data::Loader& train, data::Loader& validation, data::Loader& test) {
    return fit(train, &validation, &test);
  }
  /// Measures the network on all samples of a loader. If samples have several views, their scores
  /// are combined by mean_of_views(). Images that the dataset leaves out
  /// (data::ImageOptions::broken_left_out) are not counted; throws FormatError if none is left. The
  /// modules keep their modes.
  Evaluation evaluate(data::Loader& loader);
  /// The network's output, in evaluation mode, for a batch of inputs as the loader gives them. The
  /// modules keep their modes.
  Tensor predict(const Tensor& inputs);
  /// The network.
  const nn::AnyModule& net() const;

  struct Impl;  ///< the implementation, for use in the library

 private:
  std::unique_ptr<Impl> impl_;
};

/// The first layer, in order of calls, whose output or parameter is not finite: "conv1 (Conv2d(…)):
/// output"; "" if all are finite.
TENON_API std::string first_non_finite(const nn::Module& net, const Tensor& input);

}  // namespace tenon::train
