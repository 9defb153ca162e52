// Parses the image settings and fills in defaults.
#include "train/settings/image_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "train/settings/data_source.h"

namespace tenon::train {
namespace {

constexpr char kImageNet[] = "0.485,0.456,0.406/0.229,0.224,0.225";
constexpr char kUsualChanges[] = "resized_crop,flip";
constexpr char kBroken[] = "broken";  // an option of image sources

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

}  // namespace

data::Augmentation parse_augment(const std::string& text) {
  data::Augmentation out;
  if (text == "none") return out;
  const auto bad = [&text] {
    throw ValueError(cat("setting 'augment' is '", text,
                         "', must be auto, none, or any of crop=N, flip and cutout=N, once each, "
                         "with commas between, N from 1 to 4096"));
  };
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at), key = item.substr(0, item.find('='));
    at = end + 1;
    if (item == "flip" && !out.flip) {
      out.flip = true;
      continue;
    }
    if ((key != "crop" && key != "cutout") || key.size() == item.size()) bad();
    std::int64_t& value = key == "crop" ? out.crop : out.cutout;
    if (value != 0) bad();
    const char* last = item.data() + item.size();
    const auto [stop, error] = std::from_chars(item.data() + key.size() + 1, last, value);
    if (error != std::errc() || stop != last || value < 1 || value > 4096) bad();
  }
  return out;
}

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
    if (out.preprocess == "auto") out.preprocess = kUsualFitting;
    if (out.normalize == "auto")
      out.normalize = input.rank() == 3 && input[0] == 3 ? kImageNet : "none";
    if (out.background == "auto")
      out.background = source.option(kBackgroundOption).value_or("none");
  }
  out.resize = data::Transforms::parse(out.preprocess == "auto" ? kUsualFitting : out.preprocess);
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
AugmentChoice augmentation_of(const Settings& settings, const ImageSettings& images,
                              const DataSource& source, const models::Info& network) {
  const bool own = images.any_size;
  if (settings.augment != "auto") return parse_augment_choice(settings.augment, own);
  const bool stays = !settings.freeze.empty() && settings.frozen_variants == 0;
  std::string recipe = network.recipe.augment;
  if (recipe == "auto") recipe.clear();
  if (own && stays) return {};
  if (own)
    return parse_augment_choice(recipe.empty() || settings.network.empty() ? kUsualChanges : recipe,
                                own);
  return recipe.empty() || !source.kind.starts_with("cifar") ? AugmentChoice()
                                                             : parse_augment_choice(recipe, own);
}

void require_channels(const ChannelScale& scale, const std::string& model, const Shape& input) {
  if (!scale.mean.empty() &&
      (input.rank() != 3 || input[0] != static_cast<std::int64_t>(scale.mean.size())))
    throw ValueError(cat("setting 'normalize' has numbers for ", scale.mean.size(),
                         " channels, and model '", model, "' takes ", input));
}

}  // namespace tenon::train
