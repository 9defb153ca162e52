// Images of different sizes (folders, lists and shards of photographs) and the transforms that
// resize them to a network's input and augment them for training.
//
// Random transforms depend on (seed, epoch, index of the sample) alone. The images are the same for
// any number of workers, and after a stop and resume.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/io.h>

namespace tenon::data {

/// Image files, each with a class. Several threads may call the methods at the same time.
class TENON_API ImageFiles {
 public:
  virtual ~ImageFiles();
  /// Number of images.
  virtual std::int64_t size() const = 0;
  /// The encoded image: JPEG, PNG or another format that io::load_image() reads. Of a video frame
  /// the pixels, as PPM.
  virtual std::string bytes(std::int64_t number) const = 0;
  /// A checksum of the encoded file, without decoding: equal for copies of one file. Of a video
  /// frame the checksum of its video.
  virtual std::uint64_t checksum(std::int64_t number) const;
  /// Size of the encoded file in bytes.
  virtual std::uint64_t stored_size(std::int64_t number) const;
  /// The image's class.
  virtual std::int64_t label(std::int64_t number) const = 0;
  /// The image's path, for messages; of a video frame also its position.
  virtual std::string name(std::int64_t number) const = 0;
  /// Names of the classes, in order.
  virtual std::vector<std::string> class_names() const = 0;
  /// A description for people.
  virtual std::string describe() const = 0;
  /// What was skipped or assumed when the files were listed, and classes that this part lacks.
  virtual Notes notes() const { return {}; }
};

/// The order in which class names are numbered.
enum class ClassOrder {
  Usual,   ///< Plain for folders; Natural for labels of lists and .cls files that are all integers
  Plain,   ///< by bytes, as torchvision's ImageFolder: 1, 10, 11, 2
  Natural  ///< digits in names as numbers: 1, 2, 10, 11
};

/// Which images belong to a part, and how classes are numbered.
struct ImageSplit {
  SplitOptions split{};  ///< division into parts
  bool whole = false;    ///< all images, whichever part is asked for, as Split::All
  /// Names of the classes in order, if they are known: a test set takes those of the training set.
  /// Another class is then a FormatError.
  std::vector<std::string> class_names{};
  ClassOrder order = ClassOrder::Usual;  ///< order of the classes if class_names is empty
  /// Images of the test part: another folder, list or pattern. "": the test part is divided off.
  std::string test_path{};
  /// True: subfolders named train, val, test and similar are parts. False: they are classes.
  bool part_folders = true;
};
/// Which frames of a video are images. Frames are evenly spaced; each is in the middle of an equal
/// share of the video's length. All frames of a video are in the same part.
struct VideoFrames {
  int count = 8;  ///< frames of each video; 0: videos are left out
  /// Above 0: one frame for so many seconds, instead of `count`. Every video is then opened to read
  /// its length.
  double every = 0;
};
/// Images in a folder whose subfolders are the classes (torchvision: ImageFolder), numbered by
/// split.order.
///
/// The folder may instead hold the parts, each with class subfolders, under their usual names in
/// any case: train or training, with val, valid, validation or dev, and test or testing. Without a
/// test folder there is no test part unless split.test or a fold takes one from the training
/// folder. Without a validation folder the validation part comes from the training folder.
///
/// Returns null for a part that does not exist. Throws IoError; FormatError if there are no images,
/// or if classes have the names of parts; ValueError for numbers of frames out of range.
TENON_API std::shared_ptr<ImageFiles> open_image_folder(const std::string& folder, Split part,
                                                        const ImageSplit& split = {},
                                                        const VideoFrames& frames = {});
/// Images in a list: each row (RowFormat) has the path of an image or video and its class. The list
/// has no header, or one that names both columns ("path", "label"). Relative paths start at the
/// list's folder. Errors as open_image_folder().
TENON_API std::shared_ptr<ImageFiles> open_image_list(const std::string& file, Split part,
                                                      const ImageSplit& split = {},
                                                      const VideoFrames& frames = {},
                                                      const RowFormat& rows = {});
/// The frames of one video, all of one class, "video". Throws IoError, FormatError or NotSupported
/// if the video cannot be opened.
TENON_API std::shared_ptr<ImageFiles> open_video(const std::string& file,
                                                 const VideoFrames& frames = {});
/// Images in WebDataset shards, uncompressed tar files: KEY.jpg (or .png …) beside KEY.cls, which
/// holds the class. Without .cls files an image's folder is its class. If a key has several images,
/// the first is taken. The pattern "train-{000..012}.tar" or "train-*.tar" names several files.
TENON_API std::shared_ptr<ImageFiles> open_image_shards(const std::string& pattern, Split part,
                                                        const ImageSplit& split = {});

class SampleRandom;  // <tenon/sample_random.h>

/// A transform of one's own: returns the transformed image, with as many channels. `random` has the
/// random numbers of the sample in this epoch; each transform of a list has its own. The function
/// may change the size of the image if a cropping transform follows. Several threads call it at the
/// same time.
using ImageFunction = std::function<io::Image(io::Image image, SampleRandom& random)>;

/// One transform of images.
struct Transform {
  std::string name{};  ///< the name: "flip"
  /// Its parameters, in the order of Transforms::known(). Parameters that are left out at the end
  /// have their defaults.
  std::vector<double> values{};
  ImageFunction function{};  ///< of a transform of one's own; empty: the transform of that name
};

/// A parameter of a registered transform.
struct TransformParameter {
  std::string name{};  ///< for help and messages, in capitals: "STRENGTH"
  double usual = 0;    ///< the default
  double low = std::numeric_limits<double>::lowest();  ///< the smallest value allowed
  double high = std::numeric_limits<double>::max();    ///< the largest value allowed
};
/// A transform of one's own that lists of transforms know by its name.
struct RegisteredTransform {
  std::string name{};   ///< lower-case letters, digits and '_', beginning with a letter
  std::string about{};  ///< a sentence for help, without its full stop
  std::vector<TransformParameter> parameters{};  ///< in order
  /// Makes the function for these values, one for each parameter and within its range. Called once
  /// for each list of transforms. May throw ValueError.
  std::function<ImageFunction(const std::vector<double>& values)> make{};
};
/// Registers a transform for all lists of transforms that are made from now on:
/// Transforms::parse(), and with it the setting `augment` of a run.
///
/// @code
/// data::register_transform(
///     {.name = "invert",
///      .about = "inverts the colours with probability CHANCE",
///      .parameters = {{.name = "CHANCE", .usual = 0.5, .low = 0, .high = 1}},
///      .make = [](const std::vector<double>& values) -> data::ImageFunction {
///        return [chance = values[0]](io::Image image, data::SampleRandom& random) {
///          if (random.chance(chance))
///            for (std::uint8_t& pixel : image.pixels) pixel = 255 - pixel;
///          return image;
///        };
///      }});
/// auto steps = data::Transforms::parse("crop=4,flip,invert=0.2");
/// @endcode
///
/// Call it at the start of the program, before runs are opened. Several threads may call it. Throws
/// ValueError for an invalid name, a name that is already known, or a default out of its range.
TENON_API void register_transform(RegisteredTransform transform);

/// A sequence of transforms of an image (torchvision: transforms.Compose).
class TENON_API Transforms {
 public:
  /// No transforms.
  Transforms() = default;
  /// Throws ValueError for an unknown name, too many parameters or a parameter out of range, and
  /// for a function under the name of another transform.
  Transforms(std::vector<Transform> steps);
  /// Parses names with parameters, "resized_crop=224,flip,jitter=0.4:0.4:0.4:0.1". A colon
  /// separates parameters. "" and "none": no transforms. Throws ValueError.
  static Transforms parse(const std::string& text);
  /// transforms::resize() and transforms::center_crop(): the centre, in the size of the network's
  /// input.
  static Transforms to_network();
  /// The text that parse() takes; "none" without transforms.
  std::string text() const;
  /// The transforms in order.
  const std::vector<Transform>& steps() const noexcept { return steps_; }
  /// Whether there are any transforms.
  bool any() const noexcept;
  /// Whether a transform of this name is among them.
  bool has(const std::string& name) const noexcept;
  /// The parameters of "mixup" and "cutmix". These two need a whole batch; the trainer applies them
  /// (train::TrainOptions::mixing).
  Mixing mixing() const;
  /// All transforms but "mixup" and "cutmix".
  Transforms without_mixing() const;
  /// Images that one image becomes: 5 or 10 with five_crop or ten_crop at the end, else 1.
  int crops() const noexcept;
  /// The transforms with center_crop instead of five_crop and ten_crop.
  Transforms middle_only() const;
  /// Applies the transforms to a grey or RGB image.
  ///
  /// @param image   the image
  /// @param height  height of the network's input in pixels
  /// @param width   width of the network's input in pixels
  /// @param seed    seed of random transforms
  /// @param epoch   the epoch, for random transforms
  /// @param number  index of the sample, for random transforms
  /// @param mean    values for erased pixels, 0 to 1, one for each channel
  /// @return the image, in the size of the network's input if the last cropping transform has that
  ///         size. Throws ValueError for transforms that mix batches or give several images.
  io::Image apply(const io::Image& image, int height, int width, std::uint64_t seed,
                  std::int64_t epoch, std::int64_t number,
                  const std::vector<double>& mean = {}) const;
  /// Help on one transform.
  struct Known {
    std::string usage;     ///< name and parameters: "resized_crop[=SIDE:LOW:HIGH]"
    std::string about;     ///< a sentence about it
    std::string defaults;  ///< the parameters' defaults: "0:0.08:1", or empty
  };
  /// All transforms that parse() knows: Tenon's, then registered ones in alphabetical order.
  static std::vector<Known> known();

 private:
  std::vector<Transform> steps_;
};

/// Transforms by name. A `side` of 0 is that of the network's input. A `chance` is the probability
/// that the transform is applied.
namespace transforms {
/// Resizes the short side to `side` pixels, keeping proportions (torchvision: Resize). With a side
/// of 0 the image covers 8/7 of the network's input.
TENON_API Transform resize(double side = 0);
/// Takes the centre, side x side pixels (torchvision: CenterCrop).
TENON_API Transform center_crop(double side = 0);
/// Takes the four corners and the centre as five images (torchvision: FiveCrop). For evaluation
/// only.
TENON_API Transform five_crop(double side = 0);
/// five_crop() of the image, then of its mirror image, left to right or, if `vertical`, upside down
/// (torchvision: TenCrop). For evaluation only.
TENON_API Transform ten_crop(double side = 0, bool vertical = false);
/// Pads the image with `padding` black pixels on each side and takes a random part of the size of
/// the network's input (torchvision: RandomCrop).
TENON_API Transform random_crop(double padding = 0);
/// Takes a random part with `low` to `high` of the image's area and a ratio of width to height from
/// `low_ratio` to `high_ratio`, and resizes it to side x side (torchvision: RandomResizedCrop).
TENON_API Transform random_resized_crop(double side = 0, double low = 0.08, double high = 1,
                                        double low_ratio = 3.0 / 4, double high_ratio = 4.0 / 3);
/// Mirrors left to right (torchvision: RandomHorizontalFlip).
TENON_API Transform horizontal_flip(double chance = 0.5);
/// Mirrors upside down (torchvision: RandomVerticalFlip).
TENON_API Transform vertical_flip(double chance = 0.5);
/// Rotates by a random angle up to `degrees` in either direction (torchvision: RandomRotation).
TENON_API Transform rotation(double degrees);
/// Rotates by up to `degrees`, shifts by up to the share `translate` of the sides, scales by `low`
/// to `high` and shears by up to `shear` degrees (torchvision: RandomAffine).
TENON_API Transform affine(double degrees, double translate = 0, double low = 1, double high = 1,
                           double shear = 0);
/// Moves the corners inwards by up to `distortion` of half the sides (torchvision:
/// RandomPerspective).
TENON_API Transform perspective(double distortion = 0.5, double chance = 0.5);
/// Multiplies brightness, contrast and saturation by random factors from 1 - x to 1 + x, and shifts
/// the hue by up to `hue`, at most 0.5 (torchvision: ColorJitter).
TENON_API Transform color_jitter(double brightness, double contrast, double saturation,
                                 double hue = 0);
/// Adds a random colour along the principal axes of ImageNet's colours, with standard deviation
/// `deviation` (Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional
/// neural networks", 2012).
TENON_API Transform pca_colour(double deviation = 0.1);
/// Gaussian blur with an odd `kernel` size in pixels and a random standard deviation from `low` to
/// `high` (torchvision: GaussianBlur).
TENON_API Transform gaussian_blur(double kernel = 5, double low = 0.1, double high = 2);
/// Sets a random rectangle of `low` to `high` of the area to the mean (torchvision: RandomErasing).
TENON_API Transform random_erasing(double chance = 0.5, double low = 0.02, double high = 0.33);
/// Applies `operations` random operations out of 14, each with a strength of `magnitude` out of 30
/// (Cubuk et al., "RandAugment", 2019; torchvision: RandAugment).
TENON_API Transform rand_augment(double operations = 2, double magnitude = 9);
/// Mixes images of a batch and their labels with shares from Beta(alpha, alpha) (Mixing::mixup).
TENON_API Transform mixup(double alpha = 1);
/// Replaces a box by that of another image of the batch, and mixes the labels in proportion
/// (Mixing::cutmix).
TENON_API Transform cutmix(double alpha = 1);
/// A transform of one's own, for instance a lambda, between others in a list. `name` appears
/// in Transforms::text() and in messages; parse() does not know it (register_transform()).
TENON_API Transform function(std::string name, ImageFunction change);
}  // namespace transforms

/// Options of image_dataset().
struct ImageOptions {
  Shape input{3, 224, 224};  ///< the network's input, [channels, height, width]
  /// Transforms that give an image the size of the network's input. With five_crop or ten_crop a
  /// sample has several views (Dataset::views()). If `augment` is set, training sees the centre
  /// instead.
  Transforms resize = Transforms::to_network();
  /// Transforms for training, instead of `resize`. If they do not crop, they are applied after
  /// `resize`.
  Transforms augment{};
  /// Values for erased pixels, 0 to 1, one for each channel.
  std::vector<double> mean{};
  /// True: an image that cannot be decoded is an error. False: the next image that can be decoded
  /// replaces it, in a subset() or split_part() the next one of that part, and Dataset::broken()
  /// has its name.
  bool broken_is_error = false;
  /// For evaluations: an image that cannot be decoded is not replaced. Its input is black and its
  /// target kIgnoredTarget, so train::Trainer::evaluate() does not count it.
  bool broken_left_out = false;
  /// Background of transparent images (io::ImageReading::background).
  std::optional<io::Colour> background{};
  /// True: an image that cannot be decoded, or that loses something in decoding (transparency,
  /// later frames, the lower 8 of 16 bits), is an error. False: Dataset::notes() counts such
  /// images.
  bool strict = false;
  /// True: a GPU to which a loader copies batches (Loader::next_stored()) applies the transforms.
  /// It uses the same random numbers and gives the same bytes; blur may differ by 1 of 255. On
  /// other devices the CPU applies them. Transforms of one's own run on the CPU only, so
  /// image_dataset() refuses them together with on_gpu.
  bool on_gpu = false;
  /// With on_gpu: nvJPEG decodes JPEG images too; its pixels may differ slightly from the CPU's.
  /// False, or without nvJPEG: the CPU decodes them and does the first resize.
  bool decode_on_gpu = true;
};
/// Why no GPU can apply the transforms of these options, as a sentence; "" if a GPU can, for colour
/// images.
TENON_API std::string why_not_on_gpu(const ImageOptions& options);
/// A dataset of images from files, uint8 [channels, height, width] or [crops, channels, height,
/// width]. Images are decoded when they are read. Throws ValueError for options that contradict
/// each other.
TENON_API std::shared_ptr<Dataset> image_dataset(std::shared_ptr<const ImageFiles> images,
                                                 const ImageOptions& options = {});
/// A dataset of images of one size, uint8 [channels, height, width], with augmentation for
/// training. `mean`: values for erased pixels, 0 to 1, one for each channel.
TENON_API std::shared_ptr<Dataset> augmented(std::shared_ptr<const Dataset> set,
                                             const Transforms& augment,
                                             const std::vector<double>& mean = {});
/// One image as image_dataset() gives it without augmentation: uint8 [1, channels, height, width],
/// or [1, crops, channels, height, width].
TENON_API Tensor preprocess_image(const io::Image& image, const ImageOptions& options);

/// Whether a data source is a set of image files: folder:, list: or shards:.
TENON_API bool is_image_source(const std::string& spec);

}  // namespace tenon::data
