// The network that settings describe, and settings by the recipe of a network.
#include "train/settings/settings.h"

#include <memory>
#include <utility>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "io/text/toml.h"
#include "models/network.h"
#include "train/settings/data_source.h"
#include "train/settings/image_settings.h"
#include "train/settings/published.h"

namespace tenon::train {

models::Network SettingsNetwork::find(const Settings& s) {
  if (s.described_ != nullptr && s.described_->is_of(s.model, s.network)) return *s.described_;
  return s.network.empty() ? models::Network(s.model)
                           : models::Network(models::NetworkFile{s.model, s.network});
}

const models::Network& SettingsNetwork::keep(Settings& s) {
  if (s.described_ == nullptr || !s.described_->is_of(s.model, s.network))
    s.described_ = std::make_shared<const models::Network>(find(s));
  return *s.described_;
}

models::Info Settings::model_info() const { return SettingsNetwork::find(*this).info(); }

nn::AnyModule Settings::create_model(const models::Options& options) const {
  return SettingsNetwork::find(*this).create(options);
}

std::string Settings::model_toml() const {
  if (!network.empty()) return network;
  return models::toml(model, {.classes = classes, .activation = activation, .head = head});
}

Settings Settings::for_model(const std::string& model) {
  return with_recipe(
      model, models::is_network_file(model) ? models::read_network(model).text : std::string());
}

// Checks the recipe of a network file like settings. The error names the line.
void check_recipe(const Settings& settings, const models::Network& network) {
  const io::TomlValue* recipe = network.recipe();
  if (recipe == nullptr) return;
  Settings scratch = settings;
  for (const io::TomlEntry& entry : recipe->entries) try {
      const bool changes = entry.key == "augment";  // the setting itself stays "auto"
      scratch.set(entry.key, changes ? entry.value.text : scratch.get(entry.key));
      if (entry.key == "normalize")  // must have as many values as the network has channels
        require_channels(image_settings(scratch, DataSource(scratch.data), network.info()).scale,
                         scratch.model, network.info().input);
    } catch (const ValueError& error) {
      throw make_error<FormatError>(FileName{settings.model}, ", line ",
                                    LineNumber{entry.value.line}, ": ", error.what());
    }
}

Settings Settings::with_recipe(const std::string& model, const std::string& network) {
  Settings s;
  s.model = model;
  s.network = network;
  const models::Network& described = SettingsNetwork::keep(s);
  const models::Recipe& r = described.info().recipe;
  s.epochs = r.epochs;
  s.batch = r.batch;
  s.optimizer = r.optimizer;
  s.lr = r.lr;
  s.momentum = r.momentum;
  s.weight_decay = r.weight_decay;
  s.schedule = r.schedule;
  s.milestones = r.milestones;
  s.warmup = r.warmup;
  s.data = r.data;
  s.clip_norm = r.clip_norm;
  s.input_mean = r.input_mean;
  s.input_std = r.input_std;
  s.normalize = r.normalize;
  s.label_smoothing = r.label_smoothing;
  s.beta2 = r.beta2;
  s.eps = r.eps;
  if (!network.empty()) check_recipe(s, described);
  s.nesterov = optim::defaults(s.optimizer).nesterov.value_or(false);
  return s;
}

namespace {

// The setting 'weights' of a file and of single settings, which override the file.
std::string weights_in(const std::string& file,
                       const std::vector<std::pair<std::string, std::string>>& overrides) {
  std::string out;
  if (!file.empty())
    for (const SettingText& line : parse_settings(io::read_file(file, kMostSettingsText), file))
      if (line.key == "weights") out = line.value;
  for (const auto& [key, value] : overrides)
    if (key == "weights") out = value;
  return out;
}

}  // namespace

Settings Settings::resolve(const std::string& model, const std::string& file,
                           const std::vector<std::pair<std::string, std::string>>& overrides) {
  std::string chosen = model;
  for (const auto& [key, value] : overrides)
    if (model.empty() && key == "model") chosen = value;
  Settings s;
  if (chosen.empty() && !file.empty()) {
    std::string network;
    for (const SettingText& line : parse_settings(io::read_file(file, kMostSettingsText), file)) {
      if (line.key == "model") chosen = line.value;
      if (line.key == kNetworkKey) network = line.value;
    }
    if (!network.empty()) s = with_recipe(chosen, network);
  }
  if (s.network.empty())
    s = for_model(model_as_published(weights_in(file, overrides),
                                     chosen.empty() ? Settings().model : chosen));
  const std::string used = s.model, network = s.network;
  if (!file.empty()) s.apply_file(file);
  for (const auto& [key, value] : overrides)
    if (key != "model") s.set(key, value);
  s.model = used;
  s.network = network;
  return s;
}

}  // namespace tenon::train
