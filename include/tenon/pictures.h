// Pictures of sizes of their own (folders, lists, shards of photographs), and what is done to them
// on their way to a network: brought to its size, and for training changed at random.
//
// What is drawn depends on (seed, epoch, number of the example) alone: the same pictures for any
// number of workers, and after a stop and resume.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/io.h>

namespace tenon::data {

/// Pictures as files, each with a class. All methods may be called from several threads at a time.
class TENON_API Pictures {
 public:
  virtual ~Pictures();
  virtual std::int64_t size() const = 0;
  /// The encoded picture: JPEG, PNG or another kind that io::load_image() reads; of a video's
  /// frame its pixels, as PPM.
  virtual std::string bytes(std::int64_t number) const = 0;
  /// Of what it is read from, without decoding: equal for copies. Of a frame that of its video.
  virtual std::uint64_t checksum(std::int64_t number) const;
  /// Bytes of what it is read from.
  virtual std::uint64_t stored_size(std::int64_t number) const;
  /// Its class.
  virtual std::int64_t label(std::int64_t number) const = 0;
  /// Its path, for people; of a frame also which it is.
  virtual std::string name(std::int64_t number) const = 0;
  virtual std::vector<std::string> class_names() const = 0;
  virtual std::string describe() const = 0;
  /// What was skipped or assumed when they were gathered, and classes that this part lacks.
  virtual Notes notes() const { return {}; }
};

/// How classes are numbered: by the order of their names.
enum class ClassOrder {
  Usual,   ///< folders as Plain; labels of lists and .cls files that are all whole numbers as
           ///< Natural
  Plain,   ///< by bytes, as torchvision's ImageFolder: 1, 10, 11, 2
  Natural  ///< digits within names as numbers: 1, 2, 10, 11
};

/// Which images belong to a part, and how classes are numbered.
struct PictureSplit {
  SplitOptions split{};
  bool whole = false;  ///< all images, whichever part is asked for: as Split::All
  /// Names of the classes in their order, when known: a test set takes the training set's. A
  /// class that is not among them is a FormatError.
  std::vector<std::string> class_names{};
  ClassOrder order = ClassOrder::Usual;  ///< where they are not known
  /// Images for testing: another folder, list or pattern. "": what lies here is divided.
  std::string test_path{};
  /// Sub-folders named train, val, test and the like are parts; off: they are classes.
  bool part_folders = true;
};
/// Which frames of a video are pictures: evenly spaced over its length, each in the middle of its
/// share. All frames of a video are in the same part.
struct VideoFrames {
  int count = 8;     ///< of each video; 0: videos are left out
  double every = 0;  ///< above 0: one for so many seconds instead, for which each video is opened
};
/// A folder whose sub-folders are the classes, in the order of their names (ClassOrder); or one
/// that holds the parts, each of that kind, by their usual names in any case: train or training
/// beside val, valid, validation or dev, and test or testing. Without a test folder there is no
/// test part unless split.test or a fold takes one from the training folder; without a validation
/// folder that part comes from the training folder. Of videos frames are images. Returns nullptr
/// for a part that is not there. Throws IoError, FormatError for no images and for classes that
/// would be called as parts are, ValueError for numbers of frames out of range.
TENON_API std::shared_ptr<Pictures> open_picture_folder(const std::string& folder, Split part,
                                                        const PictureSplit& split = {},
                                                        const VideoFrames& frames = {});
/// Rows (RowFormat) of a path, of an image or a video, and its class, without a header or with one
/// that names both ("path", "label"). Relative paths begin at the list's folder.
TENON_API std::shared_ptr<Pictures> open_picture_list(const std::string& file, Split part,
                                                      const PictureSplit& split = {},
                                                      const VideoFrames& frames = {},
                                                      const RowFormat& rows = {});
/// The frames of one video, all of one class, "video". Throws IoError, FormatError or NotSupported
/// for one that cannot be opened.
TENON_API std::shared_ptr<Pictures> open_video(const std::string& file,
                                               const VideoFrames& frames = {});
/// WebDataset's tar files, not compressed: KEY.jpg (or .png …) beside KEY.cls, which holds the
/// class; without such the folder in which a picture lies is its class. Of several pictures of one
/// key the first is taken. "train-{000..012}.tar" and
/// "train-*.tar" stand for many.
TENON_API std::shared_ptr<Pictures> open_picture_shards(const std::string& pattern, Split part,
                                                        const PictureSplit& split = {});

/// One change of pictures: its name and its numbers, of which those left out are as usual.
struct Transform {
  std::string name{};
  std::vector<double> values{};
};

/// Changes of a picture, one after another.
class TENON_API Transforms {
 public:
  Transforms() = default;
  /// Throws ValueError for a name that there is not, too many numbers or one out of its range.
  Transforms(std::vector<Transform> steps);
  /// "resized_crop=224,flip,jitter=0.4:0.4:0.4:0.1": names with numbers, colons between them. ""
  /// and "none" are no changes.
  static Transforms parse(const std::string& text);
  /// transforms::resize() and center_crop(): the middle, in the network's size.
  static Transforms to_network();
  std::string text() const;
  const std::vector<Transform>& steps() const noexcept { return steps_; }
  bool any() const noexcept { return !steps_.empty(); }
  bool has(const std::string& name) const noexcept;
  /// What "mixup" and "cutmix" say, which are about batches: whoever trains does them
  /// (train::TrainOptions::mixing).
  Mixing mixing() const;
  /// The steps without these.
  Transforms without_mixing() const;
  /// Pictures that these make of one: 5 or 10 with five_crop or ten_crop at their end, else 1.
  int crops() const noexcept;
  /// The steps with center_crop in the place of five_crop and ten_crop.
  Transforms middle_only() const;
  /// A grey or RGB picture as these make it, for a network of height x width, in the epoch.
  /// `mean` is what erasing leaves. The result has the network's size when the last step that
  /// crops has. Throws ValueError for steps that mix batches or make several pictures of one.
  io::Image apply(const io::Image& image, int height, int width, std::uint64_t seed,
                  std::int64_t epoch, std::int64_t number,
                  const std::vector<double>& mean = {}) const;
  /// What is known of each: "resized_crop[=SIDE:LOW:HIGH]" and a sentence.
  struct Known {
    std::string usage, about;
  };
  static std::vector<Known> known();

 private:
  std::vector<Transform> steps_;
};

/// Steps by name. A side of 0 is the network's own.
namespace transforms {
/// The short side; of 0 the picture covers 8/7 of the network's input.
TENON_API Transform resize(double side = 0);
TENON_API Transform center_crop(double side = 0);
/// The corners and the middle, as torchvision's FiveCrop; TenCrop: the same of the mirrored picture
/// (left for right, or upside down) behind them. For testing alone.
TENON_API Transform five_crop(double side = 0);
TENON_API Transform ten_crop(double side = 0, bool vertical = false);
/// A part of the network's size, anywhere, with black pixels put around before.
TENON_API Transform random_crop(double padding = 0);
/// A part of this share of the picture's area and of these proportions, scaled to the side.
TENON_API Transform random_resized_crop(double side = 0, double low = 0.08, double high = 1,
                                        double narrow = 3.0 / 4, double wide = 4.0 / 3);
TENON_API Transform horizontal_flip(double chance = 0.5);
TENON_API Transform vertical_flip(double chance = 0.5);
TENON_API Transform rotation(double degrees);
TENON_API Transform affine(double degrees, double translate = 0, double low = 1, double high = 1,
                           double shear = 0);
TENON_API Transform perspective(double distortion = 0.5, double chance = 0.5);
TENON_API Transform color_jitter(double brightness, double contrast, double saturation,
                                 double hue = 0);
TENON_API Transform pca_colour(double deviation = 0.1);
TENON_API Transform gaussian_blur(double kernel = 5, double low = 0.1, double high = 2);
TENON_API Transform random_erasing(double chance = 0.5, double low = 0.02, double high = 0.33);
TENON_API Transform rand_augment(double changes = 2, double magnitude = 9);
TENON_API Transform mixup(double alpha = 1);
TENON_API Transform cutmix(double alpha = 1);
}  // namespace transforms

struct PictureOptions {
  Shape input{3, 224, 224};  ///< [channels, height, width] of the network
  /// How a picture comes to that size. With five_crop or ten_crop an example is as many crops
  /// (Dataset::views()), unless `augment` says what training does, which sees the middle instead.
  Transforms resize = Transforms::to_network();
  /// What training does instead; where it does not crop, it comes behind `resize`.
  Transforms augment{};
  /// What erasing leaves, 0 to 1, one for each channel.
  std::vector<double> mean{};
  /// A picture that cannot be decoded is an error. Otherwise the next one that can stands in its
  /// place, and its name is in Dataset::broken().
  bool broken_is_error = false;
  /// None stands in its place, as evaluations want it: its example is black and its target
  /// kIgnoredTarget, which train::Trainer::evaluate() leaves out.
  bool broken_left_out = false;
  /// What transparent parts are composed over (io::ImageReading::background).
  std::optional<io::Colour> background{};
  /// What decoding loses of an image (transparency, later frames, the lower 8 of 16 bits) is an
  /// error, as are images that cannot be decoded; otherwise Dataset::notes() counts them.
  bool strict = false;
  /// A card to which a loader sends batches (Loader::next_stored()) changes them by itself: the
  /// same draws and the same bytes (blur: to a level). Elsewhere the CPU does.
  bool on_card = false;
  /// Of these: nvJPEG decodes them too, as near as it does. Otherwise, and where there is none, the
  /// CPU decodes them and does the first scaling.
  bool decode_on_card = true;
};
/// Why a card cannot do what these say, whichever it is; "" when it can, as of all pictures in
/// colour.
TENON_API std::string why_not_on_card(const PictureOptions& options);
/// Examples for networks, uint8 [channels, height, width] or [crops, channels, height, width],
/// decoded when asked for. Throws ValueError for options that do not fit each other.
TENON_API std::shared_ptr<Dataset> picture_dataset(std::shared_ptr<const Pictures> pictures,
                                                   const PictureOptions& options = {});
/// A set of pictures of one size, uint8 [channels, height, width], with changes for training.
TENON_API std::shared_ptr<Dataset> augmented(std::shared_ptr<const Dataset> set,
                                             const Transforms& augment,
                                             const std::vector<double>& mean = {});
/// One picture as picture_dataset() gives it without changes: uint8 [1, channels, height, width],
/// or [1, crops, channels, height, width].
TENON_API Tensor fit_picture(const io::Image& image, const PictureOptions& options);

/// Whether a data source names pictures of their own sizes: folder:, list: or shards:.
TENON_API bool is_picture_source(const std::string& spec);

}  // namespace tenon::data
