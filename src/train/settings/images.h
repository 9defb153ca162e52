// Images as resolved settings preprocess them: options of image datasets, and the settings that a
// model file contains.
#pragma once

#include <memory>
#include <string>

#include <tenon/data.h>
#include <tenon/images.h>
#include <tenon/train.h>

#include "train/settings/image_settings.h"
#include "train/settings/resolved.h"

namespace tenon::train {

/// The settings as a model file holds them: with the values of ImageSettings.
Settings with_preprocess_settings(const ResolvedModel& model);
/// The same for other data than the run's: with the background of that data source, else the run's.
ResolvedModel with_images_of_source(const ResolvedModel& model, const DataSource& source);
/// Preprocesses as pretrained weights whose images were scaled with `normalize` need it: fills in
/// settings that are not set. No change for an empty `normalize`, for inputs that are not RGB, and
/// for inputs smaller than those of published networks (resnet20 shares its names with resnet18).
void use_images_of(ResolvedModel& model, const std::string& normalize);
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
