// Checks whether datasets and runs exist, without opening them; resolves MODEL to a network.
#include "data_paths.h"

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/models.h>
#include <tenon/train.h>

#include <filesystem>
#include <string>

namespace tenon::cli {

FetchedMnist fetched_mnist() {
  const std::string all = data::default_data_dir();
  if (all.empty()) return {};
  FetchedMnist out{.folder = all + "/mnist", .present = true};
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    std::error_code failed;
    const std::string path = out.folder + "/" + name;
    const bool there = std::filesystem::exists(path, failed) ||
                       (!failed && std::filesystem::exists(path + ".gz", failed));
    if (failed) out.problem = failed.message();
    out.present = out.present && there;
  }
  return out;
}

namespace {

// For a recipe or settings, which have the same member names.
template <class Chosen>
UpdateOptions update_of(const Chosen& chosen) {
  return {chosen.clip_norm,    chosen.optimizer, chosen.lr, chosen.momentum,
          chosen.weight_decay, chosen.beta2,     chosen.eps};
}

Network by_recipe(const std::string& name, const models::Recipe& recipe, const std::string& text) {
  return {name, recipe.batch, {}, "", text, update_of(recipe)};
}

}  // namespace

Network network_of(const std::string& name_or_run) {
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(name_or_run, ignored) ||
                       std::filesystem::is_symlink(name_or_run, ignored);
  if (models::is_network_file(name_or_run)) {
    const models::NetworkFile file = models::read_network(name_or_run);
    return by_recipe(name_or_run, models::info(file).recipe, file.text);
  }
  try {  // a folder named lenet5 does not hide the built-in network
    return by_recipe(name_or_run, models::info(name_or_run).recipe, "");
  } catch (const ValueError&) {
    if (!is_file) throw;
    const train::TrainedModel model = train::TrainedModel::open(name_or_run);
    const train::Settings& settings = model.settings();
    return {settings.model,
            settings.batch,
            {settings.classes, settings.activation, {}, settings.head},
            model.task().name(),
            settings.network,
            update_of(settings),
            settings.precision};
  }
}

models::Info Network::info() const {
  return text.empty() ? models::info(name) : models::info(models::NetworkFile{name, text});
}
nn::AnyModule Network::create() const {
  return text.empty() ? models::create(name, options)
                      : models::create(models::NetworkFile{name, text}, options);
}
std::string Network::toml() const { return text.empty() ? models::toml(name, options) : text; }

void require_run(const std::string& folder) {
  std::error_code failed;
  const std::string file = folder + "/settings.toml";
  if (const int folds = train::folds_in(folder); folds > 0)
    throw IoError(folder + " holds " + std::to_string(folds) +
                      " folds, and each fold is a run: give one of them, as in " + folder +
                      "/fold-1",
                  {.file = folder});
  const bool exists = std::filesystem::exists(file, failed);
  if (failed) throw IoError(file + ": " + failed.message(), {.file = file});
  if (!exists)
    throw IoError(folder + " holds no run: there is no " + file +
                      ", which a run writes after its first checkpoint. If the run was stopped "
                      "earlier, start it again",
                  {.file = folder});
}

}  // namespace tenon::cli
