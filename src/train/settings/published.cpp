// Completes settings from the config.json in the folder of the weights.
#include "train/settings/published.h"

#include <filesystem>
#include <optional>

#include <tenon/published_weights.h>

#include "base/str.h"
#include "io/file.h"
#include "models/network.h"
#include "models/weights/published_config.h"
#include "train/settings/settings.h"

namespace tenon::train {

std::string model_as_published(const std::string& weights, const std::string& model) {
  if (weights.empty()) return model;
  const std::optional<models::PublishedConfig> config = models::published_config(weights, model);
  return config ? config->model : model;
}

Settings as_published(Settings settings) {
  if (settings.weights.empty() || !settings.network.empty()) return settings;
  settings.model = model_as_published(settings.weights, settings.model);
  std::error_code ignored;
  if (!settings.tokenizer.empty() || !std::filesystem::is_directory(settings.weights, ignored) ||
      !SettingsNetwork::keep(settings).info().takes_tokens())
    return settings;
  for (const char* file : {"tokenizer.json", "vocab.json", "vocab.txt"})
    if (io::is_there(cat(settings.weights, "/", file))) {
      settings.tokenizer = settings.weights;
      break;
    }
  return settings;
}

void refuse_weight_notes(const Notes& of_file, const std::string& weights,
                         const std::string& model) {
  Notes all = of_file;
  for (const Note& note : models::published_network(weights, model).notes) all.push_back(note);
  refuse_notes(all);
}

std::string config_words(const std::string& weights, const std::string& model) {
  const models::PublishedNetwork network = models::published_network(weights, model);
  std::string out =
      network.config.empty() ? "" : cat("; the network is ", network.model, " by ", network.config);
  for (const Note& note : network.notes) out += cat("; ", to_string(note));
  return out;
}

}  // namespace tenon::train
