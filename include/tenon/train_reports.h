// What training and evaluation report: the progress of a Trainer or a run, received by a Callback,
// the results of a training, and the metrics of an evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/metrics.h>
#include <tenon/module.h>
#include <tenon/notes.h>
#include <tenon/task.h>

/// The Trainer, runs and trained models.
namespace tenon::train {

/// Progress after one step, for Callback::on_step().
struct StepReport {
  int epoch = 0;                     ///< the current epoch, from 1
  std::int64_t step = 0;             ///< the step's number in the whole run, from 1
  std::int64_t step_in_epoch = 0;    ///< the step's number in the epoch, from 1
  std::int64_t steps_per_epoch = 0;  ///< steps in each epoch
  double loss = 0;                   ///< the loss of this step
  double mean_loss = 0;              ///< the mean loss of the epoch so far
  std::optional<double> accuracy;    ///< of the epoch so far; unset if the task has none
  double lr = 0;                     ///< the learning rate of this step
  std::int64_t items = 0;            ///< samples in this step
  double items_per_s = 0;            ///< recent throughput, in samples per second
  double seconds_left = 0;           ///< estimated time until the run ends, in seconds
};

/// Results of one epoch, for Callback::on_epoch() and TrainResult::epochs.
struct EpochReport {
  int epoch = 0;          ///< the epoch, from 1
  std::int64_t step = 0;  ///< the number of the epoch's last step in the whole run
  /// Mean training loss, defined as Evaluation::loss. For sequences it is the mean over the tokens
  /// that count.
  double train_loss = 0;
  /// Share of correct predictions (Task::correct()); unset if the task has no such share.
  std::optional<double> train_accuracy;
  /// Loss on the validation part. This and the other validation values are unset if there is no
  /// validation part or if it was not measured after this epoch.
  std::optional<double> validation_loss;
  /// The task's metrics on the validation part (Task::metrics()), by name: "accuracy" of a
  /// classification, "mae" and "r2" of a regression.
  Metrics validation_metrics;
  double lr = 0;            ///< the learning rate of the last step
  double seconds = 0;       ///< duration of the epoch
  double items_per_s = 0;   ///< throughput, in samples per second
  double data_seconds = 0;  ///< the part of `seconds` spent waiting for the next batch
  bool best = false;        ///< whether the monitored metric is the best so far
  /// Samples of the validation part that were measured; 0 if it was not measured.
  std::int64_t validation_samples = 0;
};

/// Results on the test part with the weights that are kept. The test part is measured once, when
/// training has ended.
struct TestReport {
  int epoch = 0;             ///< the epoch whose weights were measured
  std::int64_t step = 0;     ///< the last step of that epoch
  std::int64_t samples = 0;  ///< samples that were measured
  double loss = 0;           ///< defined as Evaluation::loss
  Metrics metrics;           ///< the task's metrics by name, as EpochReport::validation_metrics
};

/// Why training ended.
enum class StopReason {
  Finished,    ///< all epochs or all of TrainOptions::max_steps are done
  EarlyStop,   ///< early stopping, or a callback's should_stop()
  Interrupted  ///< TrainOptions::stop or stop_after; a resume continues the run
};

/// Receives progress. Override the methods that you need. All are called on the training thread.
class TENON_API Callback {
 public:
  virtual ~Callback();
  /// A sentence for people about a decision. start_run() and resume_run() call it before training,
  /// fit() calls it if the monitored metric was NaN.
  virtual void on_note(const std::string& note);
  /// Progress of computing the outputs of frozen parts, before training: start_run() and
  /// resume_run() call it with `done` of `samples` samples, first with 0.
  virtual void on_frozen(std::int64_t done, std::int64_t samples);
  /// The first call of fit(), with the network that fit() is going to train.
  virtual void on_network(const nn::AnyModule& net);
  /// Called before the first step, with its number and the number of steps of the whole run.
  virtual void on_start(std::int64_t first_step, std::int64_t total_steps);
  /// Called after each step.
  virtual void on_step(const StepReport& report);
  /// Called after each batch of an evaluation: of the validation part after an epoch, or of the
  /// test part at the end of training.
  virtual void on_evaluation(data::Split part, std::int64_t batch, std::int64_t batches);
  /// Called after each epoch and its validation.
  virtual void on_epoch(const EpochReport& report);
  /// Called when a checkpoint has been written, with its path.
  virtual void on_checkpoint(const std::string& path);
  /// Return true to end training after this epoch.
  virtual bool should_stop(const EpochReport& report);
};

/// How many of some samples a run has been trained on.
struct SeenSamples {
  std::int64_t samples = 0;   ///< the samples that were looked up
  std::int64_t seen = 0;      ///< of `compared`: those that are among the training samples
  std::int64_t compared = 0;  ///< of `samples`: fewer if windows of a text are too short to compare
  std::int64_t every = 1;     ///< the run's record holds one of this many training samples
  /// Of `seen`: how many different inputs they have; 0 if that was not counted. Few different
  /// inputs, such as rows of small whole numbers, can equal training samples by chance.
  std::int64_t distinct = 0;
  /// Whether `seen` is exact. False: about() is an estimate.
  bool is_exact() const { return every == 1 && compared == samples; }
  /// How many of `samples` have been seen; an estimate unless is_exact().
  TENON_API std::int64_t about() const;
};
/// The numbers as text: "150 of 200 samples", "none of 50 samples", or "about 90 of 100 samples
/// (30, compared with one of every 3 training samples)". If fewer than half of the inputs differ:
/// "50 of 50 samples (9 different inputs, which can be equal by chance)".
TENON_API std::string to_string(const SeenSamples& seen);
/// A note for samples, some of which training has seen: "training has seen 150 of 200 samples of
/// the test part".
///
/// @param seen     the samples
/// @param of       what they are, to follow "of": "the test part"; "": nothing follows
/// @param allowed  whether refuse_notes() accepts the note
TENON_API Note note_on_seen(const SeenSamples& seen, const std::string& of, bool allowed);

/// Metrics of a model on some data. Every metric is a mean over all targets that count, whatever
/// the batch size. A metric that does not suit the data is NaN or unset.
struct Evaluation {
  // What was measured.
  /// The data source, "csv:rows.csv"; "" for Trainer::evaluate().
  std::string data{};
  /// The part of the source; unset for Trainer::evaluate(), which measures all samples of its
  /// loader.
  std::optional<data::Split> part{};
  std::int64_t items = 0;             ///< samples that were measured
  std::int64_t of_items = 0;          ///< samples of all parts of the source; 0: unknown
  std::int64_t targets = 0;           ///< targets that count: one for each sample or token
  std::int64_t ignored = 0;           ///< samples or tokens whose target the loss ignores
  std::vector<std::string> broken{};  ///< samples left out because their files cannot be decoded
  /// How many of the samples the run was trained on; unset if that is not known.
  std::optional<SeenSamples> seen{};
  std::string seen_unknown{};  ///< why `seen` is unset; else ""
  /// Notes of the data (Dataset::notes()), on where the data was found, and on the network's
  /// outputs.
  Notes notes{};
  double seconds = 0;      ///< duration
  double items_per_s = 0;  ///< throughput, in samples per second

  // The metrics.
  /// The weighted mean loss: each target's loss times its weight (class weights; 0 for ignored
  /// targets), divided by the sum of the weights.
  double loss = 0;
  Metrics metrics{};         ///< the task's metrics by name (Task::metrics())
  double accuracy = 0;       ///< share of the counted targets that are predicted
  double top3_accuracy = 0;  ///< share of the targets among the 3 largest scores
  double top5_accuracy = 0;  ///< share of the targets among the 5 largest scores
  double log_loss = 0;       ///< metrics::log_loss(), without class weights or label smoothing
  std::optional<double> roc_auc{};            ///< metrics::ClassMetrics::roc_auc()
  std::optional<double> average_precision{};  ///< metrics::ClassMetrics::average_precision()
  metrics::ConfusionMatrix confusion{1};      ///< counts by true and predicted class
  /// Errors of a regression: set if the task is a regression, and the targets are as many numbers
  /// as the network's outputs. The accuracies are then NaN.
  std::optional<metrics::RegressionErrors> errors{};
  /// For a translation model: the share of beam-search translations that equal the target. For a
  /// question-answering model: SQuAD's exact match, the share of correct answers.
  std::optional<double> exact{};
  /// For a question-answering model: SQuAD's F1, the mean F1 of the answers' words.
  std::optional<double> f1{};
};

/// What training returns.
struct TrainResult {
  StopReason reason = StopReason::Finished;  ///< why training ended
  std::vector<EpochReport> epochs;           ///< all epochs, earlier sessions of the run included
  std::int64_t steps = 0;                    ///< steps of the whole run
  double seconds = 0;                        ///< duration of this session
  double first_step_seconds = 0;  ///< time from the call of fit() to the end of the first step
  /// The best value of the monitored metric. NaN is never the best; unset if every epoch gave NaN.
  std::optional<double> best;
  /// The monitored metric: "validation " and the metric that the task monitors, as in "validation
  /// accuracy"; "validation loss" if the task monitors the loss; "training loss" without a
  /// validation part. "" if no epoch has ended.
  std::string best_figure;
  int best_epoch = 0;  ///< the epoch of `best`, from 1
  /// The epoch whose weights are in the model when training has ended: best_epoch if the validation
  /// part chose them (TrainOptions::keep_best), else the last epoch.
  int kept_epoch = 0;
  std::int64_t validation_samples = 0;  ///< measured samples; 0: there is no validation part
  /// Results on the test part with the weights that are kept. Unset without a test part and if
  /// training was interrupted.
  std::optional<TestReport> test;
  /// How many samples of the test part equal training samples; unset if that is not known.
  std::optional<SeenSamples> test_seen{};
  std::string run_dir;                ///< the run folder; "" if nothing was written
  double data_seconds = 0;            ///< the part of `seconds` spent waiting for the next batch
  std::vector<std::string> broken{};  ///< undecodable images that other images replaced
};

}  // namespace tenon::train
