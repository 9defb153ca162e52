// Training: the Trainer class, and whole runs (settings, folder, resume, evaluation, prediction,
// verification) as the command uses them.
//
// Every step is one program: forward pass, loss, number of correct predictions, gradients and
// guarded updates. A run with the same settings gives the same bits for any number of threads, and
// also when the run was killed and resumed. Nothing here prints.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/data.h>
#include <tenon/metrics.h>
#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/task.h>

namespace tenon::data {
class Dataset;
class Loader;
struct TableColumns;
}  // namespace tenon::data

namespace tenon::data {
class Tokenizer;
class Vocabulary;
}  // namespace tenon::data
namespace tenon::models {
class Network;
}
namespace tenon::io {
struct Image;
struct ImageReading;
}  // namespace tenon::io

/// The Trainer, runs and trained models.
namespace tenon::train {

struct DataSource;  // (library use)
class SampleRecord;

// ---- What happens during training

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

/// An answer that is a span of a text.
struct Answer {
  std::string text{};      ///< the answer; "": the text has none
  std::int64_t place = 0;  ///< offset of the answer in the text, in bytes
  /// Probability of the pair of first and last token, among the pairs that were considered.
  double probability = 0;
};

/// A question of a question-answering dataset with the model's answer and the correct ones.
struct AskedQuestion {
  std::string name{};                ///< Dataset::sample_name()
  std::string question{};            ///< the question
  Answer answer{};                   ///< the model's answer
  std::vector<std::string> right{};  ///< the correct answers; empty: the text has none
  double exact = 0;                  ///< 1 if the answer is correct, else 0
  double f1 = 0;                     ///< F1 of the answer's words
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
  /// An earlier length of a run whose number of epochs was changed: up to step `until` the schedule
  /// is that of a run of `total` steps.
  struct Length {
    std::int64_t until = 0;  ///< the last step with this length
    std::int64_t total = 0;  ///< the number of steps that the run had then
  };
  std::vector<Length> earlier_lengths{};  ///< earlier lengths, in ascending order
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
  std::function<void(const std::string& dir)> write_beside{};
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

// ---- Runs: everything about one training in a folder

struct SettingText;  // (library use)

/// The settings of a run, one for each setting of `tenon train`. The defaults are the model's
/// recipe. A run writes them to RUN/settings.toml.
struct TENON_API Settings {
  /// Name of the network: "lenet5", "mlp:784-300-10", or a file, "net.toml" (models::create()).
  std::string model = "lenet5";
  std::string activation;  ///< activation of mlp; "": the model's own
  std::string network;     ///< the text of the file that `model` names (docs/model_toml.md), or ""
  std::string head;        ///< layers that replace the network's last ones: "256,relu"
  std::string lora;        ///< LoRA adapters: "rank=8,alpha=16,targets=c_attn"; "": none
  std::string teacher;     ///< run folder of a teacher network for distillation; "": none
  double temperature = 4;  ///< distillation temperature
  double distill_weight = 0.5;  ///< weight of the teacher's scores in the loss, 0 to 1
  std::string weights;          ///< file of initial weights; tensors that fit are used; "": random
  std::string freeze;           ///< parts of the network that do not learn: "features,fc.0"
  int unfreeze_after = 0;       ///< epochs after which the frozen parts learn too; 0: never
  /// Number of augmented variants of each image whose frozen outputs are computed and then reused;
  /// 0: frozen parts are computed in every step.
  int frozen_variants = 0;
  /// Where the outputs of frozen parts are kept: "memory", "disk", "auto" (both, on disk if the
  /// computation took a second or more), or "off" (computed in every step).
  std::string keep_frozen = "auto";
  double frozen_cache = 32;  ///< limit for outputs of frozen parts on disk, all runs together, GiB
  std::string rate_of;       ///< learning rates of parts as factors of lr: "features=0.1,fc=2"
  std::string tokenizer;  ///< tokenizer for text: tokenizer.json, vocab.txt, vocab.json, or folder
  /// What the network is trained for, a name of task_names(). A network with a task of its own
  /// (models::Info::task()), such as a language model, learns that task instead of the default.
  std::string task = "classification";
  std::string data = "digits";      ///< data source, as data::open_dataset() takes it
  int epochs = 5;                   ///< passes over the training data
  std::int64_t batch = 64;          ///< samples in a step
  std::string optimizer = "sgd";    ///< sgd, adam, adamw, rmsprop or levenberg
  double lr = 0.05;                 ///< learning rate
  double momentum = 0.9;            ///< of sgd and rmsprop
  double weight_decay = 0;          ///< weight decay
  bool nesterov = false;            ///< Nesterov momentum, of sgd
  std::string schedule = "cosine";  ///< learning-rate schedule (optim::create_schedule())
  /// Epochs at which the schedule multistep changes the learning rate: "3,6" multiplies by `gamma`,
  /// "3=0.4,6=0.2" sets factors.
  std::string milestones;
  double warmup = 0.25;         ///< epochs of linear warm-up, at most half of the run
  double step_epochs = 1;       ///< period of step and exponential, first period of cosine_restarts
  double gamma = 0.1;           ///< factor of step, multistep, exponential and plateau
  double min_lr_factor = 0;     ///< lowest learning rate of a schedule, as a factor of lr
  double power = 1;             ///< of the schedule polynomial
  int restart_multiply = 1;     ///< of cosine_restarts: the ratio of a period to the one before
  double clip_norm = 0;         ///< largest common norm of all gradients; 0: no limit
  double label_smoothing = 0;   ///< share of the target spread over all classes in training
  double beta2 = 0.999;         ///< of adam and adamw
  double eps = 1e-8;            ///< of adam and adamw; of levenberg: mu
  std::string layer_precision;  ///< exceptions from `precision`: "fc3=fp32,conv1=tf32"
  /// Precision of matrix products and convolutions: fp32, tf32, bf16 or fp16. The CPU computes tf32
  /// and fp16 in fp32.
  std::string precision = "fp32";
  std::string device = "cpu";  ///< cpu, cuda or cuda:N
  /// Choice of engines for matrix products on GPUs: "off" (by a model), "read" (by earlier
  /// measurements) or "write" (measure what is unknown).
  std::string tune = "read";
  int threads = 0;         ///< threads of computation; 0: all CPUs
  std::int64_t seed = 0;   ///< seed of initial weights, sample order and dropout
  int early_stopping = 0;  ///< epochs without a better metric before the run ends; 0: off
  bool keep_best = true;   ///< keep the weights of the epoch with the best validation metric
  bool drop_last = false;  ///< leave out an incomplete last batch
  bool shuffle = true;     ///< a new order of the samples in every epoch
  /// Training samples of an epoch: "uniform" (each once) or "balanced" (drawn with replacement,
  /// every class equally often).
  std::string sampling = "uniform";
  bool strict = false;  ///< a note of the data (Dataset::notes()) is an error
  /// Notes that `strict` accepts: "" none; "seen": samples that equal training samples
  std::string allow;
  int keep_checkpoints = 2;           ///< how many of the newest checkpoints are kept
  std::int64_t checkpoint_steps = 0;  ///< steps between checkpoints inside an epoch; 0: by time
  std::int64_t max_steps = 0;         ///< stop after this many steps; 0: no limit
  double checkpoint_seconds = 30;     ///< seconds between checkpoints inside an epoch; 0: by steps
  double input_mean = 0.1307;         ///< subtracted from pixels, which are 0 to 1
  double input_std = 0.3081;          ///< pixels are divided by it
  /// Augmentation of training images, a text for data::Transforms::parse(), "flip,cutout=8";
  /// "none"; "auto": the recipe's.
  std::string augment = "auto";
  /// Where training images from files are decoded and transformed: "cpu", "gpu", "both" (decoded on
  /// the CPU, transformed on the GPU) or "auto".
  std::string augment_on = "auto";
  std::string preprocess = "auto";  ///< how images are resized and cropped to the network's input
  /// Means and standard deviations of the channels: "imagenet", "M,M,M/S,S,S", "none" (input_mean
  /// and input_std), or "auto" (imagenet for images from files).
  std::string normalize = "auto";
  std::string broken = "skip";  ///< undecodable images: "skip" (the next one is used) or "error"
  /// Background of transparent images: a colour, "white"; "none": alpha is dropped and the colour
  /// kept; "auto": as the data source says, else none.
  std::string background = "auto";
  bool standardize = true;   ///< scale a table's columns by the training part's mean and deviation
  int workers = 0;           ///< threads that prepare batches; 0: one, for image files `threads`
  std::int64_t classes = 0;  ///< number of classes; 0: as many as the data has

  /// The recipe of a model. Throws ValueError for an unknown model. For a file (its name ends in
  /// .toml) throws IoError or FormatError.
  static Settings for_model(const std::string& model);
  /// What is known of the model (models::info()). Uses the text of `network` if it is not empty,
  /// even if the file has moved.
  models::Info model_info() const;
  /// Builds the model (models::create()), from the text of `network` if it is not empty.
  nn::AnyModule create_model(const models::Options& options) const;
  /// The model as a TOML file (models::toml()), with the settings' classes, head and activation.
  /// Throws as models::create().
  std::string model_toml() const;
  /// Combines three sources, later ones over earlier ones: the recipe of `model` ("": the model
  /// that the file names, or the default), the TOML file ("": none), and the overrides.
  static Settings resolve(const std::string& model, const std::string& file,
                          const std::vector<std::pair<std::string, std::string>>& overrides);
  /// Sets one setting from text. Throws ValueError that names an unknown key (with a similar one),
  /// or the value and what is allowed.
  void set(const std::string& key, const std::string& value);
  /// The value of a setting as text. Throws ValueError for an unknown key.
  std::string get(const std::string& key) const;
  /// Applies a TOML file of `key = value` lines. Throws IoError, FormatError (with the line) or
  /// ValueError.
  void apply_file(const std::string& path);
  /// The settings of a run folder, from its settings.toml. Throws FormatError if a setting that
  /// every run writes is missing, else as apply_file().
  static Settings of_run(const std::string& dir);
  /// All settings as TOML.
  std::string toml() const;
  /// Parses what toml() returned. Throws as of_run(); messages name `source`.
  static Settings of_text(const std::string& toml, const std::string& source);
  /// A setting by its name.
  struct Key {
    std::string name;   ///< the name that set() takes
    std::string help;   ///< a sentence of help
    std::string value;  ///< the current value as text
  };
  /// All settings, in the order of settings.toml.
  std::vector<Key> keys() const;

 private:
  friend struct FoldsFile;
  friend struct SettingsNetwork;
  void use_rates_of(const std::string& chosen);
  void apply_lines(const std::vector<SettingText>& lines, const std::string& path);
  static Settings of_lines(const std::vector<SettingText>& lines, const std::string& file);
  static Settings with_recipe(const std::string& model, const std::string& network);
  std::vector<std::string> given_;                    // keys that set() was called for
  std::shared_ptr<const models::Network> described_;  // of earlier values of `model` and `network`
};

/// Options of start_run() and resume_run().
struct RunOptions {
  std::vector<std::shared_ptr<Callback>> callbacks{};  ///< receivers of progress; none null
  std::function<bool()> stop{};                        ///< as TrainOptions::stop
};

/// Starts a run in a new or empty folder; with a `dir` of "" the run writes nothing. Throws
/// ValueError if the folder holds a run, ShapeError if the data does not fit the model.
TENON_API TrainResult start_run(const Settings& settings, const std::string& dir,
                                const RunOptions& options = {});
/// Continues a run from its latest checkpoint with the run's own settings.
///
/// `overrides` may change the length of the run (`epochs`, not below the epochs that are done,
/// `max_steps`, `early_stopping`), `drop_last` for the rest of the run, the path of the data,
/// `device`, and settings that do not affect results (`threads`, `workers`, `checkpoint_*`,
/// `strict`, …; docs/training.md lists all).
///
/// Throws IoError if the run has no checkpoint; start_run() restarts a run that was stopped before
/// its first checkpoint. Throws ValueError if settings.toml was edited after the newest checkpoint
/// in a setting that affects results.
TENON_API TrainResult
resume_run(const std::string& dir, const RunOptions& options = {},
           const std::vector<std::pair<std::string, std::string>>& overrides = {});

/// Returns the options for one fold of start_folds() or resume_folds(). Called before the fold
/// begins, with its number from 1, its settings and its folder.
using FoldOptions =
    std::function<RunOptions(int fold, const Settings& settings, const std::string& dir)>;
/// k-fold cross-validation: `folds` runs in dir/fold-1, dir/fold-2, …, each with another of k parts
/// of the samples as its test part. A fold's weights are chosen by a validation part of its
/// training samples and measured once on its test part (TrainResult::test).
///
/// Returns the results of the folds that were run: fewer than `folds` if one was interrupted.
/// Throws ValueError if the folder holds runs already, or if the data source has a test part of its
/// own.
TENON_API std::vector<TrainResult> start_folds(const Settings& settings, int folds,
                                               const std::string& dir,
                                               const FoldOptions& options = {});
/// Continues start_folds() after an interruption. Finished folds are not trained again, the
/// interrupted fold is resumed, and the remaining folds are started. `overrides` apply to all
/// folds, as in resume_run().
TENON_API std::vector<TrainResult> resume_folds(
    const std::string& dir, const FoldOptions& options = {},
    const std::vector<std::pair<std::string, std::string>>& overrides = {});
/// The number of folds of a folder that start_folds() made; 0 for another folder.
TENON_API int folds_in(const std::string& dir);
/// The settings that all folds of such a folder share.
TENON_API Settings settings_of_folds(const std::string& dir);

/// Options of TrainedModel::generate().
struct GenerateOptions {
  std::int64_t tokens = 200;  ///< tokens to generate
  double temperature = 1;     ///< divides the scores; 0: always the most likely token
  std::int64_t top_k = 0;     ///< sample among the k most likely tokens; 0: among all
  double top_p = 1;  ///< sample among the most likely tokens that together reach this probability
  std::uint64_t seed = 0;  ///< seed of the sampling
  /// A tokenizer to use instead of the model's own tokens, for weights from elsewhere; null: the
  /// model's own.
  std::shared_ptr<const data::Tokenizer> tokenizer{};
  /// Receives each piece of text as it is generated; return false to stop.
  std::function<bool(const std::string& piece)> on_text{};
};

/// Options of TrainedModel::translate().
struct TranslateOptions {
  std::int64_t beam = 4;  ///< beam size
  /// Scores are divided by ((5 + length) / 6) to this power (Wu et al., "Google's neural machine
  /// translation system", 2016).
  double length_penalty = 0.6;
  std::int64_t batch = 64;  ///< texts in a batch
};

/// The samples that an evaluation or prediction reads.
struct Selection {
  std::string data{};                   ///< the data source, as data::open_dataset() takes it
  data::Split part = data::Split::All;  ///< the part of the source
  bool own = false;                     ///< whether this is the run's own data
  Notes notes{};                        ///< where the source is read other than it was named
  /// The source, where select_data() has read it; null: open_set() opens it.
  std::shared_ptr<const data::Source> source{};
};

/// Options of TrainedModel::evaluate().
struct EvaluateOptions {
  std::optional<data::Split> part{};  ///< unset: the part that select_data() chooses
  std::int64_t batch = 0;             ///< batch size; 0: chosen for speed
  bool strict = false;                ///< a note of the data is a FormatError
  bool allow_seen = false;            ///< `strict` accepts samples that equal training samples
  /// Called after each batch with the number of finished batches and of all batches.
  std::function<void(std::int64_t, std::int64_t)> progress{};
};

/// A text to predict.
struct TextLine {
  std::string name{};       ///< where the text is from: "texts.txt, line 17"
  std::string text{};       ///< the text; a tab separates two texts
  std::int64_t label = -1;  ///< its class; -1: unknown
};
/// What TrainedModel::read_texts() returns.
struct TextLines {
  std::vector<TextLine> lines{};  ///< the texts, in the order of the file
  Notes notes{};                  ///< what the reader skipped, converted or assumed
};

/// A prediction for one sample of a dataset.
struct Prediction {
  std::int64_t index = 0;       ///< the sample's index in the dataset
  std::string name{};           ///< Dataset::sample_name()
  std::vector<float> values{};  ///< Task::predictions(): probabilities or quantities
  std::int64_t label = -1;      ///< the sample's class; -1: unknown
  std::vector<float> target{};  ///< the sample's quantities or labels; empty: unknown
};

/// A trained model from a run folder or from a model.safetensors file.
class TENON_API TrainedModel {
 public:
  /// Opens a run folder or a model file. Throws IoError, or FormatError for a file without the
  /// settings of its model.
  static TrainedModel open(const std::string& run_or_file);
  /// Opens what a Trainer wrote, for a module of your own, which gets the weights. The model
  /// computes in the current context. predict() passes inputs to the module unchanged, evaluate()
  /// throws NotSupported. Throws IoError, and as load_state_dict() if the weights do not fit the
  /// module.
  static TrainedModel open(const std::string& run_or_file, const nn::AnyModule& net);
  /// The network of the settings with weights from another framework (<tenon/weights.h>). The
  /// number of outputs is Settings::classes, or that of the published network if it is 0. All
  /// weights of the network must be in the file. Throws ValueError that lists missing, unexpected
  /// and differently shaped weights.
  static TrainedModel with_weights(const Settings& settings, const std::string& file);
  /// How with_weights() converted the weights, as a sentence.
  const std::string& weights_note() const { return weights_note_; }
  /// The settings of the run.
  const Settings& settings() const { return settings_; }
  /// What is known of the network (Settings::model_info()), found when the model was opened. Says
  /// nothing about a module that was passed to open().
  const models::Info& info() const;
  /// Sets the precision of computation. By default it is that of the run.
  void set_precision(Precision precision);
  /// Sets how images are resized and cropped to the network's input, "resize,ten_crop". By default
  /// as in the run. Throws ValueError.
  void set_preprocess(const std::string& steps);
  /// Sets the background of transparent images: a colour (io::parse_colour()) or "none". By default
  /// as in the run. Throws ValueError.
  void set_background(const std::string& colour);
  /// The network.
  const nn::AnyModule& net() const { return net_; }
  /// Path of the file with the weights.
  const std::string& file() const { return file_; }
  /// Names of the classes, one for each output: the names in the training data, or numbers. "<N>"
  /// for an output that no token of a text model has.
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// How rows of a table become inputs, from the training data; null unless the model was trained
  /// on a table.
  const std::shared_ptr<const data::TableColumns>& table() const { return table_; }
  /// The tokenizer of a text model; null for a model without one.
  const std::shared_ptr<const data::Tokenizer>& tokenizer() const { return tokenizer_; }
  /// Measures the model on the samples that select_data() chooses.
  Evaluation evaluate(const std::string& data = "", const EvaluateOptions& options = {}) const;
  /// The data and the part of it that evaluate() measures.
  ///
  /// @param data  a data source; "": the run's own data, also found if the run folder was moved. A
  ///              source with the same files as the run's own data counts as the run's own data and
  ///              is read with the run's options, whatever options it has here. If the run's files
  ///              are gone, files of the same names count as the run's if they hold the same
  ///              training samples.
  /// @param part  the part to measure. Unset: Test for the run's own data, for generated data and
  ///              for a source with a test file; All for other sources.
  ///
  /// Throws IoError if the run's data is missing.
  Selection select_data(const std::string& data, std::optional<data::Split> part = {}) const;
  /// Opens a part of a data source as this model takes it, with the model's classes. Throws
  /// ValueError if the source has no such part; if `strict`, FormatError for anything that would be
  /// a note.
  std::shared_ptr<data::Dataset> open_set(const Selection& selection, bool strict = false) const;
  /// How many of the samples start … start + count - 1 (count -1: all from `start` on) the run was
  /// trained on, by the record in its folder. Samples are recognized by content, whatever their
  /// path or source. Unset if that is unknown: there is no record, or its samples are of another
  /// kind.
  std::optional<SeenSamples> seen_samples(const data::Dataset& set, std::int64_t start = 0,
                                          std::int64_t count = -1) const;
  /// Whether the run was trained on an image, given the bytes of its file.
  std::optional<SeenSamples> seen_image(std::string_view file) const;
  /// Opens the test part of a data source, as open_set() does.
  std::shared_ptr<data::Dataset> test_set(const std::string& data) const;
  /// Whether fit() can resize images of any size to the network's input.
  bool fits_images() const;
  /// Resizes and crops an image as the run did: uint8 [1, C, H, W], or [1, crops, C, H, W]. Throws
  /// ValueError for a model that does not take images.
  Tensor fit(const io::Image& image) const;
  /// Image files as a dataset for this model, as test_set() gives it.
  std::shared_ptr<data::Dataset> fit(std::shared_ptr<const data::ImageFiles> images) const;
  /// How image files are decoded for this model (io::load_image()): `channels`, and the run's
  /// background.
  io::ImageReading image_reading(int channels) const;
  /// The steps of fit() as text: "resize,center_crop".
  std::string fitting() const;
  /// What the model was trained for. Of a module that was passed to open(): classification.
  const Task& task() const { return *task_; }
  /// Predictions for a batch.
  ///
  /// The first request with a shape plans a program. Later requests with this shape only scale the
  /// pixels and run the program. Any number of threads may predict at once. set_cache_limit()
  /// limits the programs that are kept.
  ///
  /// A program reads the current weights at each request. Other changes of net(), such as training
  /// mode or the precision of a layer, have no effect on shapes that were requested before.
  ///
  /// For a module that was passed to open() no program is kept, and its modes count at each call.
  ///
  /// @param images  images, uint8 [N, C, H, W] (0 to 255) or floats (0 to 1); crops, [N, crops, C,
  ///                H, W]; or rows of a table, [N, columns]
  /// @return Task::predictions(): class probabilities [N, classes], the mean over the crops; of a
  ///         regression the quantities [N, outputs]. For a module that was passed to open(): its
  ///         output.
  Tensor predict(const Tensor& images) const;
  /// Predictions for samples of a dataset that fits the model, computed in batches.
  ///
  /// @param set    the dataset
  /// @param start  index of the first sample
  /// @param count  number of samples; -1: all from `start` on
  /// @param take   receives each prediction, in order, with the sample's input [1, …] as the
  ///               dataset gives it. Samples that cannot be decoded are left out; Dataset::broken()
  ///               names them.
  void predict(const data::Dataset& set, std::int64_t start, std::int64_t count,
               const std::function<void(Prediction&&, const Tensor& input)>& take) const;
  /// Prediction for a text, or for two texts with a tab between them. Of a classifier: class
  /// probabilities [classes]. Of a masked language model: token probabilities [vocabulary] for the
  /// first [MASK]. Of a language model: probabilities of the next token. Throws ValueError for a
  /// model that takes no text, or a text for which there is nothing to predict.
  Tensor predict_text(const std::string& text) const;
  /// Of a language model: probabilities [classes] of the next token. The model sees as many of the
  /// last tokens as its context holds. Throws ValueError for another model, for no tokens, and if
  /// the tokenizer has more tokens than the model.
  Tensor next_token(const std::vector<std::int64_t>& tokens) const;
  /// Decodes tokens to text. Throws ValueError for a model without tokens, and for a token out of
  /// range.
  std::string text_of(std::span<const std::int64_t> tokens) const;
  /// The answer to a question, a span of the text. Throws ValueError unless the model answers
  /// questions.
  Answer answer(const std::string& question, const std::string& text) const;
  /// Answers `count` questions of a part of "spans:FILE" from `start` on; a count of -1 is all.
  /// Throws ShapeError for other data, ValueError unless the model answers questions.
  std::vector<AskedQuestion> answers(const Selection& data, std::int64_t start,
                                     std::int64_t count) const;
  /// Reads texts, one a line, from "lines:FILE" with the options of that source, or from FILE.
  /// Options that are not given are those of the run's data.
  ///
  /// For a classifier the lines may hold a class in the format of the run's data. They are read
  /// that way if at least half of them hold a class that the model knows; an unknown or missing
  /// class then is a label of -1 and a note. Throws IoError, FormatError, or ValueError for an
  /// unknown option.
  TextLines read_texts(const std::string& source) const;
  /// Notes on what predict_text() ignores in these texts (unknown tokens, and tokens beyond the
  /// model's sequence length) and on how many of them the run was trained on, which refuse_notes()
  /// accepts if `allow_seen`.
  Notes notes_on_texts(const std::vector<TextLine>& texts, bool allow_seen = false) const;
  /// Opens all rows of a table, "csv:FILE" with the options of that source, or FILE. Options that
  /// are not given are those of the run's data. Columns are found by name if both this table and
  /// the training data have a header. If the table has the label column with classes that the model
  /// knows, the targets are these labels; otherwise the targets are not classes. Throws IoError,
  /// and FormatError, ValueError or ShapeError for rows that do not fit.
  std::shared_ptr<data::Dataset> open_rows(const std::string& file) const;
  /// Predicts every row of open_rows() and writes the rows to `out`, unchanged, with a column
  /// "prediction" added, for classes also "probability". Returns the number of rows.
  std::int64_t predict_csv(const std::string& file, const std::string& out) const;
  /// The text that a language model generates after `prompt`. Throws ValueError for another model,
  /// an option out of range, or a prompt with characters that the model does not know.
  std::string generate(const std::string& prompt, const GenerateOptions& options = {}) const;
  /// Translates texts by beam search. A translation has at most 50 tokens more than its source.
  /// Throws ValueError for a model that does not translate, an option out of range, or a text with
  /// characters that the model does not know.
  std::vector<std::string> translate(const std::vector<std::string>& texts,
                                     const TranslateOptions& options = {}) const;

 private:
  struct Opened;
  TrainedModel();
  void compute_here();
  void resolve();
  std::shared_ptr<const data::Source> source_of(const Selection& selection) const;
  std::shared_ptr<data::Dataset> open_part(const Selection& selection, bool strict) const;
  std::int64_t size_of_whole(const Selection& selection) const;
  std::optional<Selection> own_selection(const DataSource& given) const;
  std::optional<bool> trained_on(Selection& selection) const;
  Selection locate_own() const;
  void note_seen(Selection& selection, const data::Dataset& set, bool allowed,
                 Evaluation& out) const;
  bool has_changed(const data::Dataset& part, data::Split which) const;
  void load_record();
  void predict_batch(const data::Dataset& set, std::int64_t first, std::int64_t end,
                     const std::function<void(Prediction&&, const Tensor& input)>& take) const;
  void name_classes(std::int64_t classes);
  void require_spans() const;
  std::vector<std::int64_t> tokens_of(const std::string& text) const;
  Settings settings_;
  std::shared_ptr<const Task> task_;  // of settings_; not null
  Context context_;
  nn::AnyModule net_;
  std::shared_ptr<const Opened> opened_;  // settings_, context_ and net_, ready for requests
  std::string file_, run_;                // run_: "" if it was opened from a file
  std::string weights_note_;
  bool given_net_ = false;  // open() was given the network: settings_ do not describe it
  bool foreign_ = false;    // weights of another framework: settings_ do not describe its data
  std::vector<std::string> class_names_;
  std::string text_unit_;                               // the unit of tokens, or ""
  std::shared_ptr<const data::Vocabulary> vocabulary_;  // by text_unit_; null without one
  std::shared_ptr<const data::TableColumns> table_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::string data_digest_;                     // of the training samples; "" if unknown
  std::shared_ptr<const SampleRecord> record_;  // of the training samples; null without one
  std::string record_problem_;                  // why there is no record
  Notes record_notes_;                          // where the record is damaged
};

/// One check of verify_run().
struct VerifyCheck {
  std::string name;     ///< what is compared: "same bits with 1 and 2 threads"
  bool passed = false;  ///< whether the values are equal
  std::string detail;   ///< what differs and where the first difference is; "" if none
};
/// What verify_run() returns.
struct VerifyReport {
  std::vector<VerifyCheck> checks;  ///< all checks
  std::int64_t steps = 0;           ///< steps that were repeated
  std::int64_t run_steps = 0;       ///< steps in the run's log; 0: there is no log
  /// Whether all checks passed.
  bool passed() const {
    for (const VerifyCheck& check : checks)
      if (!check.passed) return false;
    return true;
  }
};
/// Checks that a run is reproducible. Repeats the first `steps` steps of the run in dir: twice,
/// with another number of threads, and stopped halfway and resumed in a temporary folder. Compares
/// all weights and optimizer states bit by bit, and the first losses with the run's log. `progress`
/// receives a line before each check.
TENON_API VerifyReport verify_run(const std::string& dir, int steps = 40,
                                  const std::function<void(const std::string&)>& progress = {});

}  // namespace tenon::train
