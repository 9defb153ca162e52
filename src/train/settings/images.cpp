// Turns resolved settings into options of image datasets.
#include "train/settings/images.h"

#include <algorithm>
#include <utility>

#include <tenon/compute.h>
#include <tenon/context.h>
#include <tenon/error.h>

#include "base/str.h"
#include "data/loading/prefetch.h"
#include "device/backend.h"

namespace tenon::train {
namespace {

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

}  // namespace

Settings with_preprocess_settings(const ResolvedModel& model) {
  Settings out = model.settings;
  out.preprocess = model.images.preprocess;
  out.normalize = model.images.normalize;
  out.background = model.images.background;
  return out;
}

ResolvedModel with_images_of_source(const ResolvedModel& model, const DataSource& source) {
  ResolvedModel out = model;
  out.settings = with_preprocess_settings(model);
  // The settings already contain the options of the run's data, or were changed by the user. Only
  // an option that differs from the run's data overrides them.
  const auto told = source.option(kBackgroundOption);
  if (told && told != model.data.option(kBackgroundOption)) out.settings.background = *told;
  out.settings.data = source.text;
  out.data = source;
  out.images = image_settings(out.settings, out.data, out.info());
  return out;
}

void use_images_of(ResolvedModel& model, const std::string& normalize) {
  constexpr std::int64_t kPublished = 224;  // smallest side of an input of published networks
  const Shape& input = model.info().input;
  if (normalize.empty() || input.rank() != 3 || input[0] != 3 || input[1] < kPublished) return;
  if (model.settings.preprocess == "auto") model.set_image_setting("preprocess", kUsualFitting);
  if (model.settings.normalize == "auto") model.set_image_setting("normalize", normalize);
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
