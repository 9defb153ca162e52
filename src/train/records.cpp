// Records as JSON and CSV text.
#include "train/records.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include <tenon/error.h>

#include "base/str.h"
#include "io/json.h"

namespace tenon::train {
namespace {

using io::Json;

// JSON has no infinity and no NaN: they travel as text.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double to_double(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto& text = json.get_ref<const std::string&>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw FormatError(cat("'", text, "' is no number"));
}

Json to_json(const EpochReport& e) {
  Json out{{"epoch", e.epoch}, {"step", e.step}, {"train_loss", number(e.train_loss)}};
  if (e.train_accuracy) out["train_accuracy"] = number(*e.train_accuracy);
  if (e.test_loss) out["test_loss"] = number(*e.test_loss);
  if (e.test_accuracy) out["test_accuracy"] = number(*e.test_accuracy);
  if (e.test_mae) out["test_mae"] = number(*e.test_mae);
  if (e.test_r2) out["test_r2"] = number(*e.test_r2);
  out["lr"] = number(e.lr);
  out["seconds"] = number(e.seconds);
  out["items_per_s"] = number(e.items_per_s);
  out["best"] = e.best;
  return out;
}

EpochReport epoch_from(const Json& json) {
  EpochReport e;
  e.epoch = json.at("epoch").get<int>();
  e.step = json.at("step").get<std::int64_t>();
  e.train_loss = to_double(json.at("train_loss"));
  const auto optional = [&](const char* key) {
    return json.contains(key) ? std::optional<double>(to_double(json.at(key))) : std::nullopt;
  };
  e.train_accuracy = optional("train_accuracy");
  e.test_loss = optional("test_loss");
  e.test_accuracy = optional("test_accuracy");
  e.test_mae = optional("test_mae");
  e.test_r2 = optional("test_r2");
  e.lr = to_double(json.at("lr"));
  e.seconds = to_double(json.at("seconds"));
  e.items_per_s = to_double(json.at("items_per_s"));
  e.best = json.at("best").get<bool>();
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

std::string to_json(const Progress& p) {
  Json schedule = Json::object(), history = Json::array();
  for (const auto& [key, value] : p.schedule) schedule[key] = number(value);
  for (const EpochReport& e : p.history) history.push_back(to_json(e));
  return io::json_text(Json{{"step", p.step},
                            {"steps_per_epoch", p.steps_per_epoch},
                            {"batch", p.batch},
                            {"examples", p.examples},
                            {"loader_seed", p.loader_seed},
                            {"generator_seed", p.generator_seed},
                            {"generator_counter", p.generator_counter},
                            {"loss_sum", number(p.loss_sum)},
                            {"weight", number(p.weight)},
                            {"correct", p.correct},
                            {"targets", p.targets},
                            {"items", p.items},
                            {"seconds", number(p.seconds)},
                            {"schedule", schedule},
                            {"history", history}});
}

Progress progress_from_json(const std::string& text, const std::string& source) {
  try {
    const Json json = io::parse_json(text);
    Progress p;
    p.step = json.at("step").get<std::int64_t>();
    p.steps_per_epoch = json.at("steps_per_epoch").get<std::int64_t>();
    p.batch = json.at("batch").get<std::int64_t>();
    p.examples = json.at("examples").get<std::int64_t>();
    p.loader_seed = json.at("loader_seed").get<std::uint64_t>();
    p.generator_seed = json.at("generator_seed").get<std::uint64_t>();
    p.generator_counter = json.at("generator_counter").get<std::uint64_t>();
    p.loss_sum = to_double(json.at("loss_sum"));
    p.correct = json.at("correct").get<std::int64_t>();
    p.items = json.at("items").get<std::int64_t>();
    const auto weight = json.find("weight");  // what older versions wrote has none
    p.weight = weight != json.end() ? to_double(*weight) : static_cast<double>(p.items);
    p.targets = json.value("targets", static_cast<std::int64_t>(p.weight));
    p.seconds = to_double(json.at("seconds"));
    for (const auto& [key, value] : json.at("schedule").items()) p.schedule[key] = to_double(value);
    for (const Json& e : json.at("history")) p.history.push_back(epoch_from(e));
    if (p.step < 0 || p.steps_per_epoch < 1) throw FormatError("negative counts");
    return p;
  } catch (const std::exception& error) {
    throw FormatError(cat(source, ": the state of the run cannot be read (", error.what(),
                          "): the checkpoint is damaged"));
  }
}

std::string csv_header() {
  return "epoch,step,train_loss,train_accuracy,test_loss,test_accuracy,test_mae,test_r2,lr,seconds,"
         "items_per_s,"
         "best\n";
}

std::string csv_line(const EpochReport& e) {
  auto optional = [](const std::optional<double>& value) {
    return value ? cat(*value) : std::string();
  };
  return cat(e.epoch, ",", e.step, ",", e.train_loss, ",", optional(e.train_accuracy), ",",
             optional(e.test_loss), ",", optional(e.test_accuracy), ",", optional(e.test_mae), ",",
             optional(e.test_r2), ",", e.lr, ",", e.seconds, ",", e.items_per_s, ",",
             e.best ? 1 : 0, "\n");
}

std::string json_line(const EpochReport& e) {
  Json out{{"event", "epoch"}};
  out.update(to_json(e));
  return io::json_text(out);
}

std::string json_step_line(std::int64_t step, double loss, double lr) {
  return io::json_text(
      Json{{"event", "step"}, {"step", step}, {"loss", number(loss)}, {"lr", number(lr)}});
}

std::string json_event_line(const std::string& event, std::int64_t step,
                            const std::string& detail) {
  Json out{{"event", event}, {"step", step}};
  if (!detail.empty()) out["detail"] = detail;
  return io::json_text(out, -1, io::NoUtf8::IsReplaced);
}

std::string json_begin_line(const std::string& event, std::int64_t step, std::int64_t total,
                            const std::string& detail) {
  return io::json_text(Json{{"event", event}, {"step", step}, {"total", total}, {"detail", detail}},
                       -1, io::NoUtf8::IsReplaced);
}

std::string json_log_until(const std::string& text, std::int64_t step) {
  std::string out;
  for_each_line(text, [&](const std::string& line, const Json& json) {
    const auto it = json.find("step");
    if (it != json.end() && it->is_number_integer() && it->get<std::int64_t>() <= step)
      out += line + "\n";
  });
  return out;
}

RunLog read_log(const std::string& text) {
  RunLog out;
  for_each_line(text, [&](const std::string&, const Json& json) {
    const auto event = json.find("event"), step = json.find("step");
    if (event == json.end() || step == json.end() || !step->is_number_integer()) return;
    const auto number = step->get<std::int64_t>();
    out.last_step = std::max(out.last_step, number);
    const auto is_number = [&](const char* key) {
      return json.contains(key) && json.at(key).is_number();
    };
    if (*event == "step" && is_number("loss") && is_number("lr"))
      out.steps.push_back({number, json.at("loss").get<double>(), json.at("lr").get<double>()});
    if (*event == "start" || *event == "resume")
      out.begins.push_back({number, is_number("total") ? json.at("total").get<std::int64_t>() : 0});
  });
  return out;
}

}  // namespace tenon::train
