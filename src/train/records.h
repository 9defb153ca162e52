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

/// Where a run stands after a step.
struct Progress {
  std::int64_t step = 0;  ///< steps done
  std::int64_t steps_per_epoch = 0;
  /// The resumed run must have the same. With drop_last changed its epochs have a step more or less
  /// from the one on that was under way: it began after `first_epoch` epochs and `first_step`
  /// steps.
  std::int64_t batch = 0, examples = 0;
  std::string data;  ///< data_digest() of the training samples; "" where it is not known
  std::int64_t first_epoch = 0, first_step = 0;
  std::uint64_t loader_seed = 0;
  std::uint64_t generator_seed = 0, generator_counter = 0;
  // The epoch under way.
  double loss_sum = 0;
  double weight = 0;  ///< of the losses, as nn::LossTerms::counted
  std::int64_t correct = 0, targets = 0, items = 0;
  double seconds = 0;
  std::map<std::string, double> schedule;
  std::vector<EpochReport> history;

  /// Whole epochs in the first `steps` steps, and steps behind them. Before the step from which on
  /// epochs are cut as they are now, at the most one is asked for: the last of the epoch before.
  std::int64_t epochs_in(std::int64_t steps) const {
    if (steps < first_step) return first_epoch - 1;
    return first_epoch + (steps - first_step) / steps_per_epoch;
  }
  std::int64_t steps_behind_epochs(std::int64_t steps) const {
    return (steps - first_step) % steps_per_epoch;
  }
  /// The epoch of step `number`, both from 1.
  int epoch_of(std::int64_t number) const { return static_cast<int>(epochs_in(number - 1)) + 1; }
  /// The number of the last step of so many epochs.
  std::int64_t steps_of_epochs(std::int64_t epochs) const {
    return first_step + (epochs - first_epoch) * steps_per_epoch;
  }
};

std::string to_json(const Progress& progress);
/// Throws FormatError naming `source` for text that is not what to_json() writes.
Progress progress_from_json(const std::string& text, const std::string& source);

/// Header and line of log.csv; figures that were not taken are empty. Those of the test part stand
/// in the line of the epoch whose weights they are of.
std::string csv_header();
std::string csv_line(const EpochReport& epoch, const std::optional<TestReport>& test = {});
/// Lines of log.jsonl, without the line end.
std::string json_line(const EpochReport& epoch);
std::string json_line(const TestReport& test);
std::string json_step_line(std::int64_t step, double loss, double lr);
std::string json_event_line(const std::string& event, std::int64_t step,
                            const std::string& detail = "");
/// Of a session that goes on from `progress` and is to end with step `total`.
std::string json_begin_line(const std::string& event, const Progress& progress, std::int64_t total,
                            const std::string& detail);

/// Lines of a log.jsonl that belong to steps up to `step`; torn lines are left out.
std::string json_log_until(const std::string& text, std::int64_t step);

/// What a log.jsonl says of steps and of sessions, each in the order of lines.
struct RunLog {
  struct Step {
    std::int64_t step = 0;
    double loss = 0, lr = 0;
  };
  struct Begin {
    std::int64_t step = 0;   ///< the last one before it
    std::int64_t total = 0;  ///< as json_begin_line()'s; 0 where an older version wrote the line
    std::int64_t steps_per_epoch = 0;  ///< the same
  };
  std::vector<Step> steps;
  std::vector<Begin> begins;
  std::vector<TestReport> tests;
  std::int64_t last_step = 0;  ///< the last one that a line tells of
};
RunLog read_log(const std::string& text);

}  // namespace tenon::train
