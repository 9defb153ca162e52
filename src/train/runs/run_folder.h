// RunFolder: the files of a run, and the lock that excludes a second run.
//
//   settings.toml  tokenizer.json  log.csv  log.jsonl  model.safetensors  best.safetensors
//   training_samples.safetensors  engines.tune  lock
//   checkpoints/step-00000938.safetensors …  checkpoints/latest (name of the newest)
//
// Every file except the logs is replaced atomically, so a run killed at any moment leaves a
// complete checkpoint. A log may end in an incomplete line, which resuming removes. settings.toml
// is the last file of a new run, written after its first checkpoint: if it exists, the run can be
// resumed without the files that it started from, such as pretrained weights.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tenon/io.h>
#include <tenon/train.h>

#include "run/tuning/tune.h"
#include "train/runs/records.h"

namespace tenon::train {

/// The tokenizer of a run on tokenized text.
inline constexpr char kTokenizerFile[] = "tokenizer.json";

struct Checkpoint {
  std::string path;
  io::TensorMap tensors;   ///< "model.", "optimizer.", "average." … before the names
  Progress progress;       ///< once it is read; save() writes the reports of epochs from `tensors`
  std::string settings{};  ///< settings.toml at the time of writing; "" if missing
  std::string model{};     ///< description of the model, as in model files; "" if missing
  std::string epochs{};    ///< the result of add_epochs() for `tensors`, to be written

  /// The tensors under a prefix, with the prefix removed.
  StateDict part(const std::string& prefix) const;
  StateDict model_state() const { return part(kModelPrefix); }
  StateDict optimizer_state() const { return part(kOptimizerPrefix); }
  /// The weights that a model of the run has: the averaged ones if the run averages.
  StateDict kept_state() const;
  static constexpr char kModelPrefix[] = "model.", kOptimizerPrefix[] = "optimizer.";
  static constexpr char kAveragePrefix[] = "average.", kSumsPrefix[] = "accumulation.";
  static constexpr char kLossScale[] = "trainer.loss_scale", kGoodSteps[] = "trainer.good_steps";
};

/// The newest readable checkpoint of a run folder: the one that `latest` names, else the one with
/// the highest step. nullopt if there is none. Needs no lock, because checkpoints are replaced
/// atomically. A checkpoint for which `check` throws an Error counts as unreadable.
std::optional<Checkpoint> load_latest_checkpoint(
    const std::string& run_dir, const std::function<void(const Checkpoint&)>& check = {});

/// Whether the run folder contains a checkpoint file, readable or not.
bool has_checkpoint(const std::string& run_dir);

/// The settings of a run folder. Throws IoError if the folder holds no run, and says what it holds
/// instead; else as Settings::of_run().
Settings settings_of_run(const std::string& dir);

/// Checkpoint::settings of the newest checkpoint with a readable header; "" if there is none.
std::string settings_of_latest_checkpoint(const std::string& run_dir);

/// The engine choices of the run so far (engines.tune); empty, with a message, if the file is
/// missing or unreadable.
TuneTable load_engines(const std::string& run_dir);

/// Excludes other processes from a folder while it exists, by its file `lock`. Throws IoError if
/// the folder is in use or cannot be written.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

class RunFolder {
 public:
  /// Creates the folder if needed and locks it. Throws IoError if it cannot be created or written
  /// or is in use, and ValueError if `resume` is off and it already holds a run. Files of a run
  /// that stopped before its first step are removed.
  RunFolder(const std::string& path, bool resume);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const noexcept { return path_; }

  /// Writes the checkpoint, then points `latest` to it, then deletes all but the newest `keep`.
  /// Returns its path.
  std::string save(const Checkpoint& checkpoint, int keep);
  /// Truncates the logs to the position `progress` and opens them for appending. `own` is
  /// own_metrics().
  void open_logs(const Progress& progress, std::vector<std::string> own);
  /// Rewrites log.csv, with the test results of log.jsonl in the lines of their epochs.
  void rewrite_csv(const std::vector<EpochReport>& history);
  /// Test results of the weights after this step, if log.jsonl has them.
  std::optional<TestReport> test_report(std::int64_t step) const;
  void append_csv(const EpochReport& epoch) {
    append(csv_, "log.csv", csv_line(epoch, {}, own_metrics_));
  }
  void append_json(const std::string& line) { append(json_, "log.jsonl", line + "\n"); }

 private:
  void refuse_foreign_links() const;
  bool holds_run() const;
  void remove_leftovers(bool resume) const;
  void append(int fd, const char* name, const std::string& text);
  std::string path_;
  std::optional<FolderLock> lock_;
  int csv_ = -1, json_ = -1;
  std::vector<std::string> own_metrics_;
};

}  // namespace tenon::train
