// Progress of a training run: a bar that is redrawn, and one permanent line per epoch.
#pragma once

#include <tenon/train.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::cli {

class Progress : public train::Callback {
 public:
  /// Describes a network by its number of parameters.
  using Intro = std::function<std::string(std::int64_t parameters)>;
  /// `intro` is printed when training begins, followed by the notes; `epochs` is the planned
  /// number; `task` names the metrics. With `quiet` only the epochs' lines appear.
  Progress(Intro intro, int epochs, std::shared_ptr<const train::Task> task, bool quiet)
      : intro_(std::move(intro)), epochs_(epochs), task_(std::move(task)), quiet_(quiet) {}
  void on_note(const std::string& note) override;
  void on_frozen(std::int64_t done, std::int64_t examples) override;
  void on_network(const nn::AnyModule& net) override { parameters_ = net.parameter_count(); }
  void on_start(std::int64_t steps_done, std::int64_t total_steps) override;
  void on_step(const train::StepReport& report) override;
  void on_evaluation(data::Split part, std::int64_t batch, std::int64_t batches) override;
  void on_epoch(const train::EpochReport& report) override;
  /// Seconds from the start of the command to the end of its first training step; 0 before.
  double first_step_seconds() const { return first_step_; }
  /// Parameters of the trained network, whose last layer has as many outputs as the data needs.
  std::int64_t parameters() const { return parameters_; }

 private:
  bool due();
  void show(const std::string& label, double done, const std::string& facts);

  Intro intro_;
  std::int64_t parameters_ = 0;
  std::vector<std::string> notes_;
  int epochs_;
  std::shared_ptr<const train::Task> task_;
  bool quiet_, started_ = false;
  double first_step_ = 0;
  int widest_ = 0;
  std::chrono::steady_clock::time_point shown_, frozen_begun_;
  std::int64_t frozen_before_ = 0;  // done when its time began
};

/// The bar alone, `done` in [0, 1]: "━━━━╸━━━━" or "####----".
std::string bar_text(double done, int width);

/// "98.52 %"
std::string percent(double share);
/// "0.1234"
std::string figure_text(double loss);
/// "1234.5", for values of unknown magnitude
std::string quantity_text(double value);
/// A value in its metric's form, by one of the three above.
std::string metric_text(double value, train::MetricForm form);
/// "accuracy 98.52 %", or without a monitored metric "loss 0.1234", and then the task's other
/// metrics: "loss 0.1234, R2 0.9876, MAE 1.2". "" if nothing was measured. The
/// first number is bold on a terminal if `bold`.
std::string metrics_text(const train::Task& task, const train::Metrics& metrics,
                         std::optional<double> loss, bool bold);
/// "2 images that cannot be decoded: a.jpg, b.jpg"
std::string broken_text(const std::vector<std::string>& names);
/// "52,300"
std::string rate(double items_per_s);

}  // namespace tenon::cli
