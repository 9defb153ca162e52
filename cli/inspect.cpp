// tenon inspect: shows the plan of a step: graph, passes, fusion decisions, engines and buffers.
#include <fmt/core.h>
#include <tenon/device.h>
#include <tenon/models.h>
#include <tenon/shapes_only.h>

#include <memory>
#include <optional>

#include "commands.h"
#include "data_paths.h"
#include "errors.h"
#include "step.h"
#include "terminal.h"
#include "tuning.h"

namespace tenon::cli {
namespace {

struct InspectOptions {
  std::string model, view = "plan", phase = "train", precision, engine = "fast", device = "cpu",
                     tune = "read";
  std::optional<std::int64_t> batch;
  int threads = 0;
  std::optional<double> clip_norm;
  std::vector<std::string> without;
};

std::vector<std::string> views() {
  return {"graph", "plan", "arena", "engines", "fusion", "passes", "profile"};
}

void print_head(const Plan& plan, const InspectOptions& options) {
  const Terminal& terminal = stdout_terminal();
  fmt::print("{}\n",
             terminal.paint(
                 TextStyle::Bold,
                 fmt::format("{} {} batch {} {}: {} nodes, {} steps, arena {}, leaves {}, peak {}, "
                             "planned in {:.1f} ms",
                             options.model, options.phase, *options.batch, options.precision,
                             plan.node_count(), plan.step_count(), bytes_text(plan.arena_bytes()),
                             bytes_text(plan.leaf_bytes()), bytes_text(plan.peak_bytes()),
                             plan.planning_ms())));
}

std::string view_text(const Plan& plan, const std::string& view) {
  if (view == "graph") return plan.graph();
  if (view == "arena") return plan.arena();
  if (view == "engines") return plan.engines();
  if (view == "fusion") return plan.fusion();
  if (view == "passes") return plan.passes();
  return plan.steps();
}

std::string profile_text(const std::vector<StepTime>& times) {
  double total = 0;
  for (const StepTime& time : times) total += time.median_ms;
  std::string text = fmt::format("{:>4}  {:>9}  {:>9}  {:>6}  {:>8}  {:<12}  {}\n", "step",
                                 "median ms", "least ms", "share", "GFLOP/s", "engine", "what");
  for (std::size_t k = 0; k < times.size(); ++k) {
    const StepTime& time = times[k];
    const std::string rate =
        time.gflop > 0 ? fmt::format("{:.1f}", time.gflop / time.median_ms * 1e3) : std::string();
    text += fmt::format("{:>4}  {:>9.4f}  {:>9.4f}  {:>4.0f} %  {:>8}  {:<12}  {}{}\n", k,
                        time.median_ms, time.min_ms, 100 * time.median_ms / total, rate,
                        time.engine, time.title, time.label.empty() ? "" : "  # " + time.label);
  }
  return text + fmt::format("{:>4}  {:>9.4f}\n", "sum", total);
}

int run_inspect(InspectOptions options) {
  parse_list("VIEW", options.view, views());
  const Network network = network_of(options.model);
  options.model = network.name;
  if (options.precision.empty()) options.precision = network.precision;
  if (!options.batch) options.batch = network.batch;
  set_precision(precision_from_name(options.precision));
  set_device(options.device);
  set_tuning(options.tune);
  set_engine(options.engine);
  use_threads(options.threads);
  for (const std::string& pass : options.without) set_pass_enabled(pass, false);
  UpdateOptions update = network.update;
  if (options.clip_norm) update.clip_norm = *options.clip_norm;
  // A step that is not run needs no memory and no compiled kernels; profiling and tuning run it.
  std::optional<ShapesOnly> shapes_only;
  if (options.view != "profile" && options.tune != "write") {
    shapes_only.emplace();
    compile_at_launch();
  }
  Step step = make_step(options.phase, network, *options.batch, update);
  const Plan plan = step.function.plan(step.inputs);
  clear_status_line();
  print_head(plan, options);
  std::string text = options.view == "profile" ? profile_text(step.function.profile(step.inputs))
                                               : view_text(plan, options.view);
  if (!text.empty() && text.back() != '\n') text += '\n';
  fmt::print("{}", printable_lines(text));
  return kOk;
}

}  // namespace

Command inspect_command() {
  auto options = std::make_shared<InspectOptions>();
  Command command;
  command.name = "inspect";
  command.summary = "show how a step is planned: graph, fusion, engines, memory";
  command.about =
      "Plans a training step or an inference of MODEL and shows one view of the plan:\ngraph: the "
      "nodes after the graph passes;\nplan: the steps in order, with engine, shapes and "
      "buffers;\narena: offset and lifetime of each temporary value;\nengines: the engine of each "
      "step, and how it was chosen;\nfusion: why operations were fused, or why fusion "
      "stopped;\npasses: what each pass did and how long it took;\nprofile: time of each step of "
      "the plan, over 50 runs or 5 s.";
  command.examples = {
      {"tenon inspect lenet5", "The plan of its training step."},
      {"tenon inspect lenet5 fusion", "Which operations were fused, and why not more."},
      {"tenon inspect keras_cnn arena --phase infer --batch 1",
       "The memory of a single inference."},
      {"tenon inspect lenet5 plan --without fuse", "The same step with a pass switched off."}};
  Positional& model = command.positional(options->model, "MODEL", kModelHelp);
  model.suggestions = models::names();
  Positional& view =
      command.positional(options->view, "VIEW", join(views(), ", ") + " (default: plan)", false);
  view.suggestions = views();
  command.option(options->phase, "--phase", "NAME", "kind of step to plan", "train").choices = {
      "train", "infer"};
  command.option(options->batch, "--batch", "N", "batch size", "the model's recipe");
  command
      .option(options->precision, "--precision", "NAME",
              "precision of matrix products and convolutions", "fp32; for a run, the run's own")
      .choices = {"fp32", "tf32", "bf16", "fp16"};
  command.option(options->device, "--device", "NAME", "device: cpu, cuda or cuda:N", "cpu");
  add_tune_option(command, options->tune);
  command.option(options->engine, "--engine", "NAME", "kernels to use", "fast").choices = {
      "fast", "reference"};
  command.option(options->clip_norm, "--clip-norm", "X",
                 "clip the gradient norm of a training step; 0: no clipping", "the model's recipe");
  command.option(options->threads, "--threads", "N", "compute threads", "all CPUs");
  command.option(options->without, "--without", "PASS",
                 "switch a planner pass off; can be repeated");
  command.run = [options] { return run_inspect(*options); };
  return command;
}

}  // namespace tenon::cli
