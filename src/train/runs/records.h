// State of a run besides its tensors, and its text forms: checkpoint metadata and log lines.
//
// Numbers are written so that reading them restores the same bits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tenon/train.h>

namespace tenon::train {

/// Progress of a run after a step, without the reports of its epochs.
struct StepState {
  std::int64_t step = 0;  ///< steps done
  std::int64_t steps_per_epoch = 0;
  /// The resumed run must have the same values. If drop_last changed, epochs have one step more or
  /// less, starting with the current epoch, which began after `first_epoch` epochs and `first_step`
  /// steps.
  std::int64_t batch = 0, examples = 0;
  std::string data;     ///< data_digest() of the training samples; "" if unknown
  std::string teacher;  ///< digest of the teacher's weights; "" without a teacher or if unknown
  std::int64_t first_epoch = 0, first_step = 0;
  std::uint64_t loader_seed = 0;
  std::uint64_t generator_seed = 0, generator_counter = 0;
  // The current epoch.
  double loss_sum = 0;
  double weight = 0;  ///< weight of the losses: nn::LossTerms::counted
  std::int64_t correct = 0, targets = 0, items = 0;
  double seconds = 0;
  std::map<std::string, double> schedule;

  /// Complete epochs in the first `steps` steps, and the remaining steps. Before the step at which
  /// the epoch length changed, only the last step of the previous epoch may be requested.
  std::int64_t epochs_in(std::int64_t steps) const {
    if (steps < first_step) return first_epoch - 1;
    return first_epoch + (steps - first_step) / steps_per_epoch;
  }
  std::int64_t steps_behind_epochs(std::int64_t steps) const {
    return (steps - first_step) % steps_per_epoch;
  }
  /// The epoch of step `number`, both from 1.
  int epoch_of(std::int64_t number) const { return static_cast<int>(epochs_in(number - 1)) + 1; }
  /// The last step of the first `epochs` epochs.
  std::int64_t steps_of_epochs(std::int64_t epochs) const {
    return first_step + (epochs - first_epoch) * steps_per_epoch;
  }
};
/// The state and the reports of all finished epochs.
struct Progress : StepState {
  std::vector<EpochReport> history;
};

std::string to_json(const StepState& state);
/// Throws FormatError naming `source` if the text was not written by to_json(). Checkpoints of
/// earlier builds have the reports of epochs in this text.
Progress progress_from_json(const std::string& text, const std::string& source);

/// The metrics of a task that have columns of their own in log.csv, after those that every log
/// has (accuracy, mae, r2).
std::vector<std::string> own_metrics(const Task& task);
/// Throws ValueError for a metric that the logs cannot hold under its name.
void check_metrics(const Task& task);
/// Header and line of log.csv; metrics that were not measured are empty. Test metrics are in the
/// line of the epoch whose weights were tested. `own` is own_metrics().
std::string csv_header(const std::vector<std::string>& own);
std::string csv_line(const EpochReport& epoch, const std::optional<TestReport>& test,
                     const std::vector<std::string>& own);
/// Lines of log.jsonl, without the newline.
std::string json_line(const EpochReport& epoch);
std::string json_line(const TestReport& test);
std::string json_step_line(std::int64_t step, double loss, double lr);
std::string json_event_line(const std::string& event, std::int64_t step,
                            const std::string& detail = "");
/// For a session that continues from `progress` and ends at step `total`. `device`: device_text().
std::string json_begin_line(const std::string& event, const StepState& progress, std::int64_t total,
                            const std::string& detail, const std::string& device);

/// The lines of a log.jsonl up to `step`; incomplete lines are dropped.
std::string json_log_until(const std::string& text, std::int64_t step);

/// Steps and sessions of a log.jsonl, each in the order of its lines.
struct RunLog {
  struct Step {
    std::int64_t step = 0;
    double loss = 0, lr = 0;
  };
  struct Begin {
    std::int64_t step = 0;             ///< last step before the session
    std::int64_t total = 0;            ///< as in json_begin_line(); 0 in lines of older versions
    std::int64_t steps_per_epoch = 0;  ///< the same
    std::string device{};              ///< the same; "" in lines of older versions
    std::string version{};             ///< Tenon's; "" in lines of older versions
  };
  std::vector<Step> steps;
  std::vector<Begin> begins;
  std::vector<TestReport> tests;
  std::int64_t last_step = 0;  ///< last step in the log
};
RunLog read_log(const std::string& text);

}  // namespace tenon::train
