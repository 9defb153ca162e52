// tenon verify: repeats the beginning of a run in several ways and compares every bit.
#include <fmt/core.h>
#include <tenon/train.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "data_paths.h"
#include "errors.h"
#include "interrupt.h"
#include "json.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

struct VerifyOptions {
  std::string run;
  int steps = 40;
  bool json = false;
};

// "the first 40 of its 938 steps"
std::string part_of(const train::VerifyReport& report) {
  const std::string steps = thousands(report.steps);
  if (report.run_steps == 0) return fmt::format("its first {} steps", steps);
  if (report.steps > report.run_steps)  // the run was stopped earlier
    return fmt::format("its first {} steps; the run has done {} of them", steps,
                       thousands(report.run_steps));
  if (report.steps == 1 && report.run_steps == 1) return "its only step";
  if (report.steps == report.run_steps) return fmt::format("all of its {} steps", steps);
  return fmt::format("the first {} of its {} steps", steps, thousands(report.run_steps));
}

void print_text(const train::VerifyReport& report, const std::string& name) {
  const Terminal& terminal = stdout_terminal();
  for (const train::VerifyCheck& check : report.checks) {
    fmt::print("{}  {}\n",
               check.passed ? terminal.paint(TextStyle::Green, "ok    ")
                            : terminal.paint(TextStyle::Red, "DIFFER"),
               check.name);
    if (!check.detail.empty()) fmt::print("{}", wrap(printable(check.detail), terminal.width, 8));
  }
  if (report.stopped) {
    fmt::print("\nstopped: the run was not checked completely\n");
    return;
  }
  const std::string verdict = report.passed()
                                  ? fmt::format("every bit of {} agrees", printable(name))
                                  : fmt::format("{} could not be repeated bit for bit", name);
  fmt::print("\n{}\n", terminal.paint(TextStyle::Bold, verdict + ", in " + part_of(report)));
}

void print_json(const train::VerifyReport& report) {
  Json checks = Json::array();
  for (const train::VerifyCheck& check : report.checks)
    checks.push_back({{"name", check.name}, {"passed", check.passed}, {"detail", check.detail}});
  print(Json{{"passed", report.passed()},
             {"stopped", report.stopped},
             {"steps", report.steps},
             {"run_steps", report.run_steps},
             {"checks", checks}},
        2);
}

int run_verify(const VerifyOptions& options) {
  if (options.steps < 3)
    throw UsageError(fmt::format("--steps: {} is too few", options.steps), "give 3 or more");
  require_run(options.run);
  catch_interrupts("stopping after the current step; Ctrl-C again stops at once");
  const train::VerifyReport report = train::verify_run(
      options.run, options.steps, [](const std::string& what) { status_line(what + " ..."); },
      [] { return interrupted().load(); });
  clear_status_line();
  if (options.json)
    print_json(report);
  else
    print_text(report, options.run);
  if (report.stopped) return interrupt_code();
  return report.passed() ? kOk : kFailed;
}

}  // namespace

Command verify_command() {
  auto options = std::make_shared<VerifyOptions>();
  Command command;
  command.name = "verify";
  command.summary = "check that a run is reproducible and resumable bit for bit";
  command.about =
      "Repeats the first steps of a run in a scratch folder: twice, with another number of "
      "threads, and interrupted and resumed. Then compares all weights and optimizer states bit by "
      "bit, and the first losses with the run's log. The run folder is not modified. Exit code 0: "
      "everything agrees; 1: something differs.";
  command.examples = {
      {"tenon verify runs/lenet5", "A few seconds for a small network."},
      {"tenon verify runs/lenet5 --steps 200 --json", "More steps, JSON for programs."}};
  command.positional(options->run, "RUN", "run folder").completes = Completes::Folders;
  command.option(options->steps, "--steps", "N", "steps to repeat", "40");
  command.flag(options->json, "--json", "print JSON");
  command.run = [options] { return run_verify(*options); };
  return command;
}

}  // namespace tenon::cli
