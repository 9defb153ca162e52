// --tune and --threads, and the progress bar shown while engines are measured.
#include "tuning.h"

#include <fmt/core.h>
#include <tenon/compute.h>

#include <algorithm>

#include "errors.h"
#include "progress.h"
#include "terminal.h"

namespace tenon::cli {

void add_tune_option(Command& command, std::string& mode) {
  command
      .option(
          mode, "--tune", "MODE",
          "choice of GPU engines for products by cost model (off), saved measurements (read), or "
          "saved and new measurements (write)",
          mode)
      .choices = {"off", "read", "write"};
}

void set_tuning(const std::string& mode) {
  if (mode == "write" && current_device().kind == Device::Kind::Cpu)
    throw UsageError("--tune write needs a GPU, and the device is the CPU",
                     "choose one with --device cuda, or use --tune read");
  set_tune(tune_from_name(mode));
  show_tuning();
}

void use_threads(int count) {
  if (count < 0 || count > 1024)
    throw UsageError(
        fmt::format("--threads is '{}', must be a whole number from 0 to 1024", count));
  set_threads(count);
}

void show_tuning() {
  on_tune([](const TuneProgress& progress) {
    if (progress.done == progress.total) {
      clear_status_line();
      return;
    }
    const double done = static_cast<double>(progress.done) / progress.total;
    const std::string facts =
        fmt::format("{} of {}: {}", progress.done + 1, progress.total, progress.what);
    const int room = stderr_terminal().width - columns(facts) - 10;
    status_line(room >= 6 ? fmt::format("tuning {}  {}", bar_text(done, std::min(room, 30)), facts)
                          : fmt::format("tuning {} of {}", progress.done + 1, progress.total));
  });
}

}  // namespace tenon::cli
