// verify: repeats the first steps of a run under different conditions and compares every bit.
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/system.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "base/str.h"
#include "run/tuning/tune.h"
#include "train/batches/device_text.h"
#include "train/runs/records.h"
#include "train/runs/run_data.h"
#include "train/runs/run_folder.h"
#include "train/sessions/session.h"
#include "train/settings/settings.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;

constexpr int kFewestSteps = 3;

struct Abandoned {};  // thrown out of a session, so that it saves nothing, like a killed process

struct Outcome {
  StateDict state;
  std::vector<double> losses, rates;
};

// The run to be repeated. Steps up to those of `lengths` were part of a run of another length.
struct Made {
  ResolvedRun resolved;
  const DataSets& sets;
  std::vector<TrainOptions::Length> lengths;
};

// Records the losses. To abandon, ends the session immediately after `last` steps.
class Watcher : public Callback {
 public:
  Watcher(std::int64_t last, bool abandon) : last_(last), abandon_(abandon) {}
  void on_step(const StepReport& report) override {
    losses.push_back(report.loss);
    rates.push_back(report.lr);
    if (abandon_ && report.step >= last_) throw Abandoned();
  }
  std::vector<double> losses, rates;

 private:
  std::int64_t last_;
  bool abandon_;
};

struct Circumstances {
  std::int64_t steps;
  int threads;
  std::string dir{};
  bool resume = false, abandon = false;
  const std::function<bool()>& stop;
};

Outcome play(const Made& run, const Circumstances& c) {
  ResolvedRun resolved = run.resolved;
  resolved.set_threads(c.threads);
  resolved.set_checkpoint_steps(std::max<std::int64_t>(1, c.steps / 3));
  resolved.settings.keep_best = false;
  const ContextScope scope(context_of(resolved));
  // A run does not depend on its test part.
  const bool asks = resolved.schedule.follows_validation();
  Session session(
      resolved, {run.sets.train, asks ? run.sets.validation : nullptr, nullptr, run.sets.tokenizer},
      c.resume && has_checkpoint(c.dir));
  if (!resolved.frozen.layers.empty())
    session.keep_frozen(c.resume ? load_latest_checkpoint(c.dir) : std::nullopt, {.stop = c.stop});
  TrainOptions options = session.options(c.dir, c.resume);
  const auto watcher = std::make_shared<Watcher>(c.steps, c.abandon);
  options.callbacks = {watcher};
  options.stop = c.stop;
  options.earlier_lengths = run.lengths;
  if (!c.abandon) options.stop_after = c.steps;
  Trainer trainer(session.net, session.loss, *session.optimizer, std::move(options));
  try {
    trainer.fit(*session.train, session.validation.get());
  } catch (const Abandoned&) {
    return {};
  }
  Outcome out{{}, watcher->losses, watcher->rates};
  for (const StateDict& state : {session.net.state_dict(), session.optimizer->state_dict()})
    for (const auto& [name, t] : state)
      out.state.emplace(name, Tensor::from_data(t.data(), t.shape(), t.dtype(), Device{}));
  return out;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  return std::memcmp(a.data(), b.data(),
                     static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
}

VerifyCheck compare(const std::string& name, const Outcome& a, const Outcome& b, bool with_losses) {
  VerifyCheck check{name, true, cat(a.state.size(), " tensors agree")};
  for (std::size_t k = 0; with_losses && k < std::min(a.losses.size(), b.losses.size()); ++k) {
    if (a.losses[k] == b.losses[k]) continue;
    return {name, false,
            cat("the loss of step ", k + 1, " is ", a.losses[k], " and ", b.losses[k])};
  }
  for (const auto& [key, tensor] : a.state) {
    const auto it = b.state.find(key);
    if (it == b.state.end() || !same_bits(tensor, it->second))
      return {name, false, cat("'", key, "' differs")};
  }
  return check;
}

// The steps of a session depend on the length that the run had in that session.
std::vector<TrainOptions::Length> earlier_lengths(const RunLog& log) {
  std::vector<TrainOptions::Length> out;
  for (std::size_t k = 0; k + 1 < log.begins.size(); ++k) {
    const RunLog::Begin &one = log.begins[k], &next = log.begins[k + 1];
    if (one.total > 0 && next.step > one.step) out.push_back({next.step, one.total});
  }
  return out;
}

// The last step of the sessions whose length the log does not say.
std::int64_t unknown_until(const RunLog& log) {
  std::int64_t out = 0;
  for (std::size_t k = 0; k + 1 < log.begins.size(); ++k)
    if (log.begins[k].total == 0 && log.begins[k + 1].step > log.begins[k].step)
      out = std::max(out, log.begins[k + 1].step);
  return out;
}

// Why the run may have computed other bits in this step.
std::string reason_for_bits(const RunLog& log, std::int64_t step, const std::string& device) {
  const RunLog::Begin* session = nullptr;
  for (const RunLog::Begin& begin : log.begins)
    if (begin.step < step) session = &begin;
  if (session == nullptr || session->device.empty())
    return "another processor or another version of Tenon than the run's gives other bits";
  const auto text = [](const std::string& on, const std::string& by) {
    return cat(on, " with Tenon ", by);
  };
  if (session->device == device && session->version == version())
    return cat("both on ", text(device, version()),
               ", which should give the same bits: the data or the build of Tenon has changed, or "
               "this is a fault of Tenon, which you should report");
  return cat("the run computed this step on ", text(session->device, session->version),
             ", and this is ", text(device, version()),
             ": the same bits are promised for one instruction set or model of GPU, and one "
             "version",
             session->device.starts_with("cpu ") && device.starts_with("cpu ")
                 ? ". The environment variable TENON_ISA chooses an instruction set"
                 : "");
}

// Compares with the logged losses, which the run itself computed earlier.
VerifyCheck compare_log(const RunLog& log, const Outcome& now, const std::string& device) {
  const std::string name = "same losses as the run's log";
  const std::int64_t unknown = unknown_until(log);
  int compared = 0;
  for (const RunLog::Step& logged : log.steps) {
    if (logged.step < 1 || logged.step > static_cast<std::int64_t>(now.losses.size())) continue;
    const auto at = static_cast<std::size_t>(logged.step - 1);
    if (now.losses[at] != logged.loss)
      return {name, false,
              cat("step ", logged.step, ": the log says ", logged.loss, ", now ", now.losses[at],
                  "; ", reason_for_bits(log, logged.step, device))};
    ++compared;
    if (now.rates[at] == logged.lr) continue;
    // The loss belongs to the weights before the step, so it agrees although the rate differs.
    if (logged.step <= unknown)
      return {name, true,
              cat(compared,
                  " losses agree; later ones cannot be repeated: the run was resumed "
                  "after step ",
                  unknown,
                  ", and its log does not say how many epochs "
                  "it had before (step ",
                  logged.step, " had learning rate ", logged.lr, ", now ", now.rates[at], ")")};
    return {name, false,
            cat("step ", logged.step, ": the log has learning rate ", logged.lr, ", now ",
                now.rates[at], "; the run was made with other settings")};
  }
  return {name, true,
          compared == 0 ? "no losses of these steps are logged"
                        : cat(compared, compared == 1 ? " loss agrees" : " losses agree")};
}

// If drop_last changed during the run, only the steps before the change are repeated, with the
// value of that time.
void repeat_first_cut(const RunLog& log, Settings& settings, int& steps) {
  const auto cut = [](const RunLog::Begin& one) { return one.steps_per_epoch; };
  for (const RunLog::Begin& begin : log.begins) {
    if (cut(begin) == cut(log.begins.front()) || begin.step < kFewestSteps) continue;
    if (cut(log.begins.front()) != cut(log.begins.back())) settings.drop_last = !settings.drop_last;
    steps = static_cast<int>(std::min<std::int64_t>(steps, begin.step));
    return;
  }
}

// The run with its files where they are now. The engine choices of the run are read and not
// measured again.
ResolvedRun located_run(const std::string& dir) {
  Settings settings = Settings::of_run(dir);
  DataSource source = locate_data(DataSource(settings.data), dir);
  settings.data = source.text;
  settings.weights = locate_file(settings.weights, dir);
  settings.teacher = locate_file(settings.teacher, dir);
  if (settings.tune == "write") settings.tune = "read";
  return ResolvedRun(std::move(settings), std::move(source));
}

// A temporary folder whose name nobody else can predict and that nobody else can open, even in a
// shared parent folder.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    if (error)
      throw IoError(cat("verify: there is no folder for temporary files: ", error.message(),
                        "; set TMPDIR to a folder"));
    path_ = parent / "tenon-verify-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
      throw make_error<IoError>(
          FileName{parent.string()},
          ": cannot create a temporary folder there: ", std::generic_category().message(errno),
          "; set TMPDIR to a folder of your own");
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

VerifyReport verify_run(const std::string& dir, int steps,
                        const std::function<void(const std::string&)>& progress,
                        const std::function<bool()>& stop) {
  if (steps < kFewestSteps)
    throw ValueError(
        cat("verify: ", steps, " steps are too few, at least ", kFewestSteps, " are needed"));
  const TuneRecord engines(load_engines(dir));
  ResolvedRun resolved = located_run(dir);
  const DataSets sets = open_data(resolved, dir);
  auto tell = [&](const std::string& what) {
    if (progress) progress(what);
  };
  const std::string file = dir + "/log.jsonl";
  const bool logged = fs::exists(file);
  const RunLog log = logged ? read_log(io::read_file(file)) : RunLog();
  const int threads = resolved.compute.threads > 0 ? resolved.compute.threads : tenon::threads();
  const int other = threads == 1 ? 2 : 1;
  repeat_first_cut(log, resolved.settings, steps);
  const std::string device = [&resolved] {
    const ContextScope scope(context_of(resolved));
    return device_text();
  }();
  const Made run{std::move(resolved), sets, earlier_lengths(log)};
  VerifyReport report;
  report.run_steps = log.last_step;
  const auto stopped = [&] { return report.stopped = stop && stop(); };
  tell("first steps");
  const Outcome first = play(run, {.steps = steps, .threads = threads, .stop = stop});
  report.steps = std::ssize(first.losses);
  if (stopped()) return report;
  report.checks.push_back(logged ? compare_log(log, first, device)
                                 : VerifyCheck{"same losses as the run's log", true,
                                               "the run has no log.jsonl: nothing to compare"});
  const auto check = [&](const std::string& name, const Circumstances& how, bool with_losses) {
    const Outcome again = play(run, how);
    if (!stopped()) report.checks.push_back(compare(name, first, again, with_losses));
  };
  tell("the same again");
  check("same bits when repeated", {.steps = steps, .threads = threads, .stop = stop}, true);
  if (report.stopped) return report;
  tell(cat("with ", other, other == 1 ? " thread" : " threads"));
  check(cat("same bits with ", threads, " and ", other, " threads"),
        {.steps = steps, .threads = other, .stop = stop}, true);
  if (report.stopped) return report;
  tell("abandoned and resumed");
  const ScratchFolder scratch;
  play(run, {.steps = std::max<std::int64_t>(2, steps / 2),
             .threads = threads,
             .dir = scratch.path(),
             .abandon = true,
             .stop = stop});
  if (stopped()) return report;
  check("same bits when killed and resumed",
        {.steps = steps, .threads = threads, .dir = scratch.path(), .resume = true, .stop = stop},
        false);
  return report;
}

}  // namespace tenon::train
