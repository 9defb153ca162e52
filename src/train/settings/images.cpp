// Parses the image settings and fills in defaults.
#include "train/settings/images.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <tenon/compute.h>
#include <tenon/context.h>
#include <tenon/error.h>

#include "base/str.h"
#include "data/loading/prefetch.h"
#include "device/backend.h"
#include "train/settings/resolved.h"
#include "train/settings/settings.h"

namespace tenon::train {
namespace {

constexpr char kImageNet[] = "0.485,0.456,0.406/0.229,0.224,0.225";
constexpr char kFit[] = "resize,center_crop";
constexpr char kUsualChanges[] = "resized_crop,flip";
// About 12 threads decode as many 500 x 375 images (some 5,000 a second) as the decode engines of
// an H200 during a training that keeps the GPU busy (bench/results/h200-images.txt).
constexpr int kEnoughWorkers = 12;

constexpr const char* kQuick[] = {"resize", "center_crop", "crop",  "resized_crop", "flip",
                                  "vflip",  "grey",        "erase", "cutout"};

// Whether all transforms are cheap compared with decoding.
bool is_quick(const data::Transforms& changes) {
  return std::all_of(changes.steps().begin(), changes.steps().end(), [](const auto& step) {
    return std::find(std::begin(kQuick), std::end(kQuick), step.name) != std::end(kQuick);
  });
}

// Whether a list has only the three transforms of images in memory: crop, flip, cutout.
bool is_plain(const std::string& text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at), name = item.substr(0, item.find('='));
    if (item != "flip" && name != "crop" && name != "cutout" && !item.empty()) return false;
    at = end + 1;
  }
  return true;
}

// The transforms of single images, and those that mix the images of a batch.
std::pair<std::string, std::string> split_mixing(const std::string& text) {
  std::string single, mixing;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at), name = item.substr(0, item.find('='));
    std::string& list = name == "mixup" || name == "cutmix" ? mixing : single;
    list += cat(list.empty() ? "" : ",", item);
    at = end + 1;
  }
  return {single, mixing};
}

std::vector<double> parse_channels(const std::string& text) {
  std::vector<double> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value);
    if (error != std::errc() || stop != text.data() + end || !std::isfinite(value)) return {};
    out.push_back(value);
    at = end + 1;
  }
  return out;
}

constexpr char kBackground[] = "background", kBroken[] = "broken";  // options of image sources

}  // namespace

AugmentChoice parse_augment_choice(const std::string& text, bool own) {
  AugmentChoice out;
  if (text == "none") return out;
  const auto [single, mixing] = split_mixing(text);
  const bool plain = !own && is_plain(single) && (mixing.empty() || !single.empty());
  if (plain) out.plain = parse_augment(single);
  try {
    out.mixing = data::Transforms::parse(mixing).mixing();
    if (!plain) out.steps = data::Transforms::parse(single);
  } catch (const ValueError& error) {
    throw ValueError(cat("setting 'augment' is '", text, "': ", error.what()));
  }
  return out;
}

ChannelScale parse_channel_scale(const std::string& text) {
  if (text == "none" || text == "auto") return {};
  const std::string numbers = text == "imagenet" ? kImageNet : text;
  const std::size_t slash = std::min(numbers.find('/'), numbers.size());
  ChannelScale out{
      parse_channels(numbers.substr(0, slash)),
      slash < numbers.size() ? parse_channels(numbers.substr(slash + 1)) : std::vector<double>()};
  if (out.mean.empty() || out.mean.size() != out.std.size() ||
      *std::min_element(out.std.begin(), out.std.end()) <= 0)
    throw ValueError(cat("setting 'normalize' is '", text,
                         "', must be auto, none, imagenet, or the channels' means and deviations, "
                         "as in ",
                         kImageNet));
  return out;
}

data::Transforms parse_fitting(const std::string& text) {
  try {
    data::Transforms steps = data::Transforms::parse(text);
    const data::Transforms single = steps.middle_only();
    for (const data::Transform& step : single.steps())
      if (step.name != "resize" && step.name != "center_crop")
        throw ValueError(cat("'", step.name, "' is a random transform"));
    for (std::size_t k = 0; k + 1 < steps.steps().size(); ++k)
      if (const std::string& name = steps.steps()[k].name;
          name == "five_crop" || name == "ten_crop")
        throw ValueError(cat("'", name, "' makes several images from one: it must be the last"));
    if (!single.has("center_crop"))
      throw ValueError("its last step must be center_crop, five_crop or ten_crop");
    return steps;
  } catch (const ValueError& error) {
    throw ValueError(cat("setting 'preprocess' is '", text,
                         "', must be like resize=256,center_crop=224: ", error.what()));
  }
}

ImageSettings image_settings(const Settings& settings, const DataSource& source,
                             const models::Info& network) {
  ImageSettings out{settings.preprocess != "auto" || source.has_images(), settings.preprocess,
                    settings.normalize, settings.background};
  if (out.any_size) {
    const Shape& input = network.input;
    if (out.preprocess == "auto") out.preprocess = kFit;
    if (out.normalize == "auto")
      out.normalize = input.rank() == 3 && input[0] == 3 ? kImageNet : "none";
    if (out.background == "auto") out.background = source.option(kBackground).value_or("none");
  }
  out.resize = data::Transforms::parse(out.preprocess == "auto" ? kFit : out.preprocess);
  out.scale = parse_channel_scale(out.normalize);
  if (out.background != "auto" && out.background != "none")
    out.backdrop = io::parse_colour(out.background);
  out.broken_is_error = settings.broken == "error" || source.option(kBroken) == "error";
  return out;
}

// Recipes augment photographs only, because synthetic images can be drawn in any number. The recipe
// of a network file applies to image files and CIFAR; that of a built-in network applies to CIFAR.
// If the outputs of frozen layers are computed once (`frozen_variants` is 0), image files are not
// augmented by default.
AugmentChoice augmentation_of(const ResolvedModel& model) {
  const Settings& settings = model.settings;
  const bool own = model.images.any_size;
  if (settings.augment != "auto") return parse_augment_choice(settings.augment, own);
  const bool stays = !settings.freeze.empty() && settings.frozen_variants == 0;
  std::string recipe = model.info().recipe.augment;
  if (recipe == "auto") recipe.clear();
  if (own && stays) return {};
  if (own)
    return parse_augment_choice(recipe.empty() || settings.network.empty() ? kUsualChanges : recipe,
                                own);
  return recipe.empty() || !model.data.kind.starts_with("cifar")
             ? AugmentChoice()
             : parse_augment_choice(recipe, own);
}

void require_channels(const ChannelScale& scale, const std::string& model, const Shape& input) {
  if (!scale.mean.empty() &&
      (input.rank() != 3 || input[0] != static_cast<std::int64_t>(scale.mean.size())))
    throw ValueError(cat("setting 'normalize' has numbers for ", scale.mean.size(),
                         " channels, and model '", model, "' takes ", input));
}

Settings with_preprocess_settings(const ResolvedModel& model) {
  Settings out = model.settings;
  out.preprocess = model.images.preprocess;
  out.normalize = model.images.normalize;
  out.background = model.images.background;
  return out;
}

ResolvedModel with_images_of_source(const ResolvedModel& model, const std::string& data) {
  Settings out = with_preprocess_settings(model);
  // The settings already contain the options of the run's data, or were changed by the user. Only
  // an option that differs from the run's data overrides them.
  DataSource source(data);
  const auto told = source.option(kBackground);
  if (told && told != model.data.option(kBackground)) out.background = *told;
  out.data = data;
  return {std::move(out), std::move(source)};
}

Settings with_images_of(Settings settings, const Shape& input, const std::string& normalize) {
  constexpr std::int64_t kPublished = 224;  // smallest side of an input of published networks
  if (normalize.empty() || input.rank() != 3 || input[0] != 3 || input[1] < kPublished)
    return settings;
  if (settings.preprocess == "auto") settings.preprocess = kFit;
  if (settings.normalize == "auto") settings.normalize = normalize;
  return settings;
}

const ChannelScale& channel_scale(const ResolvedModel& model) {
  require_channels(model.images.scale, model.settings.model, model.info().input);
  return model.images.scale;
}

ChannelScale pixel_scale(const ResolvedModel& model) {
  ChannelScale scale = channel_scale(model);
  if (!scale.mean.empty()) return scale;
  const Shape& input = model.info().input;
  const std::size_t channels = input.rank() == 3 ? static_cast<std::size_t>(input[0]) : 1;
  scale.mean.assign(channels, model.settings.input_mean);
  scale.std.assign(channels, model.settings.input_std);
  return scale;
}

data::ImageOptions image_options(const ResolvedModel& model, const Shape& input) {
  const Settings& settings = model.settings;
  if (input.rank() != 3 || (input[0] != 1 && input[0] != 3))
    throw ValueError(cat("model '", settings.model, "' takes ", input, ", not images"));
  data::ImageOptions options;
  options.input = input;
  options.resize = model.images.resize;
  options.mean = channel_scale(model).mean;
  if (options.mean.empty())
    options.mean.assign(static_cast<std::size_t>(input[0]), settings.input_mean);
  options.background = model.images.backdrop;
  options.strict = settings.strict;
  options.broken_is_error = model.images.broken_is_error;
  return options;
}

int image_workers(const Settings& settings) {
  if (settings.workers > 0) return settings.workers;
  return std::min(settings.threads > 0 ? settings.threads : threads(), data::kMostWorkers);
}

ImagePlace place_of_images(const Settings& settings, const data::ImageOptions& options) {
  const Device where = device(settings.device);
  const std::string& asked = settings.augment_on;
  const auto on_cpu = [&](const std::string& why) -> ImagePlace {
    if (asked == "gpu" || asked == "both")
      throw ValueError(cat("setting 'augment_on' is '", asked, "': ", why));
    return {"cpu", cat("images are decoded and augmented on the CPU: ", why)};
  };
  if (where.kind == Device::Kind::Cpu)
    return asked == "auto" || asked == "cpu" ? ImagePlace() : on_cpu("the run is on the CPU");
  if (asked == "cpu") return on_cpu("augment_on is cpu");
  if (!settings.freeze.empty()) return on_cpu("some layers are frozen");
  if (const std::string why = data::why_not_on_gpu(options); !why.empty()) return on_cpu(why);
  const ImageDecoder decoder = backend_of(where).image_decoder(where.index);
  if (!decoder.changes || (asked == "gpu" && !decoder.found)) return on_cpu(decoder.about);
  const int workers = image_workers(settings);
  const bool few = workers < kEnoughWorkers && decoder.has_engines;
  if (asked == "gpu" || (asked == "auto" && few))
    return {"gpu", cat("images are decoded and augmented on ", where.str(), " (", decoder.about,
                       "), those of validation and test on the CPU")};
  const std::string threads = cat(workers, workers == 1 ? " thread" : " threads");
  if (asked == "auto" && is_quick(options.augment))
    return on_cpu(cat(threads, workers == 1 ? " suffices" : " suffice"));
  return {"both", cat("images are decoded and scaled by ", threads, " of the CPU and augmented on ",
                      where.str(), ", those of validation and test on the CPU only")};
}

namespace {

// The input of a perceptron is a vector: it flattens images of any shape.
Shape image_shape(const ResolvedModel& model, const data::Dataset& set) {
  const Shape& input = model.info().input;
  return input.rank() == 1 ? set.input_shape() : input;
}

}  // namespace

std::shared_ptr<data::Dataset> fitted(const ResolvedRun& run, std::shared_ptr<data::Dataset> set,
                                      data::Split part) {
  if (set == nullptr || part != data::Split::Train) return fitted(run, std::move(set));
  const data::Transforms& changes = run.augmentation.steps;
  if (const auto images = set->images()) {
    data::ImageOptions options = image_options(run, image_shape(run, *set));
    options.resize = options.resize.middle_only();
    options.augment = changes;
    const std::string where = place_of_images(run.settings, options).where;
    options.on_gpu = where != "cpu", options.decode_on_gpu = where == "gpu";
    return data::image_dataset(images, options);
  }
  if (!changes.any()) return set;
  return data::augmented(std::move(set), changes,
                         std::vector<double>(static_cast<std::size_t>(3), run.settings.input_mean));
}

std::shared_ptr<data::Dataset> fitted(const ResolvedModel& model,
                                      std::shared_ptr<data::Dataset> set) {
  if (set == nullptr) return set;  // the source has no such part
  const auto images = set->images();
  if (images == nullptr) return set;
  data::ImageOptions options = image_options(model, image_shape(model, *set));
  options.broken_left_out = true;
  return data::image_dataset(images, options);
}

}  // namespace tenon::train
