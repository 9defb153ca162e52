// Images as samples: decoded, resized to the network's input, stored as channel planes (CHW).
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include <tenon/error.h>
#include <tenon/images.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "data/images/image_transforms.h"
#include "data/images/transforms.h"
#include "data/samples/derived_dataset.h"
#include "data/samples/image_jobs.h"
#include "data/samples/stand_ins.h"
#include "io/images/image.h"

namespace tenon::data {
namespace {

ImageTarget target_of(const ImageOptions& options) {
  const Shape& shape = options.input;
  constexpr std::int64_t kMost = 8192;
  if (shape.rank() != 3 || (shape[0] != 1 && shape[0] != 3) || shape[1] < 1 || shape[2] < 1 ||
      shape[1] > kMost || shape[2] > kMost)
    throw ValueError(
        cat("images of ", shape, ": must be [1 or 3, height, width], sides up to ", kMost));
  ImageTarget target{
      static_cast<int>(shape[1]), static_cast<int>(shape[2]), static_cast<int>(shape[0]), {}};
  for (std::size_t c = 0; c < std::min<std::size_t>(options.mean.size(), 3); ++c)
    target.mean[c] =
        static_cast<std::uint8_t>(std::lround(255 * std::clamp(options.mean[c], 0.0, 1.0)));
  target.background = options.background;
  return target;
}

// Whether a step is deterministic: it gives the same result in every epoch.
bool is_fixed(const Transform& step) {
  return step.name == "resize" || step.name == "center_crop" || makes_many(step);
}

// Checks the steps that bring an image to the input size. Only the last step may make several
// images from one.
void check_fitting(const Transforms& steps, const ImageTarget& target) {
  std::vector<Transform> single = steps.steps();
  if (steps.crops() > 1) single.pop_back();
  check_single(single);
  check_size(steps.middle_only(), target.height, target.width);
}

Shape shape_of(const ImageOptions& options) {
  const Shape& input = options.input;
  const int crops = options.augment.any() ? 1 : options.resize.crops();
  return crops == 1 ? input : Shape{crops, input[0], input[1], input[2]};
}

void check_target(const Image& image, const ImageTarget& target, const std::string& name) {
  if (image.width != target.width || image.height != target.height)
    throw make_error<ShapeError>(FileName{name}, ": is ", image.width, " x ", image.height,
                                 " after its transforms, not ", target.width, " x ", target.height,
                                 ": end with a crop");
}

// Rows of pixels as planes of channels.
void to_planes(const Image& image, const ImageTarget& target, const std::string& name,
               std::uint8_t* out) {
  check_target(image, target, name);
  const std::size_t plane = at(target.width) * at(target.height);
  const std::uint8_t* from = image.pixels.data();
  if (target.channels == 1) {
    std::copy_n(from, plane, out);
    return;
  }
  std::uint8_t *red = out, *green = out + plane, *blue = green + plane;
  for (std::size_t i = 0; i < plane; ++i, from += 3)
    red[i] = from[0], green[i] = from[1], blue[i] = from[2];
}

// What decoding lost, by image: an image is counted once, however often it is decoded.
class LossLog {
 public:
  explicit LossLog(std::int64_t images) : known_(at(images)) {}
  void add(std::int64_t number, unsigned losses, const std::string& name) {
    const std::lock_guard lock(mutex_);
    std::uint8_t& known = known_[at(number)];
    for (std::size_t k = 0; k < kKinds; ++k)
      if (const unsigned loss = io::kImageLosses[k]; (losses & loss) != 0 && (known & loss) == 0)
        if (++counts_[k] == 1) first_[k] = name;
    known = static_cast<std::uint8_t>(known | losses);
  }
  Notes notes() const {
    const std::lock_guard lock(mutex_);
    Notes out;
    for (std::size_t k = 0; k < kKinds; ++k)
      if (counts_[k] > 0)
        out.push_back({io::loss_text(io::kImageLosses[k], counts_[k]), counts_[k], first_[k]});
    return out;
  }

 private:
  static constexpr std::size_t kKinds = std::size(io::kImageLosses);
  mutable std::mutex mutex_;
  std::vector<std::uint8_t> known_;  // losses by image
  std::array<std::int64_t, kKinds> counts_{};
  std::array<std::string, kKinds> first_;
};

DatasetInfo info_of(const ImageFiles& images, const ImageOptions& options) {
  const Shape shape = shape_of(options);
  std::vector<std::string> names = images.class_names();
  const std::int64_t classes = std::ssize(names);
  return {.input_shape = shape,
          .input_dtype = DType::UInt8,
          .classes = classes,
          .class_names = std::move(names),
          .views = shape.rank() == 4 ? shape[0] : 1,
          .description = images.describe()};
}

class ImageSet final
    : public DatasetWith<Provenance, AugmentedSamples, ImageSamples, ImageJobs, StandIns> {
 public:
  ImageSet(std::shared_ptr<const ImageFiles> images, const ImageOptions& options)
      : DatasetWith(info_of(*images, options)),
        images_(std::move(images)),
        options_(options),
        target_(target_of(options)),
        shape_(shape_of(options)),
        resize_(options.resize.steps()),
        losses_(images_->size()) {
    check_fitting(options.resize, target_);
    const std::string why = options.on_gpu ? why_not_on_gpu(options) : "";
    if (!why.empty()) throw ValueError(cat("the GPU cannot prepare the images: ", why));
    if (views() > 1) {
      many_ = resize_.back();
      resize_.pop_back();
    }
    if (!options.augment.any()) return;
    resize_ = options.resize.middle_only().steps();
    check_size(options.augment, target_.height, target_.width);
    const std::vector<Transform>& steps = options.augment.steps();
    if (std::none_of(steps.begin(), steps.end(), sets_size)) augment_ = resize_;
    augment_.insert(augment_.end(), steps.begin(), steps.end());
  }
  std::int64_t size() const override { return images_->size(); }
  std::shared_ptr<const ImageFiles> images() const override { return images_; }
  std::string sample_name(std::int64_t index) const override { return images_->name(index); }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    fill(indices, resize_, 0, 0, inputs, targets);
  }
  void get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch,
                     void* inputs, void* targets) const override {
    fill(indices, augment_.empty() ? resize_ : augment_, seed, epoch, inputs, targets);
  }
  Notes notes() const override {
    Notes out = images_->notes();
    const Notes lost = losses_.notes();
    out.insert(out.end(), lost.begin(), lost.end());
    return out;
  }
  std::vector<std::string> broken() const override {
    const std::lock_guard lock(mutex_);
    return {broken_.begin(), broken_.end()};
  }
  bool any_broken() const override {
    const std::lock_guard lock(mutex_);
    return !broken_.empty();
  }
  bool replaces_broken() const override { return !options_.broken_left_out; }
  bool is_broken(std::int64_t index) const override {
    const std::lock_guard lock(mutex_);
    return !broken_.empty() && broken_.contains(images_->name(index));
  }
  bool for_device() const override { return options_.on_gpu; }
  bool device_decodes() const override { return options_.decode_on_gpu; }
  ImageJob job(std::int64_t index, std::uint64_t seed, std::int64_t epoch, bool decoded,
               std::int64_t& label) const override {
    const std::vector<Transform>& steps = augment_.empty() ? resize_ : augment_;
    ImageJob out;
    const auto whole = one_whole(index, [&](std::int64_t number) {
      ImageDraws draws(seed, epoch, number);
      const std::string name = images_->name(number);
      out = {.jpeg = images_->bytes(number)};
      const auto file =
          decoded || !options_.decode_on_gpu ? std::nullopt : io::plain_jpeg(out.jpeg);
      if (file) {
        const ImageSize size{file->width, file->height};
        out.record = {size.width, size.height, {}};
        out.across = file->across, out.down = file->down;
        if (draw_for_gpu(steps, size, target_, draws, out.record.changes)) return;
      }
      draws = ImageDraws(seed, epoch, number);
      FirstDecoded first = decoded_first(out.jpeg, name, steps, target_, draws);
      note_losses(number, first.losses, name);
      Image image = std::move(first.image);
      out = {.record = {image.width, image.height, {}}};
      if (!draw_for_gpu(steps, first.done, {image.width, image.height}, target_, draws,
                        out.record.changes)) {
        // The image is scaled down by more than the GPU kernel supports, so the CPU transforms it.
        image = changed(std::move(image), steps, first.done, target_, draws);
        out.record = {target_.width, target_.height, {}};
        check_target(image, target_, name);
        draw_for_gpu({}, 0, {image.width, image.height}, target_, draws, out.record.changes);
      }
      out.pixels = std::move(image.pixels);
    });
    label = whole ? images_->label(*whole) : kIgnoredTarget;
    if (!whole) {
      out = {.pixels = std::vector<std::uint8_t>(at(shape_.numel())),
             .record = {target_.width, target_.height, {}}};
      ImageDraws draws(seed, epoch, index);
      draw_for_gpu({}, 0, {target_.width, target_.height}, target_, draws, out.record.changes);
    }
    return out;
  }

 private:
  void capabilities(Capabilities& offered) const override {
    offered.add<Provenance>(this);
    offered.add<ImageSamples>(this);
    offered.add<ImageJobs>(this);
    offered.add<StandIns>(this);
    if (!augment_.empty() || !std::all_of(resize_.begin(), resize_.end(), is_fixed))
      offered.add<AugmentedSamples>(this);
  }
  void fill(std::span<const std::int64_t> indices, const std::vector<Transform>& steps,
            std::uint64_t seed, std::int64_t epoch, void* inputs, void* targets) const {
    auto* input = static_cast<std::uint8_t*>(inputs);
    auto* target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      const auto whole = one_whole(index, [&](std::int64_t number) {
        ImageDraws draws(seed, epoch, number);
        const std::string name = images_->name(number);
        FirstDecoded first = decoded_first(images_->bytes(number), name, steps, target_, draws);
        note_losses(number, first.losses, name);
        const Image image = changed(std::move(first.image), steps, first.done, target_, draws);
        if (!many_) return to_planes(image, target_, name, input);
        std::uint8_t* view = input;
        for (const Image& crop : crops_of(image, *many_, target_, name)) {
          to_planes(crop, target_, name, view);
          view += options_.input.numel();
        }
      });
      *target++ = whole ? images_->label(*whole) : kIgnoredTarget;
      if (!whole) std::fill_n(input, shape_.numel(), std::uint8_t{0});
      input += shape_.numel();
    }
  }
  void note_losses(std::int64_t number, unsigned losses, const std::string& name) const {
    if (losses == 0) return;
    if (options_.strict)
      for (const unsigned loss : io::kImageLosses)
        if ((losses & loss) != 0) refuse_notes({{io::loss_text(loss, 1), 1, name}});
    losses_.add(number, losses, name);
  }
  // The number of the image that could be used: this one, or the next one if it may be replaced.
  template <class Use>
  std::optional<std::int64_t> one_whole(std::int64_t index, const Use& use) const {
    for (std::int64_t tries = 0; tries == 0 || !options_.broken_left_out; ++tries) {
      const std::int64_t number = (index + tries) % size();
      try {
        use(number);
        return number;
      } catch (const FormatError&) {
        note(number, tries);
      } catch (const NotSupported&) {
        note(number, tries);
      } catch (const IoError&) {
        note(number, tries);
      }
    }
    return std::nullopt;
  }
  // Within a catch clause: rethrows if broken images are errors, or if no other image can replace
  // this one.
  void note(std::int64_t number, std::int64_t tries) const {
    constexpr std::int64_t kMostInARow = 1000;
    const bool last = !options_.broken_left_out && tries + 1 >= std::min(size(), kMostInARow);
    if (options_.broken_is_error || options_.strict || last) throw;
    const std::lock_guard lock(mutex_);
    broken_.insert(images_->name(number));
  }

  std::shared_ptr<const ImageFiles> images_;
  ImageOptions options_;
  ImageTarget target_;
  Shape shape_;
  std::vector<Transform> resize_, augment_;
  std::optional<Transform> many_;  // the last step of the resize list, if it makes several images
  mutable LossLog losses_;
  mutable std::mutex mutex_;
  mutable std::set<std::string> broken_;  // guarded by mutex_
};

// Images of one size, augmented for training.
class AugmentedSet final : public DerivedDataset {
 public:
  AugmentedSet(const std::shared_ptr<const Dataset>& set, const Transforms& augment,
               const std::vector<double>& mean)
      : DerivedDataset(set->info(), {set}),
        target_(target_of({.input = set->input_shape(), .mean = mean})),
        steps_(augment.steps()) {
    if (set->input_dtype() != DType::UInt8)
      throw ValueError(cat(set->describe(), " has samples of ", set->input_dtype(), " ",
                           set->input_shape(), ": only uint8 images can be augmented"));
    check_size(augment, target_.height, target_.width);
  }

 private:
  bool changes_samples() const override { return true; }
  bool augments() const override { return true; }
  void write(std::span<const std::int64_t> indices, const Version& version, void* inputs,
             void* targets) const override {
    read(indices, version, inputs, targets);
    if (!version.augmented) return;
    auto* planes = static_cast<std::uint8_t*>(inputs);
    const std::size_t plane = at(target_.width) * at(target_.height),
                      channels = at(target_.channels);
    for (const std::int64_t index : indices) {
      Image image{target_.width, target_.height, target_.channels,
                  std::vector<std::uint8_t>(plane * channels)};
      for (std::size_t i = 0; i < image.pixels.size(); ++i)
        image.pixels[i] = planes[i % channels * plane + i / channels];
      ImageDraws draws(version.seed, version.epoch, index);
      to_planes(changed(std::move(image), steps_, 0, target_, draws), target_, describe(), planes);
      planes += plane * channels;
    }
  }

  ImageTarget target_;
  std::vector<Transform> steps_;
};

}  // namespace

std::string why_not_on_gpu(const ImageOptions& options) {
  if (options.input.rank() != 3 || options.input[0] != 3) return "the images are not RGB";
  for (const Transforms* steps : {&options.resize, &options.augment})
    for (const Transform& step : steps->steps())
      if (step.function)
        return cat("transform '", step.name,
                   "' is a function of the program's own, which runs on "
                   "the CPU");
  return !options.augment.any() && options.resize.crops() > 1
             ? "several crops per image are for evaluation only"
             : "";
}

Image Transforms::apply(const Image& image, int height, int width, std::uint64_t seed,
                        std::int64_t epoch, std::int64_t number,
                        const std::vector<double>& mean) const {
  check_single(steps_);
  const ImageTarget target = target_of({.input = {image.channels, height, width}, .mean = mean});
  ImageDraws draws(seed, epoch, number);
  return changed(image, steps_, 0, target, draws);
}

std::shared_ptr<Dataset> image_dataset(std::shared_ptr<const ImageFiles> images,
                                       const ImageOptions& options) {
  if (images == nullptr) throw ValueError("image_dataset: there are no images");
  return std::make_shared<ImageSet>(std::move(images), options);
}

std::shared_ptr<Dataset> augmented(std::shared_ptr<const Dataset> set, const Transforms& augment,
                                   const std::vector<double>& mean) {
  if (set == nullptr) throw ValueError("augmented: there is no dataset");
  return std::make_shared<AugmentedSet>(set, augment, mean);
}

Tensor preprocess_image(const Image& image, const ImageOptions& options) {
  const ImageTarget target = target_of(options);
  check_fitting(options.resize, target);
  if (image.channels != target.channels)
    throw ShapeError(cat("preprocess_image: the image has ", image.channels,
                         " channels, the network ", target.channels, ": load it with as many"));
  ImageDraws draws(0, 0, 0);
  std::vector<Transform> steps = options.resize.steps();
  const int crops = options.resize.crops();
  if (crops > 1) steps.pop_back();
  const std::string name = "the image";
  const Image fitted = changed(image, steps, 0, target, draws);
  const std::vector<Image> views =
      crops == 1 ? std::vector{fitted}
                 : crops_of(fitted, options.resize.steps().back(), target, name);
  const std::size_t each = at(options.input.numel());
  std::vector<std::uint8_t> planes(each * views.size());
  for (std::size_t k = 0; k < views.size(); ++k)
    to_planes(views[k], target, name, planes.data() + each * k);
  Shape shape{1};
  if (crops > 1) shape.push_back(crops);
  for (const std::int64_t size : options.input) shape.push_back(size);
  return Tensor::from_data(planes.data(), shape, DType::UInt8);
}

}  // namespace tenon::data
