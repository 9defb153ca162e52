// Preprocessing of images as the settings of a run define it; a model file contains part of these
// settings.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/images.h>
#include <tenon/train.h>

namespace tenon::train {

struct DataSource;
struct ResolvedModel;
struct ResolvedRun;

/// Augmentation of training images: `plain` for images in memory that already have one size,
/// `steps` for all others.
struct AugmentChoice {
  data::Augmentation plain{};
  data::Transforms steps{};
  data::Mixing mixing{};  ///< mixing of batches, for both
  bool any() const { return plain.any() || steps.any() || mixing.any(); }
};
/// Parses the setting `augment` (not "auto"). Throws ValueError.
AugmentChoice parse_augment_choice(const std::string& text, bool own_sizes);

/// Parses "0.485,0.456,0.406/0.229,0.224,0.225", "imagenet", or "none" (both empty). Throws
/// ValueError.
struct ChannelScale {
  std::vector<double> mean, std;
};
ChannelScale parse_channel_scale(const std::string& text);

/// Parses the setting `preprocess` (not "auto"). Throws ValueError.
data::Transforms parse_fitting(const std::string& text);

/// The image settings of a model.
struct ImageSettings {
  bool any_size = false;  ///< the samples are image files of any size
  /// The settings as text, with "auto" replaced if `any_size`, as model files hold them.
  std::string preprocess{}, normalize{}, background{};
  data::Transforms resize{};             ///< how image files are resized (`preprocess`)
  ChannelScale scale{};                  ///< from `normalize`; empty: input_mean and input_std
  std::optional<io::Colour> backdrop{};  ///< from `background`; empty: transparency is ignored
  bool broken_is_error = false;          ///< an image that cannot be decoded ends the run
};
/// Throws ValueError for a setting that holds something else than it may.
ImageSettings image_settings(const Settings& settings, const DataSource& source,
                             const models::Info& network);
/// The augmentation of the training data. Throws ValueError.
AugmentChoice augmentation_of(const ResolvedModel& model);
/// Throws ValueError if the scale has numbers for another number of channels than the network's
/// input.
void require_channels(const ChannelScale& scale, const std::string& model, const Shape& input);

/// The settings as a model file holds them: with the values of ImageSettings.
Settings with_preprocess_settings(const ResolvedModel& model);
/// The same for other data than the run's: with the background of that data source, else the run's.
ResolvedModel with_images_of_source(const ResolvedModel& model, const std::string& data);
/// Settings for pretrained weights whose images were scaled with `normalize`: fills in values that
/// are not set. No change for an empty `normalize`, for inputs that are not RGB, and for inputs
/// smaller than those of published networks (resnet20 shares its names with resnet18).
Settings with_images_of(Settings settings, const Shape& input, const std::string& normalize);
/// The scaling of channels, which fits the network: ImageSettings::scale.
const ChannelScale& channel_scale(const ResolvedModel& model);
/// The scaling of pixels: channel_scale(), else input_mean and input_std, for each channel of the
/// network (1 if its input has none).
ChannelScale pixel_scale(const ResolvedModel& model);
/// Image options for samples of this shape. Throws ValueError if they are not images.
data::ImageOptions image_options(const ResolvedModel& model, const Shape& input);
/// Number of threads that prepare image files.
int image_workers(const Settings& settings);
/// Where training images are decoded and augmented, according to the setting `augment_on` and the
/// device: "both" means decoded and scaled by CPU threads, augmented on a GPU. Throws ValueError or
/// DeviceError if the GPU cannot do what the setting asks.
struct ImagePlace {
  std::string where = "cpu";  // "cpu", "gpu" or "both", never "auto"
  std::string about{};        // description for messages; "" on the CPU of a run without a GPU
};
ImagePlace place_of_images(const Settings& settings, const data::ImageOptions& options);
/// The dataset as network input: image files are resized, and the training part is augmented.
std::shared_ptr<data::Dataset> fitted(const ResolvedRun& run, std::shared_ptr<data::Dataset> set,
                                      data::Split part);
/// The dataset as input of evaluations: image files are resized.
std::shared_ptr<data::Dataset> fitted(const ResolvedModel& model,
                                      std::shared_ptr<data::Dataset> set);

}  // namespace tenon::train
