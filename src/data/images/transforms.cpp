// The table of transforms: names, parameters and their ranges; parsing and printing of lists.
#include "data/images/transforms.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "base/system/registrations.h"
#include "scalar/image_transform.h"

namespace tenon::data {
namespace {

struct NumberRange {
  const char* name;
  double usual, low, high;
};
struct TransformKind {
  const char* name;
  const char* about;
  std::vector<NumberRange> numbers;
};

constexpr double kSame = -1;  // default of a jitter parameter: equal to the first one

const std::vector<TransformKind>& kinds() {
  // Never destroyed: threads of a loader may use them until the program ends.
  static const auto& all = *new const std::vector<TransformKind>{
      {"resize",
       "scale the short side to SIDE (0: 8/7 of the network's input size)",
       {{"SIDE", 0, 0, 8192}}},
      {"center_crop",
       "crop the centre to SIDE x SIDE (0: the network's input size)",
       {{"SIDE", 0, 0, 8192}}},
      {"five_crop",
       "five crops for evaluation: the corners and the centre, SIDE x SIDE (0: the network's input "
       "size)",
       {{"SIDE", 0, 0, 8192}}},
      {"ten_crop",
       "ten crops for evaluation: five_crop of the image and of its mirror image (flipped "
       "vertically if VERTICAL is 1)",
       {{"SIDE", 0, 0, 8192}, {"VERTICAL", 0, 0, 1}}},
      {"crop",
       "random crop of the network's input size after padding with PADDING black pixels",
       {{"PADDING", 0, 0, 4096}}},
      {"resized_crop",
       "random crop of LOW to HIGH of the area with aspect ratio LOW_RATIO to HIGH_RATIO, scaled "
       "to SIDE (0: the network's input size)",
       {{"SIDE", 0, 0, 8192},
        {"LOW", 0.08, 1e-4, 1},
        {"HIGH", 1, 1e-4, 1},
        {"LOW_RATIO", 3.0 / 4, 0.01, 100},
        {"HIGH_RATIO", 4.0 / 3, 0.01, 100}}},
      {"flip", "flip horizontally with probability CHANCE", {{"CHANCE", 0.5, 0, 1}}},
      {"vflip", "flip vertically with probability CHANCE", {{"CHANCE", 0.5, 0, 1}}},
      {"rotate",
       "rotate by a random angle of up to DEGREES in either direction",
       {{"DEGREES", 15, 0, 180}}},
      {"affine",
       "random affine map: rotation of up to DEGREES, shift of up to SHIFT times the sides, scale "
       "LOW to HIGH, shear of up to SHEAR degrees",
       {{"DEGREES", 10, 0, 180},
        {"SHIFT", 0, 0, 1},
        {"LOW", 1, 0.01, 100},
        {"HIGH", 1, 0.01, 100},
        {"SHEAR", 0, 0, 89}}},
      {"perspective",
       "with probability CHANCE, perspective map that moves the corners inwards by up to "
       "DISTORTION of half the sides",
       {{"DISTORTION", 0.5, 0, 1}, {"CHANCE", 0.5, 0, 1}}},
      {"jitter",
       "colour jitter: brightness, contrast and saturation by a factor from 1 - X to 1 + X, hue by "
       "up to H (of 1)",
       {{"BRIGHTNESS", 0.4, 0, 10},
        {"CONTRAST", kSame, 0, 10},
        {"SATURATION", kSame, 0, 10},
        {"H", 0, 0, 0.5}}},
      {"pca",
       "add a random colour along ImageNet's principal components (AlexNet, 2012)",
       {{"DEVIATION", 0.1, 0, 10}}},
      {"blur",
       "Gaussian blur of KERNEL pixels with standard deviation LOW to HIGH",
       {{"KERNEL", 5, 1, kMostBlur}, {"LOW", 0.1, 1e-3, 100}, {"HIGH", 2, 1e-3, 100}}},
      {"grey", "convert to grey with probability CHANCE", {{"CHANCE", 0.1, 0, 1}}},
      {"erase",
       "random erasing: with probability CHANCE, fill a rectangle of LOW to HIGH of the area with "
       "the mean",
       {{"CHANCE", 0.5, 0, 1}, {"LOW", 0.02, 0, 1}, {"HIGH", 0.33, 0, 1}}},
      {"cutout", "fill a random square of SIDE pixels with the mean", {{"SIDE", 16, 1, 4096}}},
      {"randaugment",
       "RandAugment (2019): OPERATIONS random transforms out of 14, each with strength MAGNITUDE "
       "of "
       "30",
       {{"OPERATIONS", 2, 1, 14}, {"MAGNITUDE", 9, 0, 30}}},
      {"mixup",
       "blend images of a batch and their labels with weights from Beta(ALPHA, ALPHA)",
       {{"ALPHA", 1, 0.01, 100}}},
      {"cutmix",
       "paste a box of another image of the batch and mix the labels by area, drawn from "
       "Beta(ALPHA, ALPHA)",
       {{"ALPHA", 1, 0.01, 100}}},
  };
  return all;
}

// Transforms of programs that use the library. Entries are never removed, so pointers stay valid.
struct Registry {
  std::mutex mutex;
  std::map<std::string, RegisteredTransform> transforms;
};
Registry& registry_of_program() {
  static auto& registry = *new Registry;  // never destroyed, as kinds()
  return registry;
}

const TransformKind* find_kind(const std::string& name) {
  for (const TransformKind& kind : kinds())
    if (name == kind.name) return &kind;
  return nullptr;
}

[[noreturn]] void refuse_unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const TransformKind& kind : kinds()) names.emplace_back(kind.name);
  for (const RegisteredTransform* own : registered_transforms()) names.push_back(own->name);
  std::string all;
  for (const std::string& known : names) all += cat(all.empty() ? "" : ", ", known);
  const std::string near = nearest(name, names.data(), static_cast<int>(names.size()));
  throw ValueError(cat("there is no image transform '", name, "'",
                       near.empty() ? "." : cat("; did you mean '", near, "'?"), " There are ",
                       all));
}

void check_values(const Transform& step, std::span<const NumberRange> ranges) {
  if (step.values.size() > ranges.size())
    throw ValueError(cat("'", step.name, "' has ", step.values.size(),
                         " numbers; it takes at most ", ranges.size()));
  for (std::size_t k = 0; k < step.values.size(); ++k)
    if (!(step.values[k] >= ranges[k].low && step.values[k] <= ranges[k].high))
      throw ValueError(cat("'", step.name, "': ", ranges[k].name, " is ", step.values[k],
                           ", must be from ", ranges[k].low, " to ", ranges[k].high));
}

// The function of a registered transform, with the step's parameters.
ImageFunction made_function(const Transform& step, const RegisteredTransform& own) {
  std::vector<NumberRange> ranges;
  for (const TransformParameter& p : own.parameters)
    ranges.push_back({p.name.c_str(), p.usual, p.low, p.high});
  check_values(step, ranges);
  std::vector<double> values = step.values;
  for (std::size_t k = values.size(); k < ranges.size(); ++k) values.push_back(ranges[k].usual);
  ImageFunction function = own.make(values);
  if (!function) throw ValueError(cat("'", step.name, "': its function is empty"));
  return function;
}

// Checks a step, and finds the function of a registered transform.
void settle_step(Transform& step) {
  const TransformKind* kind = find_kind(step.name);
  if (step.function) {
    if (kind != nullptr)
      throw ValueError(cat("'", step.name,
                           "' is one of Tenon's image transforms: give the "
                           "function another name"));
    return;
  }
  if (kind == nullptr) {
    const RegisteredTransform* own = find_registered(step.name);
    if (own == nullptr) refuse_unknown(step.name);
    step.function = made_function(step, *own);
    return;
  }
  check_values(step, kind->numbers);
  const auto ascending = [&](std::size_t low) {
    if (number_of(step, low) > number_of(step, low + 1))
      throw ValueError(cat("'", step.name, "': ", kind->numbers[low].name, " is ",
                           number_of(step, low), ", more than ", kind->numbers[low + 1].name, ", ",
                           number_of(step, low + 1)));
  };
  if (step.name == "resized_crop") ascending(1), ascending(3);
  if (step.name == "affine") ascending(2);
  if (step.name == "blur" || step.name == "erase") ascending(1);
  if (step.name == "ten_crop" && std::fmod(number_of(step, 1), 1) != 0)
    throw ValueError(cat("'ten_crop': VERTICAL is ", number_of(step, 1), ", must be 0 or 1"));
  if (step.name == "blur" && std::fmod(number_of(step, 0), 2) != 1)
    throw ValueError(cat("'blur': KERNEL is ", number_of(step, 0), ", must be odd"));
}

}  // namespace

double number_of(const Transform& step, std::size_t k) {
  if (k < step.values.size()) return step.values[k];
  const double usual = find_kind(step.name)->numbers[k].usual;
  return usual == kSame ? number_of(step, 0) : usual;
}

bool mixes_batches(const Transform& step) { return step.name == "mixup" || step.name == "cutmix"; }

bool makes_many(const Transform& step) {
  return step.name == "five_crop" || step.name == "ten_crop";
}

bool sets_size(const Transform& step) {
  return step.name == "center_crop" || step.name == "crop" || step.name == "resized_crop";
}

void check_single(const std::vector<Transform>& steps) {
  for (const Transform& step : steps) {
    if (makes_many(step))
      throw ValueError(cat("'", step.name,
                           "' makes several images from one, which only evaluation can use: put it "
                           "last in ImageOptions::resize (setting 'preprocess')"));
    if (mixes_batches(step))
      throw ValueError(cat("'", step.name,
                           "' mixes the images of a batch, so it cannot be applied to a single "
                           "image: set TrainOptions::mixing"));
  }
}

void check_size(const Transforms& steps, std::int64_t height, std::int64_t width) {
  check_single(steps.steps());
  for (auto step = steps.steps().rbegin(); step != steps.steps().rend(); ++step) {
    const double side = sets_size(*step) && step->name != "crop" ? number_of(*step, 0) : 0;
    if (step->name == "resize" ||
        (side > 0 && !(side == static_cast<double>(height) && side == static_cast<double>(width))))
      throw ValueError(cat("after '", steps.text(), "' images are not of ", height, " x ", width,
                           ", the network's input size: end with a crop of that size (a crop "
                           "without a number has it)"));
    if (sets_size(*step)) return;
  }
}

ImageDraws::ImageDraws(std::uint64_t seed, std::int64_t epoch, std::int64_t number)
    : own_seed_(seed),
      seed_(seed ^ 0x7069637475726573),
      epoch_(static_cast<std::uint64_t>(epoch)),
      number_(static_cast<std::uint64_t>(number)) {}

void ImageDraws::begin_step(std::uint64_t step) {
  step_ = step;
  block_ = 0;
  used_ = 4;
}

SampleRandom ImageDraws::for_function(std::uint64_t step) const {
  constexpr std::uint64_t kStream = 0x696d;  // 64 streams of lists, apart from those of datasets
  return {own_seed_, static_cast<std::int64_t>(epoch_), static_cast<std::int64_t>(number_),
          kStream + step};
}

std::uint32_t ImageDraws::word() {
  if (used_ == 4) {
    words_ = philox(seed_, number_, epoch_ | step_ << 56 | block_++ << 40);
    used_ = 0;
  }
  return words_.v[used_++];
}

double ImageDraws::uniform() { return static_cast<double>(word()) * 0x1p-32; }

int ImageDraws::below(int count) {
  return static_cast<int>(std::uint64_t{word()} * static_cast<std::uint64_t>(count) >> 32);
}

double ImageDraws::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

FirstDecoded decoded_first(std::string_view bytes, const std::string& name,
                           const std::vector<Transform>& steps, const ImageTarget& target,
                           ImageDraws& draws) {
  FirstSteps first;
  const auto choose = [&](int width, int height) {
    first = first_steps(steps, width, height, target, draws);
    return first.part;
  };
  io::DecodedPart part =
      io::parse_image_part(bytes, name, {target.channels, target.background}, choose);
  if (first.done == 1) part.image = resized(part.image, part.box, first.width, first.height);
  if (first.done == 2) {
    const ImageBox &outer = first.part.box, &inner = first.box;
    const double by_x = (part.box.right - part.box.left) / (outer.right - outer.left),
                 by_y = (part.box.bottom - part.box.top) / (outer.bottom - outer.top);
    const ImageBox box{part.box.left + (inner.left - outer.left) * by_x,
                       part.box.top + (inner.top - outer.top) * by_y,
                       part.box.left + (inner.right - outer.left) * by_x,
                       part.box.top + (inner.bottom - outer.top) * by_y};
    part.image = resized(part.image, box, part.box, first.width, first.height);
  }
  return {std::move(part.image), first.done, part.losses};
}

Transforms::Transforms(std::vector<Transform> steps) : steps_(std::move(steps)) {
  if (steps_.size() > 64) throw ValueError("more than 64 image transforms in one list");
  for (Transform& step : steps_) settle_step(step);
}

Transforms Transforms::parse(const std::string& text) {
  if (text.empty() || text == "none") return {};
  std::vector<Transform> steps;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = item.find('=');
    Transform step{item.substr(0, equals), {}};
    for (std::size_t from = equals; from != std::string::npos;) {
      const std::size_t stop = item.find(':', ++from);
      const std::string word = item.substr(from, stop == std::string::npos ? stop : stop - from);
      double value = 0;
      const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (error != std::errc() || last != word.data() + word.size())
        throw ValueError(
            cat("'", item, "': '", word, "' is not a number; for example jitter=0.4:0.4:0.4:0.1"));
      step.values.push_back(value);
      from = stop;
    }
    steps.push_back(std::move(step));
  }
  return Transforms(std::move(steps));
}

std::string Transforms::text() const {
  std::string out;
  for (const Transform& step : steps_) {
    out += cat(out.empty() ? "" : ",", step.name);
    for (std::size_t k = 0; k < step.values.size(); ++k)
      out += cat(k == 0 ? "=" : ":", step.values[k]);
  }
  return out.empty() ? "none" : out;
}

bool Transforms::any() const noexcept { return !steps_.empty(); }

bool Transforms::has(const std::string& name) const noexcept {
  return std::any_of(steps_.begin(), steps_.end(),
                     [&](const Transform& step) { return step.name == name; });
}

Mixing Transforms::mixing() const {
  Mixing out;
  for (const Transform& step : steps_)
    if (mixes_batches(step)) (step.name == "mixup" ? out.mixup : out.cutmix) = number_of(step, 0);
  return out;
}

int Transforms::crops() const noexcept {
  if (steps_.empty() || !makes_many(steps_.back())) return 1;
  return steps_.back().name == "ten_crop" ? 10 : 5;
}

Transforms Transforms::middle_only() const {
  Transforms out = *this;
  for (Transform& step : out.steps_)
    if (makes_many(step)) step = transforms::center_crop(number_of(step, 0));
  return out;
}

Transforms Transforms::without_mixing() const {
  Transforms out = *this;
  std::erase_if(out.steps_, mixes_batches);
  return out;
}

std::vector<Transforms::Known> Transforms::known() {
  std::vector<Known> out;
  const auto add = [&out](std::string usage, const auto& numbers, std::string about) {
    std::string defaults;
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      usage += cat(k == 0 ? "[=" : ":", numbers[k].name);
      const double usual = numbers[k].usual < numbers[k].low ? numbers[0].usual : numbers[k].usual;
      defaults += cat(k == 0 ? "" : ":", static_cast<float>(usual));  // 4 / 3 in few digits
    }
    out.push_back({numbers.empty() ? usage : usage + "]", std::move(about), std::move(defaults)});
  };
  for (const TransformKind& kind : kinds()) add(kind.name, kind.numbers, kind.about);
  for (const RegisteredTransform* own : registered_transforms())
    add(own->name, own->parameters, own->about);
  return out;
}

const RegisteredTransform* find_registered(const std::string& name) {
  Registry& registry = registry_of_program();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.transforms.find(name);
  return found == registry.transforms.end() ? nullptr : &found->second;
}

std::vector<const RegisteredTransform*> registered_transforms() {
  Registry& registry = registry_of_program();
  const std::lock_guard lock(registry.mutex);
  std::vector<const RegisteredTransform*> out;
  for (const auto& [name, transform] : registry.transforms) out.push_back(&transform);
  return out;
}

void register_transform(RegisteredTransform transform) {
  const std::string name = transform.name;
  const auto is_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name.empty() || !(name[0] >= 'a' && name[0] <= 'z') ||
      !std::all_of(name.begin(), name.end(), is_of_name))
    throw ValueError(cat("register_transform: the name is '", name,
                         "', must be lower-case letters, digits and '_', beginning with a letter"));
  if (!transform.make) throw ValueError(cat("register_transform: '", name, "' has no make()"));
  for (const TransformParameter& p : transform.parameters)
    if (!(p.usual >= p.low && p.usual <= p.high))
      throw ValueError(cat("register_transform: '", name, "': the default of ", p.name, " is ",
                           p.usual, ", must be from ", p.low, " to ", p.high));
  Registry& registry = registry_of_program();
  const std::lock_guard lock(registry.mutex);
  const std::string what = cat("transform '", name, "'");
  if (find_kind(name) != nullptr || name == "none" ||
      !registry.transforms.emplace(name, std::move(transform)).second)
    throw ValueError(cat("register_transform: there is already a ", what, owner_of(what),
                         ": choose another name"));
  note_registration(what, [name] {
    const std::lock_guard undoing(registry_of_program().mutex);
    registry_of_program().transforms.erase(name);
  });
}

Transforms Transforms::to_network() {
  return std::vector{transforms::resize(), transforms::center_crop()};
}

namespace transforms {

Transform resize(double side) { return {"resize", {side}}; }
Transform center_crop(double side) { return {"center_crop", {side}}; }
Transform five_crop(double side) { return {"five_crop", {side}}; }
Transform ten_crop(double side, bool vertical) {
  return {"ten_crop", {side, vertical ? 1.0 : 0.0}};
}
Transform random_crop(double padding) { return {"crop", {padding}}; }
Transform random_resized_crop(double side, double low, double high, double low_ratio,
                              double high_ratio) {
  return {"resized_crop", {side, low, high, low_ratio, high_ratio}};
}
Transform horizontal_flip(double chance) { return {"flip", {chance}}; }
Transform vertical_flip(double chance) { return {"vflip", {chance}}; }
Transform rotation(double degrees) { return {"rotate", {degrees}}; }
Transform affine(double degrees, double translate, double low, double high, double shear) {
  return {"affine", {degrees, translate, low, high, shear}};
}
Transform perspective(double distortion, double chance) {
  return {"perspective", {distortion, chance}};
}
Transform color_jitter(double brightness, double contrast, double saturation, double hue) {
  return {"jitter", {brightness, contrast, saturation, hue}};
}
Transform pca_colour(double deviation) { return {"pca", {deviation}}; }
Transform gaussian_blur(double kernel, double low, double high) {
  return {"blur", {kernel, low, high}};
}
Transform random_erasing(double chance, double low, double high) {
  return {"erase", {chance, low, high}};
}
Transform rand_augment(double operations, double magnitude) {
  return {"randaugment", {operations, magnitude}};
}
Transform mixup(double alpha) { return {"mixup", {alpha}}; }
Transform cutmix(double alpha) { return {"cutmix", {alpha}}; }
Transform function(std::string name, ImageFunction change) {
  if (!change) throw ValueError(cat("transforms::function: '", name, "' has no function"));
  return {std::move(name), {}, std::move(change)};
}

}  // namespace transforms

}  // namespace tenon::data
