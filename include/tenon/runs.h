// Runs: a network by name or from a file, trained on a data source into a folder, as the command
// does. Settings, start, resume, cross-validation and verification.
//
// A run with the same settings gives the same bits for any number of threads, and also when the run
// was killed and resumed. Nothing here prints.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/train_reports.h>

namespace tenon::models {
class Network;
}

namespace tenon::train {

struct SettingText;  // (library use)

/// The settings of a run, one for each setting of `tenon train`. The defaults are the model's
/// recipe. A run writes them to RUN/settings.toml.
struct TENON_API Settings {
  /// The plugins that were loaded when the run began (load_plugin()), as a run writes them: "NAME
  /// VERSION DIGEST FILE, …". They must be loaded when the run is opened.
  std::string plugins;
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
  std::string loss;  ///< a registered loss (register_loss()) in place of the task's; "": the task's
  std::string callbacks;          ///< registered callbacks of the run (register_callback()): "a,b"
  std::string data = "digits";    ///< data source, as data::open_dataset() takes it
  int epochs = 5;                 ///< passes over the training data
  std::int64_t batch = 64;        ///< samples in a step
  std::string optimizer = "sgd";  ///< a name of optim::names()
  double lr = 0.05;               ///< learning rate
  double momentum = 0.9;          ///< of sgd, rmsprop and muon
  double weight_decay = 0;        ///< weight decay
  bool nesterov = false;          ///< Nesterov momentum, of sgd and muon
  std::string schedule = "cosine";  ///< learning-rate schedule (optim::create_schedule())
  /// Epochs at which the schedule multistep changes the learning rate: "3,6" multiplies by `gamma`,
  /// "3=0.4,6=0.2" sets factors.
  std::string milestones;
  double warmup = 0.25;      ///< epochs of linear warm-up, at most half of the run
  double step_epochs = 1;    ///< period of step and exponential, first period of cosine_restarts
  double gamma = 0.1;        ///< factor of step, multistep, exponential and plateau
  double min_lr_factor = 0;  ///< lowest learning rate of a schedule, as a factor of lr
  double power = 1;          ///< of the schedule polynomial
  int restart_multiply = 1;  ///< of cosine_restarts: the ratio of a period to the one before
  int accumulate = 1;  ///< batches whose mean gradient is one update (TrainOptions::accumulate)
  /// Average of the weights that is validated, kept and saved (TrainOptions::averaging): "none",
  /// "ema" or "swa".
  std::string average = "none";
  double average_decay = 0.999;  ///< of ema: the average's own share in an update
  int average_start = 0;         ///< epochs before the average begins
  double clip_norm = 0;          ///< largest common norm of all gradients; 0: no limit
  double label_smoothing = 0;    ///< share of the target spread over all classes in training
  double beta2 = 0.999;          ///< of adam and its relatives, lion and lamb
  double eps = 1e-8;             ///< of optimizers that divide; of levenberg: mu
  std::string layer_precision;   ///< exceptions from `precision`: "fc3=fp32,conv1=tf32"
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
  /// A note of the data (Dataset::notes()) or of the file of `weights` (io::WeightFile::notes())
  /// is an error.
  bool strict = false;
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
  bool stopped = false;             ///< whether `stop` ended it before all checks were done
  /// Whether all checks were done and passed.
  bool passed() const {
    if (stopped) return false;
    for (const VerifyCheck& check : checks)
      if (!check.passed) return false;
    return true;
  }
};
/// Checks that a run is reproducible. Repeats the first `steps` steps of the run in dir: twice,
/// with another number of threads, and stopped halfway and resumed in a temporary folder. Compares
/// all weights and optimizer states bit by bit, and the first losses with the run's log. `progress`
/// receives a line before each check. If `stop` returns true, the checks that are done are
/// returned, and the temporary folder is removed.
TENON_API VerifyReport verify_run(const std::string& dir, int steps = 40,
                                  const std::function<void(const std::string&)>& progress = {},
                                  const std::function<bool()>& stop = {});

}  // namespace tenon::train
