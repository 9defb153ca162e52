// Preprocessing of images as the settings of a run define it; a model file contains part of these
// settings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/images.h>
#include <tenon/train.h>

namespace tenon::train {

/// Changes of training images: of those in memory that are of one size already the plain three,
/// of all others whatever there is.
struct AugmentChoice {
  data::Augmentation plain{};
  data::Transforms steps{};
  data::Mixing mixing{};  ///< of batches of either
  bool any() const { return plain.any() || steps.any() || mixing.any(); }
};
/// The setting `augment`, which is not "auto". Throws ValueError.
AugmentChoice parse_augment_choice(const std::string& text, bool own_sizes);

/// "0.485,0.456,0.406/0.229,0.224,0.225", "imagenet", or none: both empty. Throws ValueError.
struct ChannelScale {
  std::vector<double> mean, std;
};
ChannelScale parse_channel_scale(const std::string& text);

/// The setting `image`, which is not "auto". Throws ValueError.
data::Transforms parse_fitting(const std::string& text);

/// Whether the settings are for images of sizes of their own.
bool own_sizes(const Settings& settings);
/// `settings` with "auto" replaced, where images are of sizes of their own, by what it stands
/// for: a model file says it so.
Settings with_preprocess_settings(Settings settings);
/// The same for other data than the run's: with the background that it names, else the run's.
Settings with_images_of_source(const Settings& settings, const std::string& data);
/// For weights that somebody else learnt from images that were fitted and scaled so: what is left
/// open says that. Nothing is changed for an empty `normalize` and for inputs that are no colours
/// or smaller than published networks take (resnet20 shares its names with resnet18).
Settings with_images_of(Settings settings, const std::string& normalize);
ChannelScale channel_scale(const Settings& settings);
/// What pixels are scaled by in any case: channel_scale(), or else input_mean and input_std, in the
/// number of the network's channels (1 where its input has none).
ChannelScale pixel_scale(const Settings& settings);
/// What the settings' data is changed by, for training.
AugmentChoice augmentation_of(const Settings& settings);
/// For examples of this shape. Throws ValueError where they are no images.
/// What transparent parts of images are composed over; unset: the colour under them is kept.
std::optional<io::Colour> background(const Settings& settings);
data::ImageOptions image_options(const Settings& settings, const Shape& input);
/// Threads that prepare files of images.
int image_workers(const Settings& settings);
/// Where the training part's images are decoded and changed, as the setting `augment_on` says and
/// the device can: "both" is decoded and scaled by threads, changed by a GPU. Throws ValueError or
/// DeviceError where a GPU is asked for that cannot.
struct ImagePlace {
  std::string where = "cpu";  // or GPU, or both: as the setting, but for auto
  std::string about{};        // for people; "" on the CPU of a run without a GPU
};
ImagePlace place_of_images(const Settings& settings, const data::ImageOptions& options);
/// The set as the network takes it: images of sizes of their own brought to its size, and, of a
/// training part, changed.
std::shared_ptr<data::Dataset> fitted(const Settings& settings, std::shared_ptr<data::Dataset> set,
                                      data::Split part);

}  // namespace tenon::train
