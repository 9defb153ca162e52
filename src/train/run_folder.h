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

#include "run/tune.h"
#include "train/records.h"

namespace tenon::train {

/// The tokenizer of a run that learns from text by one.
inline constexpr char kTokenizerFile[] = "tokenizer.json";

struct Checkpoint {
  std::string path;
  io::TensorMap tensors;  ///< "model." and "optimizer." before the names
  Progress progress;
  std::string settings{};  ///< the settings.toml that it was made with; "" without one

  /// The tensors under a prefix, without it.
  StateDict part(const std::string& prefix) const;
  StateDict model_state() const { return part(kModelPrefix); }
  StateDict optimizer_state() const { return part(kOptimizerPrefix); }
  static constexpr char kModelPrefix[] = "model.", kOptimizerPrefix[] = "optimizer.";
  static constexpr char kLossScale[] = "trainer.loss_scale", kGoodSteps[] = "trainer.good_steps";
};

/// The newest checkpoint of a run folder that can be read: the one `latest` names, or failing that
/// the highest step. nullopt when there is none. Needs no lock: checkpoints are only ever replaced
/// whole.
/// One that `check` throws an Error for counts as one that cannot be read.
std::optional<Checkpoint> load_latest_checkpoint(
    const std::string& run_dir, const std::function<void(const Checkpoint&)>& check = {});

/// Whether the run in this folder has written a checkpoint, whatever it is worth.
bool has_checkpoint(const std::string& run_dir);

/// Checkpoint::settings of the newest checkpoint whose head can be read; "" where none has any.
std::string settings_of_latest_checkpoint(const std::string& run_dir);

/// The engines that the run's products used so far (engines.tune); none when the file is missing or
/// cannot be read, which is then said.
TuneTable load_engines(const std::string& run_dir);

class RunFolder {
 public:
  /// Makes the folder where it is missing and locks it. Throws IoError when it cannot be made or
  /// written or is in use, and ValueError when `resume` is off and it already holds a run. What a
  /// run left that was stopped before its first step is no run, and makes room for this one.
  RunFolder(const std::string& path, bool resume);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const noexcept { return path_; }

  /// Writes the checkpoint, then points `latest` to it, then deletes all but the newest `keep`.
  /// Returns its path.
  std::string save(const Checkpoint& checkpoint, int keep);
  /// Brings the logs to where the run stands: cuts off what lies beyond `progress`, and opens them
  /// for appending.
  void open_logs(const Progress& progress);
  /// log.csv anew, with what log.jsonl says of the test part in the lines of those epochs.
  void rewrite_csv(const std::vector<EpochReport>& history);
  /// What the weights after this step gave on the test part, where log.jsonl says that.
  std::optional<TestReport> test_report(std::int64_t step) const;
  void append_csv(const std::string& text) { append(csv_, "log.csv", text); }
  void append_json(const std::string& line) { append(json_, "log.jsonl", line + "\n"); }

 private:
  void lock();
  void refuse_foreign_links() const;
  bool holds_run() const;
  void remove_leftovers(bool resume) const;
  void append(int fd, const char* name, const std::string& text);
  std::string path_;
  int lock_ = -1, csv_ = -1, json_ = -1;
};

}  // namespace tenon::train
