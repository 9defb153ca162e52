// The description of a model as JSON, and back.
#include "train/model_file.h"

#include <nlohmann/json.hpp>

#include <tenon/error.h>

#include "base/str.h"
#include "train/run_data.h"

namespace tenon::train {
namespace {

using Json = nlohmann::ordered_json;

// What shapes the network's numbers; those at their default ("") are left out.
constexpr const char* kTexts[] = {"model", "task", "activation", "precision", "layer_precision"};

}  // namespace

std::string to_json(const ModelDescription& model) {
  const Settings& s = model.settings;
  Json json;
  for (const char* key : kTexts)
    if (const std::string value = s.get(key); !value.empty()) json[key] = value;
  json["classes"] = s.classes;
  json["input_mean"] = s.input_mean;
  json["input_std"] = s.input_std;
  if (!has_path(s.data)) json["data"] = s.data;
  if (!model.class_names.empty()) json["class_names"] = model.class_names;
  if (!model.text_unit.empty()) json["text_unit"] = model.text_unit;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ModelDescription model_from_json(const std::string& text, const std::string& source) {
  ModelDescription out;
  Settings& s = out.settings;
  try {
    const Json json = Json::parse(text);
    json.at("model");
    for (const char* key : kTexts)
      if (json.contains(key)) s.set(key, json[key].get<std::string>());
    s.classes = json.at("classes").get<std::int64_t>();
    s.input_mean = json.at("input_mean").get<double>();
    s.input_std = json.at("input_std").get<double>();
    s.data = json.value("data", "");
    out.class_names = json.value("class_names", out.class_names);
    out.text_unit = json.value("text_unit", "");
  } catch (const Json::exception&) {
    throw FormatError(cat(source, ": its metadata '", kModelKey, "' describes no model"));
  } catch (const ValueError& error) {
    throw FormatError(cat(source, ": its metadata '", kModelKey, "': ", error.what()));
  }
  if (s.classes < 1 || s.classes > 1'000'000 || !(s.input_std > 0))
    throw FormatError(cat(source, ": its metadata '", kModelKey, "' has numbers out of range"));
  return out;
}

}  // namespace tenon::train
