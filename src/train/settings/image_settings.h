// The settings of image preprocessing, parsed: augmentation, resizing, scaling of channels,
// background.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/images.h>
#include <tenon/models.h>
#include <tenon/train.h>

namespace tenon::train {

struct DataSource;

/// Value of `preprocess` for image files whose run sets none.
inline constexpr char kUsualFitting[] = "resize,center_crop";
/// The option of image sources that replaces transparent pixels.
inline constexpr char kBackgroundOption[] = "background";

/// Parses "crop=4,flip,cutout=8" or "none". Throws ValueError.
data::Augmentation parse_augment(const std::string& text);

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
AugmentChoice augmentation_of(const Settings& settings, const ImageSettings& images,
                              const DataSource& source, const models::Info& network);
/// Throws ValueError if the scale has numbers for another number of channels than the network's
/// input.
void require_channels(const ChannelScale& scale, const std::string& model, const Shape& input);

}  // namespace tenon::train
