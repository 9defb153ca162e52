// The progress bar is redrawn at most ten times a second, so it costs no measurable time. Without a
// terminal it is a plain line every five seconds, suited to a log file.
#include "progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "interrupt.h"
#include "output.h"
#include "terminal.h"

namespace tenon::cli {

using Clock = std::chrono::steady_clock;

// Notes before training are printed after the introduction.
void Progress::on_note(const std::string& note) {
  if (quiet_) {  // notes on the data are printed even with --quiet
    if (note.starts_with("note: ")) std::fputs((printable(note) + "\n").c_str(), stderr);
    return;
  }
  if (!started_) return notes_.push_back(note);
  clear_status_line();
  fmt::print("{}\n", printable(note));
  flush_output();
}

// The speed excludes the first batch, because it includes planning.
void Progress::on_frozen(std::int64_t done, std::int64_t examples) {
  const Clock::time_point now = Clock::now();
  if (frozen_before_ == 0) frozen_before_ = done, frozen_begun_ = now;
  if (done == examples) return clear_status_line();
  if (quiet_ || !due()) return;
  const double share = static_cast<double>(done) / static_cast<double>(examples),
               seconds = std::chrono::duration<double>(now - frozen_begun_).count(),
               speed = static_cast<double>(done - frozen_before_) / std::max(seconds, 1e-9);
  std::string facts =
      fmt::format("{:3.0f} %  {} of {} samples", share * 100, thousands(done), thousands(examples));
  if (speed > 0) {
    const auto left = std::llround(static_cast<double>(examples - done) / speed);
    facts += fmt::format("  {:.3g}/s  {}:{:02} left", speed, left / 60, left % 60);
  }
  show("frozen part, once", share, facts);
}

void Progress::on_start(std::int64_t steps_done, std::int64_t total_steps) {
  started_ = true;
  if (quiet_) return;
  fmt::print("{}\n", intro_(parameters_));
  for (const std::string& note : notes_) fmt::print("{}\n", printable(note));
  if (steps_done > 0) fmt::print("continuing after step {}\n", thousands(steps_done));
  flush_output();
  if (!stderr_terminal().interactive || steps_done >= total_steps) return;
  show(
      "first step",
      static_cast<double>(steps_done) / static_cast<double>(std::max<std::int64_t>(1, total_steps)),
      fmt::format("{} of {} steps", thousands(steps_done), thousands(total_steps)));
  widest_ = 0;
}

void Progress::on_step(const train::StepReport& report) {
  if (first_step_ == 0) first_step_ = seconds_since_start();
  if (quiet_ || !due()) return;
  const double done = static_cast<double>(report.step_in_epoch) /
                      static_cast<double>(std::max<std::int64_t>(1, report.steps_per_epoch));
  const char* unit = stderr_terminal().width >= 92 ? " items/s" : "/s";
  const auto left = std::llround(report.seconds_left);
  show(fmt::format("epoch {}/{}", report.epoch, epochs_), done,
       fmt::format("{:3.0f} %  loss {}{}  {:>7}{}  {}:{:02} left", done * 100,
                   figure_text(report.mean_loss),
                   report.accuracy ? fmt::format("  acc {:>7}", percent(*report.accuracy)) : "",
                   rate(report.items_per_s), unit, left / 60, left % 60));
}

void Progress::on_evaluation(data::Split part, std::int64_t batch, std::int64_t batches) {
  if (quiet_ || !stderr_terminal().interactive || !due()) return;
  const double done =
      static_cast<double>(batch) / static_cast<double>(std::max<std::int64_t>(1, batches));
  show(part == data::Split::Test ? "testing" : "validation", done,
       fmt::format("{:3.0f} %", done * 100));
}

void Progress::on_epoch(const train::EpochReport& report) {
  clear_status_line();
  const Terminal& terminal = stdout_terminal();
  const std::string total = std::to_string(epochs_);
  std::string line = fmt::format("epoch {}/{}  training loss {}",
                                 pad_left(std::to_string(report.epoch), columns(total)), total,
                                 figure_text(report.train_loss));
  if (report.train_accuracy) line += fmt::format(", accuracy {}", percent(*report.train_accuracy));
  if (const std::string measured =
          metrics_text(*task_, report.validation_metrics, report.validation_loss, true);
      !measured.empty())
    line += "  validation " + measured;
  line += fmt::format("  lr {:.2g}  {} items/s  {}", report.lr, rate(report.items_per_s),
                      duration_text(report.seconds));
  if (const double waited = report.data_seconds / std::max(report.seconds, 1e-9); waited >= 0.01)
    line += fmt::format("  waited {:.0f} % for data", 100 * waited);
  if (report.best && report.validation_loss) line += terminal.paint(TextStyle::Green, "  best");
  fmt::print("{}\n", line);
  flush_output();
}

// A terminal is redrawn ten times a second, a log gets a line every five seconds. A failed write
// (such as a full disk) must not stop the run: nothing here throws.
bool Progress::due() {
  const bool interactive = stderr_terminal().interactive;
  const Clock::time_point now = Clock::now();
  const bool first = shown_ == Clock::time_point();
  if (!first && now - shown_ < std::chrono::milliseconds(interactive ? 100 : 5000)) return false;
  shown_ = now;
  return interactive || !first;
}

void Progress::show(const std::string& label, double done, const std::string& facts) {
  const Terminal& terminal = stderr_terminal();
  if (!terminal.interactive) {
    std::fputs(fmt::format("{}  {}\n", label, facts).c_str(), stderr);
    return;
  }
  // The bar takes the width that the widest text of this run leaves, so it does not change size.
  widest_ = std::max(widest_, columns(facts));
  const int room = terminal.width - columns(label) - widest_ - 4;
  std::string line =
      room >= 6 ? fmt::format("{} {}  {}", label, bar_text(done, std::min(room, 30)), facts)
                : fmt::format("{}  {}", label, facts);
  status_line(columns(line) < terminal.width ? line : facts);
}

std::string bar_text(double done, int width) {
  const Terminal& terminal = stderr_terminal();
  const int full = static_cast<int>(std::lround(std::clamp(done, 0.0, 1.0) * width));
  std::string left, right;
  for (int i = 0; i < width; ++i)
    (i < full ? left : right) += terminal.utf8 ? "━" : (i < full ? "#" : "-");
  return terminal.paint(TextStyle::Green, left) + terminal.paint(TextStyle::Dim, right);
}

// Print NaN without its sign.
std::string percent(double share) {
  return std::isnan(share) ? "nan" : fmt::format("{:.2f} %", share * 100);
}

std::string figure_text(double loss) {
  return std::isnan(loss) ? "nan" : fmt::format("{:.4f}", loss);
}

std::string quantity_text(double value) {
  if (std::isnan(value)) return "nan";
  const double size = std::abs(value);  // quantities are easier to read without an exponent
  return size >= 1e5 && size < 1e12 ? fmt::format("{:.0f}", value) : fmt::format("{:.5g}", value);
}

std::string metric_text(double value, train::MetricForm form) {
  switch (form) {
    case train::MetricForm::Share:
      return percent(value);
    case train::MetricForm::Quantity:
      return quantity_text(value);
    default:
      return figure_text(value);
  }
}

std::string metrics_text(const train::Task& task, const train::Metrics& metrics,
                         std::optional<double> loss, bool bold) {
  const auto emphasized = [bold](const std::string& text) {
    return bold ? stdout_terminal().paint(TextStyle::Bold, text) : text;
  };
  const std::string first = task.monitored();
  std::string out;
  if (const std::optional<double> value = metrics[first]) {
    const train::MetricInfo metric = task.metric(first);
    out = metric.shown() + " " + emphasized(metric_text(*value, metric.form));
  } else if (loss) {
    out = "loss " + emphasized(figure_text(*loss));
  }
  for (const train::MetricInfo& metric : task.metrics())
    if (const std::optional<double> value = metrics[metric.name]; value && metric.name != first)
      out += fmt::format(", {} {}", metric.shown(), metric_text(*value, metric.form));
  return out;
}

std::string broken_text(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  return fmt::format("{} image{} that cannot be decoded: {}{}", names.size(),
                     names.size() == 1 ? "" : "s", printable(join(first, ", ")),
                     names.size() > kShown ? ", ..." : "");
}

std::string rate(double items_per_s) { return thousands(std::llround(items_per_s)); }

}  // namespace tenon::cli
