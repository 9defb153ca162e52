// tenon bench: times a training step or an inference on random data, with the same method as bench/
// uses for other systems.
//
// Three warm-up steps, then about a second of timed steps; reports median and minimum. Prints one
// JSON object per line, so that rows of several systems can be compared field by field.
#include <fmt/core.h>
#include <malloc.h>
#include <tenon/system.h>
#include <tenon/train.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "output.h"
#include "step.h"
#include "terminal.h"
#include "tuning.h"

namespace tenon::cli {
namespace {

struct BenchOptions {
  std::string only = "lenet5_b64,keras_cnn_b128,fcn_r", phase = "train", precision = "fp32", json,
              device = "cpu", tune = "read";
  int threads = 0;
  double budget = 1.0, clip_norm = 0;
  std::vector<std::string> without;
};

struct Workload {
  Network network;
  std::int64_t batch;
  UpdateOptions update{};
};

constexpr std::int64_t kPaddedWords = 50'304;  // GPT-2's vocabulary, up to a multiple of 128
// "resnet50_b16" is a model and a batch size; names of published benchmarks can imply more.
Workload workload(const std::string& name) {
  static const UpdateOptions adamw{.optimizer = "adamw", .lr = 1e-4, .weight_decay = 0.1};
  static const std::pair<const char*, Workload> published[] = {
      {"fcn_r", {{"fcn_r"}, 1024}},
      {"fcn_s", {{"mlp:26752-2048-2048-2048-26752"}, 64}},
      {"alexnet_s", {{"alexnet_s"}, 16}},
      {"alexnet_r", {{"alexnet_r"}, 1024}},
      {"lstm_b128", {{"lstm"}, 128, {.clip_norm = 5}}},
      {"transformer_b64", {{"transformer"}, 64, adamw}},
      {"gpt2_124m_b16", {{"gpt2", 0, {.classes = kPaddedWords}}, 16, adamw}},
      {"gpt2_124m_b4_t64", {{"gpt2:context=64", 0, {.classes = kPaddedWords}}, 4, adamw}}};
  for (const auto& [known, chosen] : published)
    if (name == known) return chosen;
  const std::size_t mark = name.rfind("_b");
  std::int64_t batch = 0;
  if (mark == std::string::npos)
    throw UsageError(
        fmt::format("--only: '{}' is not MODEL_bBATCH", name),
        "lenet5_b64, keras_cnn_b128, fcn_r, or any model with a batch, as in mlp:784-300-10_b256");
  read_value("--only", name.substr(mark + 2), batch);
  return {{name.substr(0, mark)}, batch};
}

// Splits at commas; a part that begins with KEY=, as in "heads=4_b12", belongs to the name before
// it.
std::vector<std::string> workload_names(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    const std::size_t mark = part.find_first_of(":=");
    if (!names.empty() && mark != std::string::npos && part[mark] == '=')
      names.back() += "," + part;
    else
      names.push_back(part);
    start = end + 1;
  }
  return names;
}

using Clock = std::chrono::steady_clock;
const Clock::time_point kLoaded = Clock::now();  // start of the command, up to a few milliseconds
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Timing {
  double median_ms, least_ms;
  int steps_per_launch;
  std::int64_t steps;  // timed steps
};

template <class Launch>
double seconds_of(const Launch& launch) {
  const Clock::time_point start = Clock::now();
  launch();
  synchronize();
  return std::max(seconds_since(start), 1e-6);
}

// On a GPU each inference is a separate launch; inferences in one launch would run concurrently.
Timing measure(Step& step, double budget_s, bool on_gpu) {
  const auto once = [&step] { step.function(step.inputs); };
  for (int i = 0; i < 3; ++i) once();
  synchronize();
  double one = seconds_of(once);
  const int steps = on_gpu && step.optimizer != nullptr ? train::steps_in_launch(one) : 1;
  const std::vector<Tensor> inputs = shared_inputs(step);
  const auto launch = [&] {
    if (steps == 1)
      once();
    else
      step.function.run_many(steps, inputs);
  };
  if (steps > 1) {
    for (int i = 0; i < 3; ++i) launch();
    synchronize();
    one = seconds_of(launch) / steps;
  }
  // A GPU is given work ahead, as in training: one measurement covers about 20 ms of steps.
  const int launches = on_gpu ? std::max(1, static_cast<int>(0.02 / one / steps)) : 1;
  const int inner = steps * launches;
  // Until the budget is spent, and at least three times, for a median.
  constexpr std::size_t kLeast = 3;
  std::vector<double> times;
  for (const Clock::time_point start = Clock::now();
       times.size() < kLeast || seconds_since(start) < budget_s;)
    times.push_back(seconds_of([&] {
                      for (int k = 0; k < launches; ++k) launch();
                    }) *
                    1e3 / inner);
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  const double median =
      times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  return {median, times.front(), steps, std::ssize(times) * inner};
}

// Peak resident memory of the process since reset_peak(), in MiB; 0 if the system does not report
// it.
double peak_mib() {
  double mib = 0;
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char line[256];
  long long kib = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "VmHWM: %lld kB", &kib) == 1) mib = static_cast<double>(kib) / 1024;
  std::fclose(file);
  return mib;
}

void reset_peak() {
  malloc_trim(0);
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

double rounded(double value, int digits) {
  return std::stod(fmt::format("{:.{}f}", value, digits));
}

std::string run_row(const std::string& name, const std::string& phase, const std::string& precision,
                    const BenchOptions& options, bool is_first) {
  Workload wanted = workload(name);
  if (options.clip_norm != 0) wanted.update.clip_norm = options.clip_norm;
  reset_peak();
  set_precision(precision_from_name(precision));
  const Clock::time_point start = Clock::now();
  Step step = make_step(phase, wanted.network, wanted.batch, wanted.update);
  step.function(step.inputs);
  synchronize();
  const double setup = seconds_since(start), first_step = seconds_since(kLoaded);
  const bool on_gpu = current_device().kind != Device::Kind::Cpu;
  const Timing timing = measure(step, options.budget, on_gpu);
  const double planned =
      static_cast<double>(step.function.plan(step.inputs).peak_bytes()) / 1048576;
  const SystemInfo info = system_info();
  Json json{{"workload", name},
            {"phase", phase},
            {"precision", precision},
            {"mode", "tenon"},
            {"data", "random"},
            {"batch", wanted.batch},
            {"steps", timing.steps},
            {"ms", rounded(timing.median_ms, 4)},
            {"ms_min", rounded(timing.least_ms, 4)},
            {"items_per_s", rounded(static_cast<double>(wanted.batch) / timing.median_ms * 1e3, 1)},
            {"peak_mb", rounded(peak_mib(), 1)},
            {"setup_s", rounded(setup, 4)},
            {"planned_mb", rounded(planned, 1)},
            {"device", current_device().str()}};
  if (is_first) json["first_step_s"] = rounded(first_step, 4);
  if (phase == "train") {
    json["optimizer"] = wanted.update.optimizer;
    if (wanted.update.clip_norm > 0) json["clip_norm"] = wanted.update.clip_norm;
  }
  if (!options.without.empty()) json["without"] = join(options.without, ",");
  if (on_gpu) {
    json["steps_per_launch"] = timing.steps_per_launch;
    json["tune"] = options.tune;
  }
  json["cpu"] = info.cpu;
  json["isa"] = info.isa;
  json["threads"] = threads();
  return json_text(json);
}

int run_bench(const BenchOptions& options) {
  if (options.budget < 0)
    throw UsageError(fmt::format("--budget: {} seconds is negative", options.budget),
                     "give 0 or more; 0 times three steps or launches");
  const std::vector<std::string> names = workload_names(options.only);
  for (const std::string& name : names)
    models::info(workload(name).network.name);  // refuse unknown names before anything runs
  for (const std::string& pass : options.without) set_pass_enabled(pass, false);
  use_threads(options.threads);
  set_device(options.device);
  set_tuning(options.tune);
  std::FILE* out = nullptr;
  if (!options.json.empty() && (out = std::fopen(options.json.c_str(), "a")) == nullptr)
    throw IoError(
        fmt::format("{}: cannot be opened for writing: {}", options.json, std::strerror(errno)),
        {.file = options.json});
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closing(
      out, [](std::FILE* file) { return file != nullptr ? std::fclose(file) : 0; });
  const std::vector<std::string> precisions =
      parse_list("--precision", options.precision, {"fp32", "tf32", "bf16", "fp16"});
  if (current_device().kind == Device::Kind::Cpu)
    for (const std::string& precision : precisions)
      if (precision == "tf32" || precision == "fp16")
        print_note(fmt::format("the CPU computes {} products in fp32", precision));
  bool is_first = true;
  for (const std::string& name : names)
    for (const std::string& phase : parse_list("--phase", options.phase, {"train", "infer"}))
      for (const std::string& precision : precisions) {
        const std::string row = run_row(name, phase, precision, options, is_first);
        is_first = false;
        if (out != nullptr && (std::fputs((row + "\n").c_str(), out) < 0 || std::fflush(out) != 0))
          throw IoError(
              fmt::format("{}: cannot be written: {}", options.json, std::strerror(errno)),
              {.file = options.json});
        fmt::print("{}\n", row);
        if (!flush_output()) return kIo;  // later rows would be lost, too
      }
  return kOk;
}

}  // namespace

Command bench_command() {
  auto options = std::make_shared<BenchOptions>();
  Command command;
  command.name = "bench";
  command.summary = "time training steps and inference on random data";
  command.about =
      "Times whole steps. A training step is forward pass, loss, gradients and update: SGD with "
      "momentum 0.9 and weight decay 5e-4; AdamW for gpt2_124m_b16, gpt2_124m_b4_t64 and "
      "transformer_b64; lstm_b128 clips the gradient norm to 5. An inference in bf16 or fp16 on a "
      "GPU stores its output in 16 bits, as under PyTorch's autocast. After three warm-up steps, "
      "steps are timed for --budget seconds, and at least three times.\n\nPrints one JSON object "
      "per line:\nms, ms_min: median and minimum time of a step;\nsteps_per_launch: on a GPU, "
      "steps in one launch, as in training;\npeak_mb: highest resident memory of the "
      "process;\nplanned_mb: memory that the plan predicted;\nsetup_s: seconds from building the "
      "network to the end of its first step;\nfirst_step_s: in the first row, seconds from the "
      "start of the command to the end of the first step.";
  command.examples = {{"tenon bench", "The three default workloads, fp32, training."},
                      {"tenon bench --only lenet5_b64 --phase train,infer --precision fp32,bf16",
                       "One model in four ways."},
                      {"tenon bench --device cuda --precision bf16 --tune write",
                       "Measures engines first and stores the fastest for later runs."},
                      {"tenon bench --without fuse", "The speed without a planner pass."},
                      {"tenon bench --only mlp:784-300-10_b256 --threads 1 --json rows.jsonl",
                       "Any model with any batch size; rows are appended to a file."}};
  command.option(options->only, "--only", "NAME[,NAME]",
                 "workloads: lenet5_b64, fcn_r, alexnet_s, gpt2_124m_b16 and other published "
                 "benchmarks, or MODEL_bBATCH",
                 options->only);
  command.option(options->phase, "--phase", "NAME[,NAME]", "phases to time: train, infer", "train");
  command.option(options->precision, "--precision", "NAME[,NAME]",
                 "precision of matrix products and convolutions: fp32, tf32, bf16, fp16; the CPU "
                 "computes tf32 and fp16 in fp32",
                 "fp32");
  command.option(options->device, "--device", "NAME", "device: cpu, cuda or cuda:N", "cpu");
  add_tune_option(command, options->tune);
  command.option(options->threads, "--threads", "N", "compute threads", "all CPUs");
  command.option(options->budget, "--budget", "SECONDS", "measuring time of each row", "1");
  command.option(options->clip_norm, "--clip-norm", "X",
                 "clip the gradients of training steps to this norm", "the workload's");
  command.option(
      options->without, "--without", "PASS",
      "switch a planner pass off ('tenon inspect MODEL passes' lists them); can be repeated");
  command.option(options->json, "--json", "FILE", "also append the rows to this file").completes =
      Completes::Files;
  command.run = [options] { return run_bench(*options); };
  return command;
}

}  // namespace tenon::cli
