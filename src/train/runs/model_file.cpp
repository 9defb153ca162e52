// The description of a model as JSON, written and read.
#include "train/runs/model_file.h"

#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/tables/dates.h"
#include "io/text/json.h"
#include "train/settings/data_source.h"
#include "train/settings/settings.h"

namespace tenon::train {
namespace {

using io::Json;

// Settings that change the network's results. Those at their default ("") are not written.
constexpr const char* kTexts[] = {"task", "activation", "head", "precision", "layer_precision"};

// Whether the data source names no file that the author of the metadata could choose: generated
// data, and published sets in the machine's own data folder.
bool has_no_file(const std::string& spec) {
  if (spec.empty()) return true;
  const data::SourceKind* const kind = data::source_kind(spec);
  if (kind == nullptr || kind->needs_path || spec.find_first_of("/\\") != std::string::npos)
    return false;
  const std::size_t end = spec.find_first_of(":,");
  return kind->generated || end == std::string::npos || spec[end] == ',';
}

// Columns as {"name", "values"} or {"name", "fill"}, the latter of dates with {"date", "order"}.
Json json_of(const data::TableColumns& table) {
  Json columns = Json::array();
  for (const data::TableColumn& column : table.columns) {
    Json one;
    one["name"] = column.name;
    if (column.values.empty())
      one["fill"] = column.fill;
    else
      one["values"] = column.values;
    if (!column.date.empty()) one["date"] = column.date, one["order"] = column.date_order;
    columns.append(std::move(one));
  }
  Json out;
  out.add("label", table.label).add("columns", std::move(columns));
  if (table.label_column >= 0) out["label_column"] = table.label_column;
  const std::pair<const char*, const std::string&> formats[] = {
      {"encoding", table.encoding}, {"decimal", table.decimal}, {"thousands", table.thousands}};
  for (const auto& [key, value] : formats)
    if (!value.empty()) out[key] = value;
  return out;
}

std::shared_ptr<const data::TableColumns> table_from(const Json& json,
                                                     const std::vector<std::string>& class_names) {
  auto table = std::make_shared<data::TableColumns>();
  table->label = json.at("label").get<std::string>();
  table->label_column = json.value("label_column", std::int64_t{-1});
  table->class_names = class_names;
  table->encoding = json.value("encoding", "");
  table->decimal = json.value("decimal", "");
  table->thousands = json.value("thousands", "");
  for (const Json& one : json.at("columns"))
    table->columns.push_back({one.at("name").get<std::string>(), one.value("fill", 0.0),
                              one.value("values", std::vector<std::string>()),
                              one.value("date", ""), one.value("order", "")});
  for (const data::TableColumn& column : table->columns)
    if (!column.date.empty() && (!data::is_date_part(column.date) || !column.values.empty() ||
                                 data::date_order(column.date_order) == data::kAnyOrder))
      throw ValueError(cat("column '", column.name, "' has invalid dates"));
  for (const data::TableColumn& column : table->columns)
    if (!std::is_sorted(column.values.begin(), column.values.end()))
      throw ValueError(cat("the words of column '", column.name, "' are not in order"));
  return table;
}

}  // namespace

std::string to_json(const ModelDescription& model) {
  const Settings& s = model.settings;
  Json json;
  json["model"] = s.model;
  if (!s.network.empty()) json["network"] = s.network;
  for (const char* key : kTexts)
    if (const std::string value = s.get(key); !value.empty()) json[key] = value;
  json["classes"] = s.classes;
  json["input_mean"] = s.input_mean;
  json["input_std"] = s.input_std;
  if (s.preprocess != "auto") json["preprocess"] = s.preprocess;
  if (s.normalize != "auto") json["normalize"] = s.normalize;
  if (s.background != "auto") json["background"] = s.background;
  if (!DataSource(s.data).has_path()) json["data"] = s.data;
  if (!model.class_names.empty()) json["class_names"] = model.class_names;
  if (!model.text_unit.empty()) json["text_unit"] = model.text_unit;
  if (model.table) json["table"] = json_of(*model.table);
  return io::json_text(json, -1, io::NoUtf8::IsReplaced);
}

ModelDescription model_from_json(const std::string& text, const std::string& source) {
  ModelDescription out;
  Settings& s = out.settings;
  try {
    const Json json = io::parse_json(text);
    s.network = json.value("network", "");
    s.model = json.at("model").get<std::string>();
    if (s.network.empty() && models::is_network_file(s.model))
      throw make_error<FormatError>(FileName{source}, ": the text of ", s.model,
                                    ", its network, is missing from the file");
    SettingsNetwork::keep(s);  // throws if the text does not describe a network
    for (const char* key : kTexts)
      if (json.contains(key)) s.set(key, json[key].get<std::string>());
    s.classes = json.at("classes").get<std::int64_t>();
    s.input_mean = json.at("input_mean").get<double>();
    s.input_std = json.at("input_std").get<double>();
    if (json.contains("picture"))  // the name of earlier builds
      s.set("preprocess", json["picture"].get<std::string>());
    for (const char* key : {"preprocess", "normalize", "background"})
      if (json.contains(key)) s.set(key, json[key].get<std::string>());
    s.data = json.value("data", "");
    if (!has_no_file(s.data))
      throw make_error<FormatError>(
          FileName{source}, ": its metadata '", kModelKey, "' names the data '",
          s.data.substr(0, 120),
          "': a weight file must not name files of this machine; remove 'data' "
          "from its metadata, or use another copy");
    out.class_names = json.value("class_names", out.class_names);
    out.text_unit = json.value("text_unit", "");
    if (json.contains("table")) out.table = table_from(json["table"], out.class_names);
  } catch (const Json::exception&) {
    throw make_error<FormatError>(FileName{source}, ": its metadata '", kModelKey,
                                  "' does not describe a model");
  } catch (const ValueError& error) {
    throw make_error<FormatError>(FileName{source}, ": its metadata '", kModelKey,
                                  "': ", error.what());
  }
  if (s.classes < 1 || s.classes > 1'000'000 || !(s.input_std > 0))
    throw make_error<FormatError>(FileName{source}, ": its metadata '", kModelKey,
                                  "' has numbers out of range");
  // Names that equal the class numbers are not written, but the labels of a table are found by
  // them.
  if (out.table && out.class_names.empty()) {
    auto table = std::make_shared<data::TableColumns>(*out.table);
    for (std::int64_t k = 0; k < s.classes; ++k) table->class_names.push_back(std::to_string(k));
    out.table = std::move(table);
  }
  return out;
}

}  // namespace tenon::train
