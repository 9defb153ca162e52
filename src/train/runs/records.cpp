// Records as JSON and CSV text.
#include "train/runs/records.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <tenon/error.h>
#include <tenon/system.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/text/json.h"

namespace tenon::train {
namespace {

using io::Json;

// JSON has no infinity and no NaN: they are written as text.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double to_double(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string& text = json.text();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw FormatError(cat("'", text, "' is not a number"));
}

constexpr char kValidation[] = "validation_", kTest[] = "test_", kLoss[] = "loss",
               kSamples[] = "samples";

// Sorted by name, so that logs do not depend on the order in which a task measures.
void add_metrics(Json& out, const std::string& prefix, const Metrics& metrics) {
  const std::map<std::string, double> sorted(metrics.begin(), metrics.end());
  for (const auto& [name, value] : sorted) out[prefix + name] = number(value);
}

// Numbers of a part that are not metrics.
bool is_reserved(const std::string& name) { return name == kLoss || name == kSamples; }

Metrics metrics_from(const Json& json, const std::string& prefix) {
  Metrics out;
  for (const auto& [key, value] : json.members())
    if (key.starts_with(prefix) && !is_reserved(key.substr(prefix.size())))
      out.set(key.substr(prefix.size()), to_double(value));
  return out;
}

Json to_json(const EpochReport& e) {
  Json out;
  out.add("epoch", e.epoch).add("step", e.step).add("train_loss", number(e.train_loss));
  if (e.train_accuracy) out["train_accuracy"] = number(*e.train_accuracy);
  if (e.validation_loss) out["validation_loss"] = number(*e.validation_loss);
  add_metrics(out, kValidation, e.validation_metrics);
  out["lr"] = number(e.lr);
  out["seconds"] = number(e.seconds);
  out["items_per_s"] = number(e.items_per_s);
  out["best"] = e.best;
  if (e.validation_samples > 0) out[cat(kValidation, kSamples)] = e.validation_samples;
  return out;
}

std::optional<double> optional_number(const Json& json, const char* key) {
  return json.contains(key) ? std::optional<double>(to_double(json.at(key))) : std::nullopt;
}

// nullopt for a line that was edited by hand; the test is then measured again.
std::optional<TestReport> test_from(const Json& json) {
  try {
    TestReport t;
    t.epoch = json.at("epoch").get<int>();
    t.step = json.at("step").get<std::int64_t>();
    t.samples = json.at("samples").get<std::int64_t>();
    t.loss = to_double(json.at("test_loss"));
    t.metrics = metrics_from(json, kTest);
    return t;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

EpochReport epoch_from(const Json& json) {
  EpochReport e;
  e.epoch = json.at("epoch").get<int>();
  e.step = json.at("step").get<std::int64_t>();
  e.train_loss = to_double(json.at("train_loss"));
  const auto optional = [&](const char* key) { return optional_number(json, key); };
  e.train_accuracy = optional("train_accuracy");
  e.validation_loss = optional("validation_loss");
  e.validation_metrics = metrics_from(json, kValidation);
  e.lr = to_double(json.at("lr"));
  e.seconds = to_double(json.at("seconds"));
  e.items_per_s = to_double(json.at("items_per_s"));
  e.best = json.at("best").get<bool>();
  e.validation_samples = json.value(cat(kValidation, kSamples), std::int64_t{0});
  return e;
}

void for_each_line(const std::string& text,
                   const std::function<void(const std::string&, const Json&)>& visit) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const Json json = io::parse_json_or_discard(line);
    if (json.is_object()) visit(line, json);
    at = end + 1;
  }
}

}  // namespace

std::string to_json(const StepState& p) {
  Json schedule = Json::object();
  for (const auto& [key, value] : p.schedule) schedule[key] = number(value);
  return io::json_text(Json()
                           .add("step", p.step)
                           .add("steps_per_epoch", p.steps_per_epoch)
                           .add("batch", p.batch)
                           .add("samples", p.examples)
                           .add("data", p.data)
                           .add("teacher", p.teacher)
                           .add("first_epoch", p.first_epoch)
                           .add("first_step", p.first_step)
                           .add("loader_seed", p.loader_seed)
                           .add("generator_seed", p.generator_seed)
                           .add("generator_counter", p.generator_counter)
                           .add("loss_sum", number(p.loss_sum))
                           .add("weight", number(p.weight))
                           .add("correct", p.correct)
                           .add("targets", p.targets)
                           .add("items", p.items)
                           .add("seconds", number(p.seconds))
                           .add("schedule", std::move(schedule)));
}

Progress progress_from_json(const std::string& text, const std::string& source) {
  try {
    const Json json = io::parse_json(text);
    Progress p;
    p.step = json.at("step").get<std::int64_t>();
    p.steps_per_epoch = json.at("steps_per_epoch").get<std::int64_t>();
    p.batch = json.at("batch").get<std::int64_t>();
    // Earlier builds called the number "examples".
    p.examples = json.at(json.contains("samples") ? "samples" : "examples").get<std::int64_t>();
    p.data = json.value("data", std::string());
    p.teacher = json.value("teacher", std::string());
    p.first_epoch = json.at("first_epoch").get<std::int64_t>();
    p.first_step = json.at("first_step").get<std::int64_t>();
    p.loader_seed = json.at("loader_seed").get<std::uint64_t>();
    p.generator_seed = json.at("generator_seed").get<std::uint64_t>();
    p.generator_counter = json.at("generator_counter").get<std::uint64_t>();
    p.loss_sum = to_double(json.at("loss_sum"));
    p.correct = json.at("correct").get<std::int64_t>();
    p.items = json.at("items").get<std::int64_t>();
    p.weight = to_double(json.at("weight"));
    p.targets = json.at("targets").get<std::int64_t>();
    p.seconds = to_double(json.at("seconds"));
    for (const auto& [key, value] : json.at("schedule").members())
      p.schedule[key] = to_double(value);
    if (const Json* history = json.find("history"))
      for (const Json& e : history->items()) p.history.push_back(epoch_from(e));
    if (p.first_epoch < 0 || p.first_step < 0 || p.step < p.first_step || p.steps_per_epoch < 1)
      throw FormatError("negative counts");
    return p;
  } catch (const std::exception& error) {
    throw make_error<FormatError>(FileName{source}, ": the state of the run cannot be read (",
                                  error.what(), "): the checkpoint is damaged");
  }
}

namespace {

constexpr const char* kEveryLog[] = {"accuracy", "mae", "r2"};

// The columns of a part: its loss, the metrics of every log, and the task's own.
std::string columns_of(const std::string& prefix, const std::vector<std::string>& own) {
  std::string out = prefix + kLoss;
  for (const char* name : kEveryLog) out += cat(",", prefix, name);
  for (const std::string& name : own) out += cat(",", prefix, name);
  return out;
}

std::string field_text(const std::optional<double>& value) {
  return value ? cat(*value) : std::string();
}

std::string fields_of(const std::optional<double>& loss, const Metrics& metrics,
                      const std::vector<std::string>& own) {
  std::string out = field_text(loss);
  for (const char* name : kEveryLog) out += "," + field_text(metrics[name]);
  for (const std::string& name : own) out += "," + field_text(metrics[name]);
  return out;
}

}  // namespace

std::vector<std::string> own_metrics(const Task& task) {
  std::vector<std::string> out;
  for (const MetricInfo& metric : task.metrics())
    if (std::find(std::begin(kEveryLog), std::end(kEveryLog), metric.name) == std::end(kEveryLog))
      out.push_back(metric.name);
  return out;
}

void check_metrics(const Task& task) {
  std::set<std::string> names;
  for (const MetricInfo& metric : task.metrics()) {
    const auto refuse = [&](const std::string& why) {
      throw ValueError(cat("Trainer: task '", task.name(), "' has a metric '", metric.name, "'",
                           why, ": give it another name in Task::metrics()"));
    };
    if (metric.name.empty() || metric.name.find_first_of(",\"\r\n") != std::string::npos)
      refuse(", which must be a name without commas, quotes and line breaks");
    if (is_reserved(metric.name)) refuse(", which the logs have already");
    if (!names.insert(metric.name).second) refuse(" twice");
  }
}

std::string csv_header(const std::vector<std::string>& own) {
  return cat("epoch,step,train_loss,train_accuracy,", columns_of(kValidation, own),
             ",lr,seconds,items_per_s,best,", columns_of(kTest, own), "\n");
}

std::string csv_line(const EpochReport& e, const std::optional<TestReport>& test,
                     const std::vector<std::string>& own) {
  const bool tested = test && test->step == e.step;
  return cat(e.epoch, ",", e.step, ",", e.train_loss, ",", field_text(e.train_accuracy), ",",
             fields_of(e.validation_loss, e.validation_metrics, own), ",", e.lr, ",", e.seconds,
             ",", e.items_per_s, ",", e.best ? 1 : 0, ",",
             tested ? fields_of(test->loss, test->metrics, own) : fields_of(std::nullopt, {}, own),
             "\n");
}

std::string json_line(const EpochReport& e) {
  Json out;
  out.add("event", "epoch");
  const Json values = to_json(e);
  for (const auto& [key, value] : values.members()) out.add(key, value);
  return io::json_text(out);
}

std::string json_line(const TestReport& test) {
  Json out;
  out.add("event", "test")
      .add("step", test.step)
      .add("epoch", test.epoch)
      .add("samples", test.samples)
      .add("test_loss", number(test.loss));
  add_metrics(out, kTest, test.metrics);
  return io::json_text(out);
}

std::string json_step_line(std::int64_t step, double loss, double lr) {
  return io::json_text(Json()
                           .add("event", "step")
                           .add("step", step)
                           .add("loss", number(loss))
                           .add("lr", number(lr)));
}

std::string json_event_line(const std::string& event, std::int64_t step,
                            const std::string& detail) {
  Json out;
  out.add("event", event).add("step", step);
  if (!detail.empty()) out["detail"] = detail;
  return io::json_text(out, -1, io::NoUtf8::IsReplaced);
}

std::string json_begin_line(const std::string& event, const StepState& progress, std::int64_t total,
                            const std::string& detail, const std::string& device) {
  return io::json_text(Json()
                           .add("event", event)
                           .add("step", progress.step)
                           .add("total", total)
                           .add("steps_per_epoch", progress.steps_per_epoch)
                           .add("detail", detail)
                           .add("device", device)
                           .add("version", version()),
                       -1, io::NoUtf8::IsReplaced);
}

std::string json_log_until(const std::string& text, std::int64_t step) {
  std::string out;
  for_each_line(text, [&](const std::string& line, const Json& json) {
    const Json* at = json.find("step");
    if (at != nullptr && at->is_number_integer() && at->get<std::int64_t>() <= step)
      out += line + "\n";
  });
  return out;
}

RunLog read_log(const std::string& text) {
  RunLog out;
  for_each_line(text, [&](const std::string&, const Json& json) {
    const Json *event = json.find("event"), *step = json.find("step");
    if (event == nullptr || step == nullptr || !step->is_number_integer()) return;
    const auto number = step->get<std::int64_t>();
    out.last_step = std::max(out.last_step, number);
    const auto is_number = [&](const char* key) {
      return json.contains(key) && json.at(key).is_number();
    };
    const auto whole = [&](const char* key) {
      return is_number(key) ? json.at(key).get<std::int64_t>() : 0;
    };
    const auto word = [&](const char* key) {
      const Json* found = json.find(key);
      return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
    };
    if (*event == "step" && is_number("loss") && is_number("lr"))
      out.steps.push_back({number, json.at("loss").get<double>(), json.at("lr").get<double>()});
    if (*event == "test")
      if (const auto test = test_from(json)) out.tests.push_back(*test);
    if (*event == "start" || *event == "resume")
      out.begins.push_back(
          {number, whole("total"), whole("steps_per_epoch"), word("device"), word("version")});
  });
  return out;
}

}  // namespace tenon::train
