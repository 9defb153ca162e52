// Training: the Trainer that a program calls in a few lines, and whole runs (settings, folder,
// resume, evaluation, prediction, verification) as the command uses them.
//
// Every step is one program: forward, loss, count of correct answers, gradients, guarded updates. A
// run with the same settings gives the same bits, whatever the thread count, and also when it was
// killed and resumed. Nothing here prints.
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

namespace tenon::data {
class Dataset;
class Loader;
struct TableColumns;
}  // namespace tenon::data

namespace tenon::data {
class Tokenizer;
class Vocabulary;
}  // namespace tenon::data
namespace tenon::io {
struct Image;
struct ImageReading;
}  // namespace tenon::io

namespace tenon::train {

class SampleRecord;

// ---- What happens during training

struct StepReport {
  int epoch = 0;          ///< from 1
  std::int64_t step = 0;  ///< of the whole run, from 1
  std::int64_t step_in_epoch = 0, steps_per_epoch = 0;
  double loss = 0, mean_loss = 0;  ///< of this step; of the epoch so far
  std::optional<double> accuracy;  ///< of the epoch so far, where targets are classes
  double lr = 0;
  std::int64_t items = 0;   ///< of this step
  double items_per_s = 0;   ///< recent
  double seconds_left = 0;  ///< of the run, estimated
};

struct EpochReport {
  int epoch = 0;
  std::int64_t step = 0;
  double train_loss = 0;  ///< as Evaluation's: of sequences the mean over the tokens that count
  std::optional<double> train_accuracy;  ///< where targets are classes
  /// Of the validation part after the epoch; unset without one, and where it was not measured.
  std::optional<double> validation_loss, validation_accuracy;
  std::optional<double> validation_mae, validation_r2;  ///< where targets are quantities
  double lr = 0, seconds = 0, items_per_s = 0;
  double data_seconds = 0;  ///< of `seconds`: waiting for the next batch
  bool best = false;        ///< the best so far by the monitored figure
};

/// What the weights that are kept give on the test part: measured once, when training has ended.
struct TestReport {
  int epoch = 0;                   ///< whose weights were measured
  std::int64_t step = 0;           ///< the last one of that epoch
  std::int64_t samples = 0;        ///< that were measured
  double loss = 0;                 ///< as Evaluation's
  std::optional<double> accuracy;  ///< where targets are classes
  std::optional<double> mae, r2;   ///< where targets are quantities
};

enum class StopReason { Finished, EarlyStop, Interrupted };

/// Receives progress; every method may be left out. Called on the thread that trains.
class TENON_API Callback {
 public:
  virtual ~Callback();
  /// A sentence for people on what was decided: of start_run() and resume_run() before training, of
  /// fit() where the figure that chooses among epochs was no number.
  virtual void on_note(const std::string& note);
  /// Of start_run() and resume_run(), before training: what frozen parts give has been computed of
  /// so many examples; 0 when that begins.
  virtual void on_frozen(std::int64_t done, std::int64_t examples);
  /// Before all else, with the network that fit() is going to train.
  virtual void on_network(const nn::AnyModule& net);
  virtual void on_start(std::int64_t first_step, std::int64_t total_steps);
  virtual void on_step(const StepReport& report);
  /// Of the validation part after an epoch, or of the test part at the end of training.
  virtual void on_evaluation(data::Split part, std::int64_t batch, std::int64_t batches);
  virtual void on_epoch(const EpochReport& report);
  virtual void on_checkpoint(const std::string& path);
  /// Return true to end training after this epoch.
  virtual bool should_stop(const EpochReport& report);
};

/// How many samples are among those that a run has learnt from.
struct SeenSamples {
  std::int64_t samples = 0;   ///< that were asked about
  std::int64_t seen = 0;      ///< of `compared`: those that are among the training samples
  std::int64_t compared = 0;  ///< of `samples`: fewer where windows of a text are too short
  std::int64_t every = 1;     ///< the record holds one of so many training samples
  bool is_exact() const { return every == 1 && compared == samples; }
  /// How many of `samples` have been seen, estimated where it is not exact.
  TENON_API std::int64_t about() const;
};
/// "150 of 200 samples", "none of 50 samples", "about 90 of 100 samples (30, compared with one of
/// every 3 training samples)".
TENON_API std::string to_string(const SeenSamples& seen);

struct Evaluation {
  // What was measured.
  std::string data{};  ///< the source: "csv:rows.csv"; "" of Trainer::evaluate()
  /// Its part; unset of Trainer::evaluate(), which measures all that its loader gives.
  std::optional<data::Split> part{};
  /// The samples that were measured, and those of the whole source, all parts together; 0: unknown.
  std::int64_t items = 0, of_items = 0;
  std::int64_t targets = 0;           ///< that were counted: one a sample, or one a token
  std::int64_t ignored = 0;           ///< samples or tokens whose target the loss leaves out
  std::vector<std::string> broken{};  ///< samples left out, as their files cannot be decoded
  /// Of the samples those that the run has learnt from; unset where that is not known, for which
  /// `seen_unknown` says why.
  std::optional<SeenSamples> seen{};
  std::string seen_unknown{};
  Notes notes{};  ///< of the data (Dataset::notes()), of its place and of what the network gives
  double seconds = 0, items_per_s = 0;

  // How well. Everything is a mean over what counts, whatever batches it comes in. What does not
  // suit the data is NaN or unset.
  /// Each loss times what it counts (class weights, 0 for ignored targets), over what they count.
  double loss = 0;
  double accuracy = 0;  ///< of the targets that were counted
  double top3_accuracy = 0, top5_accuracy = 0;
  double log_loss = 0;  ///< metrics::log_loss(), without weights or smoothing
  std::optional<double> roc_auc{}, average_precision{};  ///< metrics::ClassMetrics
  metrics::ConfusionMatrix confusion{1};
  /// Where targets are quantities of as many numbers as the network gives; no accuracy then.
  std::optional<metrics::RegressionErrors> errors{};
  /// Of a model that translates: the share of translations by beam search that are the target. Of
  /// one that finds answers in texts: of answers that are right, and the mean F1 of their words, as
  /// SQuAD measures them.
  std::optional<double> exact{}, f1{};
};

/// An answer that stands in a text.
struct Answer {
  std::string text{};      ///< "": the text has none
  std::int64_t place = 0;  ///< its first byte in the text
  double probability = 0;  ///< of its first and its last token among the places seen with them
};

/// A question of a set, what the model answers, and what is right ({}: the text has no answer).
struct AskedQuestion {
  std::string name{};  ///< Dataset::sample_name()
  std::string question{};
  Answer answer{};
  std::vector<std::string> right{};
  double exact = 0, f1 = 0;  ///< as Evaluation's
};

struct TrainResult {
  StopReason reason = StopReason::Finished;
  std::vector<EpochReport> epochs;  ///< those of earlier sessions of the run included
  std::int64_t steps = 0;
  double seconds = 0;             ///< of this session
  double first_step_seconds = 0;  ///< from the call of fit() to the end of the first step
  /// The monitored figure at its best, as it is. NaN is never the best: unset where every epoch
  /// gave it.
  std::optional<double> best;
  /// "validation accuracy" or "validation loss"; "training loss" without a validation part. ""
  /// where no epoch has ended.
  std::string best_figure;
  int best_epoch = 0;
  /// Whose weights are left in the model when training has ended: best_epoch where they were chosen
  /// by a validation part (TrainOptions::keep_best), else the last one.
  int kept_epoch = 0;
  std::int64_t validation_samples = 0;  ///< that validation figures are of; 0: no validation part
  /// Of the weights that are kept. Unset without a test part and where training was interrupted.
  std::optional<TestReport> test;
  std::string run_dir;                ///< "" when nothing was written
  double data_seconds = 0;            ///< of `seconds`: waiting for the next batch
  std::vector<std::string> broken{};  ///< pictures that others stood in for
};

/// Steps that share a launch on a card when one takes so many seconds: a power of two from 1 to 32
/// that fills about four milliseconds, for between two launches a card waits for some microseconds.
TENON_API int steps_in_launch(double seconds);

/// What training goes on with from an epoch on (TrainOptions::next_stage). The network has the same
/// tensors by the same names, the loader batches of as many examples; all must outlive the trainer.
struct Stage {
  nn::AnyModule net;
  optim::Optimizer* optimizer = nullptr;
  data::Loader* train = nullptr;
  data::Loader* validation = nullptr;  ///< null where fit() was given none
  data::Loader* test = nullptr;        ///< the same
};

struct TrainOptions {
  int epochs = 5;
  std::int64_t max_steps = 0;  ///< ends earlier when > 0
  std::string schedule = "constant";
  optim::ScheduleOptions schedule_options{};  ///< step counts are filled in
  /// Of a run that was made longer or shorter since: up to step `until` its schedule is that of
  /// `total` steps. In ascending order.
  struct Length {
    std::int64_t until = 0, total = 0;
  };
  std::vector<Length> earlier_lengths{};
  double clip_norm = 0, clip_value = 0;  ///< 0: off
  bool classes = true;                   ///< targets that are class indices are counted when met
  /// Scores are [N, T, classes] and targets [N, T]: a class for each place of a sequence. The loss
  /// given to the trainer sees them as [N · T, classes] and [N · T].
  bool tokens = false;
  nn::Loss evaluation_loss{};  ///< of evaluations; empty: the loss of training
  /// A network whose scores are learnt from too: it stays in evaluation mode and does not learn.
  /// It gets the network's inputs and gives scores of the same shape. The loss of training is then
  /// (1 - distill_weight) · loss + distill_weight · distillation_loss(scores, its scores,
  /// temperature), of sequences over the places whose target is not negative.
  std::optional<nn::AnyModule> teacher{};
  double temperature = 4, distill_weight = 0.5;
  /// Pictures of each training batch and their labels are mixed, by draws of the loader's seed, the
  /// epoch and the batch. An example counts as right when the class with the larger share was met.
  data::Mixing mixing{};
  bool guard = true;  ///< a step whose loss is not finite changes nothing
  /// Epochs without a better figure before training ends; 0: off. The figure is the accuracy on the
  /// validation part, or its loss where targets are no classes. Without a validation part it is the
  /// training loss.
  int early_stopping = 0;
  /// fit() leaves the weights of the epoch with the best validation figure in the model. Without a
  /// validation part there is nothing to choose by: the weights of the last epoch stay.
  bool keep_best = true;
  int evaluate_every = 1;  ///< epochs between two measurements of the validation part
  /// After so many epochs the run goes on with what `next_stage` gives, as when parts that were
  /// frozen begin to learn; 0: never. It is asked once, when the next epoch begins or a run that is
  /// beyond it goes on. What its optimizer has in common with the one before keeps its state; the
  /// rest must be in groups with steps of their own (optim::ParameterGroup::own_steps).
  int stage_epochs = 0;
  std::function<Stage()> next_stage{};
  /// Steps in one launch where the training set stands in a card's memory; 0: as many as take about
  /// four milliseconds. The numbers that come out are the same.
  int steps_per_launch = 0;
  // A run folder: logs, checkpoints, model. "" writes nothing.
  std::string run_dir{};
  bool resume = false;  ///< go on from the folder's latest checkpoint
  /// Tells the training samples apart from others; kept in checkpoints. A resume with another one
  /// is refused, unless one of the two is "".
  std::string data_digest{};
  int keep_checkpoints = 2;
  std::int64_t checkpoint_steps = 0;  ///< also inside epochs, every so many steps
  double checkpoint_seconds = 30;     ///< and after so many seconds; 0: only at the end of epochs
  std::vector<std::shared_ptr<Callback>> callbacks{};
  /// Asked after every step (on a card: every launch): when it says true, a checkpoint is written
  /// and fit() returns Interrupted.
  std::function<bool()> stop{};
  /// When > 0: fit() stops so after this step of the run, as if `stop` had said so then. (On a card
  /// steps are queued ahead, and a callback hears of one when later ones have begun.)
  std::int64_t stop_after = 0;
  std::vector<std::pair<std::string, std::string>>
      model_metadata{};  ///< added to model.safetensors
  /// Kept in checkpoints, and written to settings.toml when the first checkpoint is there.
  std::string settings_toml{};
  std::string tokenizer_json{};  ///< written to tokenizer.json unless it is empty
  /// Writes more files into the run's folder, which it gets, before the settings are written.
  std::function<void(const std::string& dir)> write_beside{};
};

/// Scores [N, classes] of N examples from those of their views, [N * views, classes], view after
/// view of each: their softmax is the mean of the views' softmax. With `quantities` the mean of the
/// numbers themselves. Throws ShapeError for others.
TENON_API Tensor mean_of_views(const Tensor& scores, std::int64_t views, bool quantities = false);

/// A batch as a trainer with TrainOptions::mixing sees it: inputs [N, …] of floats, and targets
/// [N] of classes as probabilities [N, classes], float32. Throws DTypeError or ShapeError for
/// others.
TENON_API data::Batch mixed(const data::Batch& batch, const data::MixDraw& draw,
                            std::int64_t classes);

/// Trains a module on batches (input, target). The optimizer must outlive the trainer.
class TENON_API Trainer {
 public:
  /// Throws ValueError when the loss is empty, a callback null or an option out of its range, and
  /// where none of the network's parameters is the optimizer's. A part of them is enough; what the
  /// optimizer has besides must be of the loss, or fit() throws.
  Trainer(nn::AnyModule net, nn::Loss loss, optim::Optimizer& optimizer, TrainOptions options = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Throws NumericError naming the first layer whose output is not finite when the loss stops
  /// being so; the weights are those before that step. Throws it too where weights that are not
  /// finite would be saved or left by the last step.
  ///
  /// After each epoch the validation part is measured: the best weights, early stopping and the
  /// schedule "plateau" depend on it alone. The test part is measured once, when training has
  /// ended, by the weights that are kept (TrainResult::test); of a run that is resumed after its
  /// end it is not measured again. It changes nothing else. Throws ValueError before the first step
  /// where the epoch's last batch has one sample and the network cannot train on one, as batch
  /// normalization cannot; and ShapeError, DTypeError or ValueError that names the validation or
  /// the test part where the network or the loss cannot take its samples. Training or evaluation
  /// mode of the network's and the teacher's modules is left as it was found, whatever is thrown.
  TrainResult fit(data::Loader& train, data::Loader* validation = nullptr,
                  data::Loader* test = nullptr);
  TrainResult fit(data::Loader& train, data::Loader& validation) { return fit(train, &validation); }
  TrainResult fit(data::Loader& train, data::Loader& validation, data::Loader& test) {
    return fit(train, &validation, &test);
  }
  /// Of sets with several views of each example the mean_of_views(); pictures that the set leaves
  /// out (data::PictureOptions::broken_left_out) count for nothing. Throws FormatError when none is
  /// left. Leaves the modules' modes as it found them, as predict() does.
  Evaluation evaluate(data::Loader& loader);
  /// Scores (the module's output) for a batch of inputs as the loader would give them.
  Tensor predict(const Tensor& inputs);
  const nn::AnyModule& net() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// "conv1 (Conv2d(…)): output" of the first layer, in order of calls, whose output or parameter is
/// not finite; "" when all are.
TENON_API std::string first_non_finite(const nn::Module& net, const Tensor& input);

// ---- Runs: everything about one training in a folder

struct SettingText;  // (library use)

/// What shapes a run: its defaults are the model's recipe. Written to RUN/settings.toml.
struct TENON_API Settings {
  std::string model = "lenet5", activation;
  std::string network;  ///< the text of the file that `model` names (docs/model_toml.md), or ""
  std::string head;     ///< layers in place of the network's last: "256,relu"
  std::string lora;     ///< adapters beside weights that stay: "rank=8,alpha=16,targets=c_attn"
  std::string teacher;  ///< a run whose network's scores are learnt from too; "": none
  double temperature = 4, distill_weight = 0.5;  ///< of the teacher's scores
  std::string weights;      ///< a file of weights, of which what fits is taken; "": as drawn
  std::string freeze;       ///< parts of the network that do not learn: "features,fc.0"
  int unfreeze_after = 0;   ///< epochs, from which on the frozen parts learn too; 0: never
  int frozen_variants = 0;  ///< of augmentation, of which what frozen parts give is computed once
  std::string keep_frozen = "auto";  ///< where what they give is kept: auto, memory, disk; off
  double frozen_cache = 32;          ///< GiB on disk, of all runs together
  std::string rate_of;    ///< learning rates of parts, as shares of lr: "features=0.1,fc=2"
  std::string tokenizer;  ///< file of one, for text: tokenizer.json, vocab.txt, vocab.json
  std::string task = "classification";  ///< or "regression": targets are quantities
  std::string data = "digits";          ///< digits[:TRAIN,TEST] | mnist[:DIR] | idx:DIR | csv:FILE
  int epochs = 5;
  std::int64_t batch = 64;
  std::string optimizer = "sgd";
  double lr = 0.05, momentum = 0.9, weight_decay = 0;
  bool nesterov = false;
  std::string schedule = "cosine";
  std::string milestones;  ///< epochs at which multistep changes the rate: "3,6" or "3=0.4,6=0.2"
  double warmup = 0.25, step_epochs = 1, gamma = 0.1, min_lr_factor = 0;
  double power = 1;          ///< of the schedule polynomial
  int restart_multiply = 1;  ///< of cosine_restarts: periods grow by this factor
  double clip_norm = 0, label_smoothing = 0;
  double beta2 = 0.999, eps = 1e-8;  ///< of adam and adamw
  std::string layer_precision;       ///< exceptions from `precision`: "fc3=fp32,conv1=tf32"
  std::string precision = "fp32", device = "cpu", tune = "read";
  int threads = 0;
  std::int64_t seed = 0;
  int early_stopping = 0;
  bool keep_best = true, drop_last = false, shuffle = true;
  bool strict = false;  ///< what a reader of the data would note (Dataset::notes()) is an error
  int keep_checkpoints = 2;
  std::int64_t checkpoint_steps = 0, max_steps = 0;
  double checkpoint_seconds = 30;
  double input_mean = 0.1307, input_std = 0.3081;
  std::string augment = "auto";     ///< data::Transforms, as "flip,cutout=8"; "none"; the recipe's
  std::string augment_on = "auto";  ///< where files of pictures are changed: cpu, card, both
  std::string picture = "auto";     ///< how pictures of their own sizes are fitted to the network
  std::string normalize = "auto";   ///< of channels: "imagenet", "M,M,M/S,S,S", or none
  std::string broken = "skip";      ///< pictures that cannot be decoded, or "error"
  /// What transparent parts of images lie on, as "white"; none: the colour under them is kept;
  /// auto: as the data source says, else none.
  std::string background = "auto";
  bool standardize = true;   ///< columns of a table, by the training part's means and deviations
  int workers = 0;           ///< threads that prepare batches; 0: one, or for files of pictures all
  std::int64_t classes = 0;  ///< 0: as many as the data has

  /// The model's recipe. Throws ValueError for an unknown model; of a file (its name ends in .toml)
  /// IoError or FormatError.
  static Settings for_model(const std::string& model);
  /// What is known of the model, and the model itself: of the text of `network` where there is one,
  /// wherever the file is by now. Throw as models::info() and models::create().
  models::Info model_info() const;
  nn::AnyModule create_model(const models::Options& options) const;
  /// The model as a file, with the settings' classes, head and activation. Throws NotSupported.
  std::string model_toml() const;
  /// The recipe of the model that is named ("" : the file's, or the default), then a TOML file (""
  /// : none), then single settings.
  static Settings resolve(const std::string& model, const std::string& file,
                          const std::vector<std::pair<std::string, std::string>>& overrides);
  /// Sets one by its name, from text. Throws ValueError naming the key (with a near miss) or the
  /// value and what is taken.
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key) const;
  /// Applies a TOML file of `key = value` lines. Throws IoError, FormatError (with the line) or
  /// ValueError.
  void apply_file(const std::string& path);
  /// Of the run in this folder: its settings.toml, which lacks nothing that every run writes.
  /// Throws FormatError where it does, and as apply_file().
  static Settings of_run(const std::string& dir);
  std::string toml() const;
  /// Of what toml() gave; throws as of_run(), naming `source`.
  static Settings of_text(const std::string& toml, const std::string& source);
  struct Key {
    std::string name, help, value;  ///< value: the one in force
  };
  std::vector<Key> keys() const;

 private:
  friend struct FoldsFile;
  void use_rates_of(const std::string& chosen);
  void apply_lines(const std::vector<SettingText>& lines, const std::string& path);
  static Settings of_lines(const std::vector<SettingText>& lines, const std::string& file);
  static Settings with_recipe(const std::string& model, const std::string& network);
  std::vector<std::string> given_;  // keys that set() was called for
};

struct RunOptions {
  std::vector<std::shared_ptr<Callback>> callbacks{};
  std::function<bool()> stop{};
};

/// Starts a run in a new or empty folder ("" : a run without a folder). Throws ValueError when the
/// folder holds a run, ShapeError when the data does not suit the model.
TENON_API TrainResult start_run(const Settings& settings, const std::string& dir,
                                const RunOptions& options = {});
/// Goes on with a run by its own settings, from its latest checkpoint. `overrides` may change what
/// does not shape the results (threads, workers, checkpoint_*, keep_checkpoints), epochs (not fewer
/// than are done), drop_last from where the run stands, and where the data lies. Throws IoError for
/// a run that has no checkpoint (what was stopped before its first one is begun anew by
/// start_run()), and ValueError where settings.toml was changed since the newest checkpoint in what
/// shapes the results.
TENON_API TrainResult
resume_run(const std::string& dir, const RunOptions& options = {},
           const std::vector<std::pair<std::string, std::string>>& overrides = {});

/// What a fold of start_folds() and resume_folds() is run with: asked for each before it begins.
using FoldOptions =
    std::function<RunOptions(int fold, const Settings& settings, const std::string& dir)>;
/// Cross-validation: `folds` runs in dir/fold-1, dir/fold-2, …, each tested on another of as many
/// parts of the samples. A fold's weights are chosen by a validation part of its training samples,
/// and measured once on its test part (TrainResult::test). Returns the results of the folds that
/// were run: fewer than `folds` where the last of them was interrupted. Throws ValueError where the
/// folder holds runs already, and for data that says itself what is for testing.
TENON_API std::vector<TrainResult> start_folds(const Settings& settings, int folds,
                                               const std::string& dir,
                                               const FoldOptions& options = {});
/// Goes on where start_folds() was stopped: folds that have ended are not trained again, the one
/// under way is resumed, the others are begun. `overrides` as resume_run()'s, of all folds.
TENON_API std::vector<TrainResult> resume_folds(
    const std::string& dir, const FoldOptions& options = {},
    const std::vector<std::pair<std::string, std::string>>& overrides = {});
/// How many folds the folder of start_folds() is for; 0 where it is none.
TENON_API int folds_in(const std::string& dir);
/// Settings that the folds of such a folder have in common.
TENON_API Settings settings_of_folds(const std::string& dir);

struct GenerateOptions {
  std::int64_t tokens = 200;
  double temperature = 1;  ///< scores are divided by it; 0: always the likeliest token
  std::int64_t top_k = 0;  ///< draw among the likeliest only; 0: among all
  double top_p = 1;        ///< draw among the likeliest that together reach this probability
  std::uint64_t seed = 0;  ///< of the draws
  /// In place of the tokens that the model's training data had: of weights from elsewhere.
  std::shared_ptr<const data::Tokenizer> tokenizer{};
  /// Gets each piece of text as it is written; writing ends when it says false.
  std::function<bool(const std::string& piece)> on_text{};
};

struct TranslateOptions {
  std::int64_t beam = 4;  ///< translations that are looked at side by side
  double length_penalty =
      0.6;                  ///< of scores, by ((5 + length) / 6) to this power (Wu et al., 2016)
  std::int64_t batch = 64;  ///< texts at a time
};

/// What an evaluation measures, or predictions are made of.
struct Selection {
  std::string data{};                   ///< the source, as it is opened
  data::Split part = data::Split::All;  ///< of it
  bool own = false;                     ///< the run's own data
  Notes notes{};                        ///< where it is read otherwise than it was named
};

struct EvaluateOptions {
  std::optional<data::Split> part{};  ///< in place of what TrainedModel::select_data() chooses
  std::int64_t batch = 0;             ///< samples at a time; 0: chosen for speed
  bool strict = false;                ///< a note of the data is a FormatError
  /// Gets (batch, batches).
  std::function<void(std::int64_t, std::int64_t)> progress{};
};

/// A text to be predicted.
struct TextLine {
  std::string name{};       ///< "texts.txt, line 17"
  std::string text{};       ///< two texts have a tab between them
  std::int64_t label = -1;  ///< its class, where it is known
};
struct TextLines {
  std::vector<TextLine> lines{};
  Notes notes{};
};

/// What a model makes of one sample of a set.
struct Prediction {
  std::int64_t index = 0;       ///< in the set
  std::string name{};           ///< Dataset::sample_name()
  std::vector<float> values{};  ///< probabilities of the classes, or quantities
  std::int64_t label = -1;      ///< its class, where it is known
  std::vector<float> target{};  ///< its quantities, where they are known
};

/// The network that weights were published with, by the config.json of Hugging Face's or timm's in
/// their folder or beside their file.
struct PublishedNetwork {
  std::string model;         ///< a name for models::create(), with all that the config decides
  std::int64_t classes = 0;  ///< outputs; 0: no config was read, and `model` is what was asked for
  std::string config{};      ///< its path; "": none was read
  Notes notes{};             ///< what of it is not read, and why
};
/// What the config beside `weights` makes of `model`. Throws as TrainedModel::with_weights() does
/// for a config that says something else than `model`, or a network that Tenon lacks.
TENON_API PublishedNetwork published_network(const std::string& weights, const std::string& model);

/// A trained model taken from a run folder (or from one model.safetensors).
class TENON_API TrainedModel {
 public:
  /// Throws IoError, or FormatError for a file that does not say which model it belongs to.
  static TrainedModel open(const std::string& run_or_file);
  /// What one's own Trainer wrote, with the module that it trained, whose weights are loaded: it
  /// computes in the current context, predict() leaves inputs as they are, evaluate() throws
  /// NotSupported.
  /// Throws IoError, and as load_state_dict() for a module that the weights do not fit.
  static TrainedModel open(const std::string& run_or_file, const nn::AnyModule& net);
  /// The network of these settings, with as many outputs as it was published with unless they say
  /// how many, and all its weights from a file of others (<tenon/weights.h>). Throws ValueError
  /// that says which are missing, foreign or of another shape.
  static TrainedModel with_weights(const Settings& settings, const std::string& file);
  /// What with_weights() did to them, in words.
  const std::string& weights_note() const { return weights_note_; }
  const Settings& settings() const { return settings_; }
  /// Computes in another precision than the run did.
  void set_precision(Precision precision) {
    settings_.precision = name(precision);
    context_.precision = precision;
  }
  /// Fits pictures of sizes of their own otherwise than the run did, as "resize,ten_crop". Throws
  /// ValueError.
  void set_picture(const std::string& steps);
  /// Puts transparent parts of images on another background than the run did: a colour
  /// (io::parse_colour()), or "none". Throws ValueError.
  void set_background(const std::string& colour);
  const nn::AnyModule& net() const { return net_; }
  const std::string& file() const { return file_; }
  /// As many as there are classes: the words that the training data used, or numbers; "<N>" for an
  /// output beyond the tokens of a text.
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// How rows of a table become inputs, from the training data; null for a model of anything else.
  const std::shared_ptr<const data::TableColumns>& table() const { return table_; }
  /// Of a model that learnt from text by one, or that was given one with its settings; or null.
  const std::shared_ptr<const data::Tokenizer>& tokenizer() const { return tokenizer_; }
  /// Metrics on what select_data() chooses.
  Evaluation evaluate(const std::string& data = "", const EvaluateOptions& options = {}) const;
  /// The data and the part of it that evaluate() measures. "" : the run's own data, looked for anew
  /// when the run was moved. Data of the same files as the run's own are the run's own, with the
  /// run's options, whatever options they are given with. Where the run's files are gone, those of
  /// the same names are the run's when they hold the same training samples. Unless `part` is set,
  /// the part is Test of the run's own data, of data that is drawn, and of data that names a test
  /// file; All of others.
  /// Throws IoError for a run's data that is not there.
  Selection select_data(const std::string& data, std::optional<data::Split> part = {}) const;
  /// A part of a data source as this model takes it, with the classes that it knows.
  /// Throws ValueError where the source has no such part; with `strict`, FormatError for what else
  /// would be a note.
  std::shared_ptr<data::Dataset> open_set(const Selection& selection, bool strict = false) const;
  /// How many of so many samples from `start` on (-1: all) the run has learnt from, as far as its
  /// folder keeps a record of them, whatever path or source they come from. Unset where it is not
  /// known: no record, or one of samples of another kind.
  std::optional<SeenSamples> seen_samples(const data::Dataset& set, std::int64_t start = 0,
                                          std::int64_t count = -1) const;
  /// The same of one image by its file's bytes.
  std::optional<SeenSamples> seen_image(std::string_view file) const;
  /// The same of the test part.
  std::shared_ptr<data::Dataset> test_set(const std::string& data) const;
  /// Whether pictures of any size are brought to the network's by fit().
  bool fits_pictures() const;
  /// A picture as the network takes it, uint8 [1, C, H, W], or [1, crops, C, H, W]: resized and
  /// cropped as the run's pictures were. Throws ValueError for a model of no pictures.
  Tensor fit(const io::Image& image) const;
  /// Pictures of sizes of their own as this model takes them, as test_set() gives them.
  std::shared_ptr<data::Dataset> fit(std::shared_ptr<const data::Pictures> pictures) const;
  /// How files of images are read for this model (io::load_image()): with the run's background.
  io::ImageReading image_reading(int channels) const;
  /// What fit() does, as "resize,center_crop".
  std::string fitting() const;
  bool is_regression() const { return settings_.task == "regression"; }
  /// Class probabilities [N, classes] of images, uint8 [N, C, H, W] (0…255) or floats (0…1), the
  /// mean over the crops of [N, crops, C, H, W], or of rows of a table [N, columns]; of a
  /// regression the quantities [N, outputs]. For a module that was given: what it returns for these
  /// inputs.
  Tensor predict(const Tensor& images) const;
  /// The same for samples of a set that suits the model, from `start` on, `count` of them (-1:
  /// all), a batch at a time: each is handed to `take` in order. Samples that cannot be decoded are
  /// left out; Dataset::broken() names them. `take` gets the input too, [1, …] as the set gives it.
  void predict(const data::Dataset& set, std::int64_t start, std::int64_t count,
               const std::function<void(Prediction&&, const Tensor& input)>& take) const;
  /// Class probabilities [classes] of a text, or of two with a tab between them; of a model that
  /// learnt masked words, of the tokens [vocabulary] for its first [MASK]; of a model of language,
  /// of the token behind the text. Throws ValueError for a model that reads no text, or has nothing
  /// to tell of this one.
  Tensor predict_text(const std::string& text) const;
  /// Of a model of language: the probabilities [classes] of the token behind these, of which it
  /// sees the last of its context. Throws ValueError for another model, for none, and for a
  /// tokenizer with more tokens than the model has.
  Tensor next_token(const std::vector<std::int64_t>& tokens) const;
  /// The text of tokens that the model knows. Throws ValueError for a model that does not say which
  /// they are, and for a number outside.
  std::string text_of(std::span<const std::int64_t> tokens) const;
  /// The answer that stands in a text, of a model that finds them. Throws ValueError for another.
  Answer answer(const std::string& question, const std::string& text) const;
  /// Questions of a part of "spans:FILE" from `start` on, answered; a count of -1 is all. Throws
  /// ShapeError for other data, ValueError for another model.
  std::vector<AskedQuestion> answers(const Selection& data, std::int64_t start,
                                     std::int64_t count) const;
  /// Texts of a file, one a line, as "lines:FILE" with the options of that source, or FILE alone;
  /// what is not said is as in the run's data. Of a classifier lines may hold their class, as the
  /// run's do: they do where at least half of them hold one that the model knows. A class that it
  /// does not know, or none, is a label of -1 and a note. Throws IoError, FormatError, ValueError
  /// for an option that is none.
  TextLines read_texts(const std::string& source) const;
  /// What predict_text() loses of these texts, tokens that are unknown and those beyond the model's
  /// length, and how many of them training has seen.
  Notes notes_on_texts(const std::vector<TextLine>& texts) const;
  /// All rows of a table, "csv:FILE" with the options of that source or FILE alone, read as the
  /// run's data where they do not say otherwise. Columns are found by name where both it and the
  /// training data have a header. Where the table has the label's column and its words are those of
  /// the model, targets are the labels; otherwise they are no classes. Throws IoError, and
  /// FormatError, ValueError or ShapeError for rows that do not fit.
  std::shared_ptr<data::Dataset> open_rows(const std::string& file) const;
  /// Predicts every row of open_rows() and writes them to `out`: the rows as they are with a column
  /// "prediction" behind them, of classes also "probability". Returns the number of rows.
  std::int64_t predict_csv(const std::string& file, const std::string& out) const;
  /// What a model of language writes after `prompt`. Throws ValueError for another model, an option
  /// out of range, or a prompt with characters that the model does not know.
  std::string generate(const std::string& prompt, const GenerateOptions& options = {}) const;
  /// Whether the model translates.
  bool is_translator() const { return net_.as<models::Translator>() != nullptr; }
  /// The likeliest translations by beam search, of at most 50 tokens more than the source. Throws
  /// ValueError for a model that does not translate, an option out of range, or a text with
  /// characters that the model does not know.
  std::vector<std::string> translate(const std::vector<std::string>& texts,
                                     const TranslateOptions& options = {}) const;

 private:
  TrainedModel();
  void compute_here();
  std::shared_ptr<data::Dataset> open_part(const Selection& selection, bool strict) const;
  std::int64_t size_of_whole(const Selection& selection) const;
  std::optional<std::string> own_selection(const std::string& data) const;
  std::optional<bool> trained_on(const std::string& data) const;
  std::string locate_own() const;
  void note_seen(const Selection& selection, const data::Dataset& set, Evaluation& out) const;
  void load_record();
  void predict_batch(const data::Dataset& set, std::int64_t first, std::int64_t end,
                     const std::function<void(Prediction&&, const Tensor& input)>& take) const;
  void name_classes(std::int64_t classes);
  void require_spans() const;
  std::vector<std::int64_t> tokens_of(const std::string& text) const;
  Settings settings_;
  Context context_;
  nn::AnyModule net_;
  std::string file_, run_;  // run_: "" when it was opened from a file
  std::string weights_note_;
  bool given_net_ = false;  // which settings_ say nothing of
  bool foreign_ = false;    // with weights from elsewhere: settings_ say nothing of its data
  std::vector<std::string> class_names_;
  std::string text_unit_;                               // of tokens, or ""
  std::shared_ptr<const data::Vocabulary> vocabulary_;  // of text_unit_; null without one
  std::shared_ptr<const data::TableColumns> table_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::string data_digest_;  // of the samples that the run learnt from; "" where it is not known
  std::shared_ptr<const SampleRecord> record_;  // of them; null where there is none
  std::string record_problem_;                  // why
  Notes record_notes_;                          // where it is damaged
};

struct VerifyCheck {
  std::string name;  ///< "same bits with 1 and 2 threads"
  bool passed = false;
  std::string detail;  ///< what differed, and where first
};
struct VerifyReport {
  std::vector<VerifyCheck> checks;
  std::int64_t steps = 0;      ///< that were repeated
  std::int64_t run_steps = 0;  ///< that the run's log tells of; 0: there is none
  bool passed() const {
    for (const VerifyCheck& check : checks)
      if (!check.passed) return false;
    return true;
  }
};
/// Repeats the first steps of a run: twice, with another number of threads, and stopped in the
/// middle and resumed in a scratch folder; compares all weights and states bit by bit, and the
/// first losses with the run's log.
TENON_API VerifyReport verify_run(const std::string& dir, int steps = 40,
                                  const std::function<void(const std::string&)>& progress = {});

}  // namespace tenon::train
