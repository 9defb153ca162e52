// Draws the random parameters of each transform.
#include "data/images/image_transforms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <tenon/error.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"

namespace tenon::data {
namespace {

ImageTransform change_of(ImageTransform::Kind kind, double factor = 1) {
  ImageTransform out;
  out.kind = kind;
  out.factor = static_cast<float>(factor);
  return out;
}

template <std::size_t N>
ImageTransform change_by(ImageTransform::Kind kind, ImageSize to,
                         const std::array<double, N>& numbers) {
  ImageTransform out = change_of(kind);
  out.to_width = to.width, out.to_height = to.height;
  std::copy(numbers.begin(), numbers.end(), out.numbers);
  return out;
}

// ---- Crops -------------------------------------------------------------------------------------

// torchvision's RandomResizedCrop: ten tries, then the middle.
ImageBox drawn_box(const Transform& step, ImageSize size, ImageDraws& draws) {
  const double area = double{1} * size.width * size.height;
  const double low = std::log(number_of(step, 3)), high = std::log(number_of(step, 4));
  const auto box = [](int left, int top, int w, int h) {
    return ImageBox{static_cast<double>(left), static_cast<double>(top),
                    static_cast<double>(left + w), static_cast<double>(top + h)};
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * draws.uniform(number_of(step, 1), number_of(step, 2)),
                 ratio = std::exp(draws.uniform(low, high));
    const int w = static_cast<int>(std::lround(std::sqrt(target * ratio))),
              h = static_cast<int>(std::lround(std::sqrt(target / ratio)));
    if (w < 1 || h < 1 || w > size.width || h > size.height) continue;
    const int top = draws.below(size.height - h + 1), left = draws.below(size.width - w + 1);
    return box(left, top, w, h);
  }
  const double ratio = static_cast<double>(size.width) / size.height;
  int w = size.width, h = size.height;
  if (ratio < number_of(step, 3)) h = static_cast<int>(std::lround(w / number_of(step, 3)));
  if (ratio > number_of(step, 4)) w = static_cast<int>(std::lround(h * number_of(step, 4)));
  w = std::clamp(w, 1, size.width), h = std::clamp(h, 1, size.height);
  return box((size.width - w) / 2, (size.height - h) / 2, w, h);
}

// The size of an image after "resize".
ImageSize resized_size(const Transform& step, ImageSize from, const ImageTarget& target) {
  const auto scaled = [](double side) { return std::max(1, static_cast<int>(side + 1e-9)); };
  double side = number_of(step, 0);
  if (side == 0) {
    const double wide = std::round(target.width * 8 / 7.0),
                 high = std::round(target.height * 8 / 7.0);
    side = std::max(wide / from.width, high / from.height) * std::min(from.width, from.height);
    side = std::round(side);
  }
  if (from.width <= from.height) return {scaled(side), scaled(side * from.height / from.width)};
  return {scaled(side * from.width / from.height), scaled(side)};
}

ImageSize size_or_target(double side, const ImageTarget& target) {
  return side > 0 ? ImageSize{static_cast<int>(side), static_cast<int>(side)}
                  : ImageSize{target.width, target.height};
}

// The offset of a centred crop, as in torchvision's center_crop: halves are rounded to even. If the
// image is smaller than the crop, an odd black pixel is added after the image.
int middle(int size, int part) {
  return size < part ? -((part - size) / 2) : static_cast<int>(std::nearbyint((size - part) / 2.0));
}

ImageBox whole_box(ImageSize size) {
  return {0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
}

ImageTransform scaling(const ImageBox& box, const SeenPixels& seen, ImageSize to) {
  ImageTransform out =
      change_by<4>(ImageTransform::kScale, to, {box.left, box.top, box.right, box.bottom});
  out.left = seen.left, out.top = seen.top;
  out.width = seen.right - seen.left, out.height = seen.bottom - seen.top;
  return out;
}

ImageTransform cropping(int left, int top, ImageSize to) {
  ImageTransform out = change_by<0>(ImageTransform::kCrop, to, {});
  out.left = left, out.top = top;
  return out;
}

// The steps that set a size; false for others.
bool draw_cut(const Transform& step, ImageSize& size, const ImageTarget& target, ImageDraws& draws,
              std::vector<ImageTransform>& out) {
  const std::string& name = step.name;
  if (name == "resize" || name == "resized_crop") {
    const bool whole = name == "resize";
    const ImageBox box = whole ? whole_box(size) : drawn_box(step, size, draws);
    const ImageSize to =
        whole ? resized_size(step, size, target) : size_or_target(number_of(step, 0), target);
    out.push_back(scaling(box, seen_pixels(box, size.width, size.height), to));
  } else if (name == "center_crop") {
    const ImageSize to = size_or_target(number_of(step, 0), target);
    out.push_back(cropping(middle(size.width, to.width), middle(size.height, to.height), to));
  } else if (name == "crop") {
    const int padding = static_cast<int>(number_of(step, 0));
    const auto place = [&](int have, int want) {
      const int room = have + 2 * padding - want;
      return room > 0 ? draws.below(room + 1) - padding : middle(have, want);
    };
    const int top = place(size.height, target.height), left = place(size.width, target.width);
    out.push_back(cropping(left, top, {target.width, target.height}));
  } else {
    return false;
  }
  size = {out.back().to_width, out.back().to_height};
  return true;
}

// ---- Transforms after the crop -----------------------------------------------------------------

ImageTransform erasing(int left, int top, int width, int height, const ImageTarget& target) {
  ImageTransform out = change_of(ImageTransform::kErase);
  out.left = left, out.top = top, out.width = width, out.height = height;
  std::copy(target.mean.begin(), target.mean.end(), out.colour);
  return out;
}

void draw_jitter(const Transform& step, ImageDraws& draws, std::vector<ImageTransform>& out) {
  const auto factor = [&](std::size_t k) {
    const double by = number_of(step, k);
    return draws.uniform(std::max(0.0, 1 - by), 1 + by);
  };
  const double brightness = factor(0), contrast = factor(1), saturation = factor(2);
  ImageTransform changes[] = {change_of(ImageTransform::kBrightness, brightness),
                              change_of(ImageTransform::kContrast, contrast),
                              change_of(ImageTransform::kSaturation, saturation),
                              change_of(ImageTransform::kHue)};
  changes[3].amount = hue_steps(draws.uniform(-number_of(step, 3), number_of(step, 3)));
  std::array<int, 4> order{0, 1, 2, 3};
  for (int i = 3; i > 0; --i) std::swap(order[at(i)], order[at(draws.below(i + 1))]);
  for (const int what : order)
    if (number_of(step, at(what)) > 0) out.push_back(changes[what]);
}

// torchvision's RandomErasing: ten tries, then nothing.
void draw_hole(const Transform& step, ImageSize size, const ImageTarget& target, ImageDraws& draws,
               std::vector<ImageTransform>& out) {
  const double area = double{1} * size.width * size.height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = area * draws.uniform(number_of(step, 1), number_of(step, 2)),
                 ratio = std::exp(draws.uniform(std::log(0.3), std::log(3.3)));
    const int h = static_cast<int>(std::lround(std::sqrt(share * ratio))),
              w = static_cast<int>(std::lround(std::sqrt(share / ratio)));
    if (h >= size.height || w >= size.width) continue;
    const int top = draws.below(size.height - h + 1), left = draws.below(size.width - w + 1);
    out.push_back(erasing(left, top, w, h, target));
    return;
  }
}

ImageTransform moving(const Transform& step, ImageSize size, ImageDraws& draws) {
  const double turn = draws.uniform(-number_of(step, 0), number_of(step, 0)),
               most_x = number_of(step, 1) * size.width, most_y = number_of(step, 1) * size.height,
               x = std::round(draws.uniform(-most_x, most_x)),
               y = std::round(draws.uniform(-most_y, most_y)),
               scale = draws.uniform(number_of(step, 2), number_of(step, 3)),
               shear = draws.uniform(-number_of(step, 4), number_of(step, 4));
  return change_by(ImageTransform::kAffine, size, affine_matrix(size, turn, x, y, scale, shear, 0));
}

ImageTransform with_perspective(const Transform& step, ImageSize size, ImageDraws& draws) {
  const double distortion = number_of(step, 0);
  const int w = size.width, h = size.height;
  const int half_w = w / 2, half_h = h / 2;
  const int dx = static_cast<int>(distortion * half_w), dy = static_cast<int>(distortion * half_h);
  const auto corner = [&](int x, int y) {
    return Corner{static_cast<double>(x), static_cast<double>(y)};
  };
  std::array<Corner, 4> to;
  for (std::size_t k = 0; k < 4; ++k) {
    const int x = draws.below(dx + 1), y = draws.below(dy + 1);
    to[k] = corner(k == 1 || k == 2 ? w - 1 - x : x, k >= 2 ? h - 1 - y : y);
  }
  return change_by(
      ImageTransform::kPerspective, size,
      perspective_map({corner(0, 0), corner(w - 1, 0), corner(w - 1, h - 1), corner(0, h - 1)},
                      to));
}

// The 14 operations of RandAugment as in torchvision; `sign` is the random sign of a signed one.
void draw_rand_augment(int which, double share, double sign, ImageSize size,
                       std::vector<ImageTransform>& out) {
  const double signed_share = share * sign;
  const auto affine = [&](const std::array<double, 6>& matrix) {
    out.push_back(change_by(ImageTransform::kAffine, size, matrix));
  };
  const auto shifted = [&](double x, double y) { affine({1, 0, -x, 0, 1, -y}); };
  const auto by_factor = [&](ImageTransform::Kind kind) {
    out.push_back(change_of(kind, 1 + 0.9 * signed_share));
    if (moves_pixels(kind)) out.back().to_width = size.width, out.back().to_height = size.height;
  };
  switch (which) {
    case 1:
      return affine({1, std::tan(0.3 * signed_share), 0, 0, 1, 0});
    case 2:
      return affine({1, 0, 0, std::tan(0.3 * signed_share), 1, 0});
    case 3:
      return shifted(std::trunc(signed_share * 150 / 331 * size.width), 0);
    case 4:
      return shifted(0, std::trunc(signed_share * 150 / 331 * size.height));
    case 5:
      return affine(rotation_matrix(size, 30 * signed_share));
    case 6:
      return by_factor(ImageTransform::kBrightness);
    case 7:
      return by_factor(ImageTransform::kSaturation);
    case 8:
      return by_factor(ImageTransform::kContrast);
    case 9:
      return by_factor(ImageTransform::kSharpness);
    case 10:
      out.push_back(change_of(ImageTransform::kPosterize));
      out.back().amount = 8 - static_cast<int>(std::nearbyint(4 * share));
      return;
    case 11:
      out.push_back(change_of(ImageTransform::kSolarize));
      out.back().numbers[0] = 255 * (1 - share);
      return;
    case 12:
      return out.push_back(change_of(ImageTransform::kAutoContrast));
    case 13:
      return out.push_back(change_of(ImageTransform::kEqualize));
    default:
      return;
  }
}

// ---- For GPUs ---------------------------------------------------------------------------------

// Whether no pixel is a mean of more than kMostTaps pixels, the GPU kernel's limit.
bool has_few_taps(const ImageTransform& c) {
  const double *n = c.numbers, by_x = (n[2] - n[0]) / c.to_width,
               by_y = (n[3] - n[1]) / c.to_height;
  return c.kind != ImageTransform::kScale || 2 * std::max({by_x, by_y, 1.0}) + 2 <= kMostTaps;
}

// Merges flips into the preceding crop. Rectangles erased between crop and flip are flipped too.
void merge_flips_into_crops(std::vector<ImageTransform>& changes) {
  std::vector<ImageTransform> out;
  std::size_t cut = 0;  // 1 + index of the last transform that moves pixels; 0: none
  for (const ImageTransform& change : changes) {
    const bool across = change.kind == ImageTransform::kMirror;
    if (cut == 0 || out[cut - 1].kind > ImageTransform::kCrop ||
        (!across && change.kind != ImageTransform::kUpsideDown)) {
      out.push_back(change);
      if (moves_pixels(change.kind)) cut = out.size();
      continue;
    }
    ImageTransform& cutting = out[cut - 1];
    (across ? cutting.mirrored : cutting.upside_down) ^= 1;
    for (std::size_t k = cut; k < out.size(); ++k) {
      if (across) out[k].left = cutting.to_width - out[k].left - out[k].width;
      if (!across) out[k].top = cutting.to_height - out[k].top - out[k].height;
    }
  }
  changes = std::move(out);
}

}  // namespace

void draw_step(const Transform& step, ImageSize& size, const ImageTarget& target, ImageDraws& draws,
               std::vector<ImageTransform>& out) {
  const std::string& name = step.name;
  const double first = number_of(step, 0);
  if (draw_cut(step, size, target, draws, out)) return;
  if (name == "jitter") return draw_jitter(step, draws, out);
  if (name == "pca") {
    std::array<double, 3> alphas{};
    for (double& alpha : alphas) alpha = first * draws.normal();
    return out.push_back(change_by(ImageTransform::kShift, size, pca_shift(alphas)));
  }
  if (name == "cutout") {
    const int side = static_cast<int>(first), x = draws.below(size.width),
              y = draws.below(size.height);
    return out.push_back(erasing(x - side / 2, y - side / 2, side, side, target));
  }
  if (name == "rotate")
    return out.push_back(change_by(ImageTransform::kAffine, size,
                                   rotation_matrix(size, draws.uniform(-first, first))));
  if (name == "affine") return out.push_back(moving(step, size, draws));
  if (name == "perspective") {
    if (draws.chance(number_of(step, 1))) out.push_back(with_perspective(step, size, draws));
    return;
  }
  if (name == "blur") {
    const double sigma = draws.uniform(number_of(step, 1), number_of(step, 2));
    out.push_back(change_by<1>(ImageTransform::kBlur, size, {sigma}));
    out.back().amount = static_cast<int>(first);
    return;
  }
  if (name == "randaugment") {
    for (int k = 0; k < static_cast<int>(first); ++k) {
      const int which = draws.below(14);
      const double sign = draws.chance(0.5) ? -1 : 1;
      draw_rand_augment(which, number_of(step, 1) / 30, sign, size, out);
    }
    return;
  }
  if (!draws.chance(first)) return;
  if (name == "erase") return draw_hole(step, size, target, draws, out);
  out.push_back(change_of(name == "flip"    ? ImageTransform::kMirror
                          : name == "vflip" ? ImageTransform::kUpsideDown
                                            : ImageTransform::kGrey));
}

std::vector<Image> crops_of(const Image& image, const Transform& step, const ImageTarget& target,
                            const std::string& name) {
  const ImageSize to = size_or_target(number_of(step, 0), target);
  if (image.width < to.width || image.height < to.height)
    throw make_error<ShapeError>(FileName{name}, ": is ", image.width, " x ", image.height,
                                 " where '", step.name, "' takes crops of ", to.width, " x ",
                                 to.height, ": put resize before it");
  std::vector<Image> out;
  const auto five_of = [&](const Image& whole) {
    const int right = whole.width - to.width, below = whole.height - to.height;
    for (const auto& [left, top] :
         {std::pair{0, 0},
          {right, 0},
          {0, below},
          {right, below},
          {middle(whole.width, to.width), middle(whole.height, to.height)}})
      out.push_back(cropped(whole, left, top, to.width, to.height));
  };
  five_of(image);
  if (step.name == "ten_crop")
    five_of(number_of(step, 1) == 1 ? upside_down(image) : mirrored(image));
  return out;
}

FirstSteps first_steps(const std::vector<Transform>& steps, int width, int height,
                       const ImageTarget& target, ImageDraws& draws) {
  const ImageBox whole = whole_box({width, height});
  FirstSteps out{{whole, width, height}, whole, width, height, 0};
  if (!steps.empty() && steps[0].name == "resized_crop") {
    draws.begin_step(0);
    const ImageSize to = size_or_target(number_of(steps[0], 0), target);
    out.width = to.width, out.height = to.height, out.done = 1;
    out.box = drawn_box(steps[0], {width, height}, draws);
    out.part = {out.box, to.width, to.height};
    return out;
  }
  if (steps.empty() || steps[0].name != "resize") return out;
  const ImageSize all = resized_size(steps[0], {width, height}, target);
  out.width = all.width, out.height = all.height, out.done = 1;
  out.part = {whole, all.width, all.height};
  if (steps.size() < 2 || steps[1].name != "center_crop") return out;
  const ImageSize crop = size_or_target(number_of(steps[1], 0), target);
  if (crop.width > all.width || crop.height > all.height) return out;
  out.width = crop.width, out.height = crop.height, out.done = 2;
  const double by_x = static_cast<double>(width) / all.width,
               by_y = static_cast<double>(height) / all.height;
  const int left = middle(all.width, crop.width), top = middle(all.height, crop.height);
  const ImageBox inner{left * by_x, top * by_y, (left + crop.width) * by_x,
                       (top + crop.height) * by_y};
  // The radius of the resampling filter.
  const double around_x = std::ceil(by_x) + 1, around_y = std::ceil(by_y) + 1;
  const ImageBox outer{std::max(inner.left - around_x, 0.0), std::max(inner.top - around_y, 0.0),
                       std::min(inner.right + around_x, whole.right),
                       std::min(inner.bottom + around_y, whole.bottom)};
  out.box = inner;
  out.part = {outer, static_cast<int>((outer.right - outer.left) / by_x),
              static_cast<int>((outer.bottom - outer.top) / by_y)};
  return out;
}

bool draw_for_gpu(const std::vector<Transform>& steps, std::size_t first, ImageSize size,
                  const ImageTarget& target, ImageDraws& draws, std::vector<ImageTransform>& out) {
  for (std::size_t k = first; k < steps.size(); ++k) {
    draws.begin_step(k);
    draw_step(steps[k], size, target, draws, out);
  }
  if (size.width != target.width || size.height != target.height ||
      !std::all_of(out.begin(), out.end(), has_few_taps))
    return false;
  if (std::none_of(out.begin(), out.end(),
                   [](const ImageTransform& c) { return moves_pixels(c.kind); }))
    out.insert(out.begin(), cropping(0, 0, size));
  merge_flips_into_crops(out);
  return true;
}

bool draw_for_gpu(const std::vector<Transform>& steps, ImageSize size, const ImageTarget& target,
                  ImageDraws& draws, std::vector<ImageTransform>& out) {
  const FirstSteps first = first_steps(steps, size.width, size.height, target, draws);
  if (first.done > 0) {
    const ImageBox& around = first.done == 2 ? first.part.box : first.box;
    out.push_back(scaling(first.box, seen_pixels(around, size.width, size.height),
                          {first.width, first.height}));
    size = {first.width, first.height};
  }
  return draw_for_gpu(steps, first.done, size, target, draws, out);
}

Image changed_by(Image image, const ImageTransform& c) {
  const auto permuted = [&c](Image cut) {
    if (c.mirrored != 0) cut = mirrored(cut);
    return c.upside_down != 0 ? upside_down(cut) : cut;
  };
  const double* n = c.numbers;
  const auto factor = static_cast<double>(c.factor);
  switch (c.kind) {
    case ImageTransform::kScale:
      return permuted(
          resized(image, {n[0], n[1], n[2], n[3]},
                  {static_cast<double>(c.left), static_cast<double>(c.top),
                   static_cast<double>(c.left + c.width), static_cast<double>(c.top + c.height)},
                  c.to_width, c.to_height));
    case ImageTransform::kCrop:
      return permuted(cropped(image, c.left, c.top, c.to_width, c.to_height));
    case ImageTransform::kAffine:
      return affine(image, {n[0], n[1], n[2], n[3], n[4], n[5]});
    case ImageTransform::kPerspective:
      return perspective(image, {n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]});
    case ImageTransform::kBlur:
      return gaussian_blurred(image, c.amount, n[0]);
    case ImageTransform::kSharpness:
      return with_sharpness(image, factor);
    case ImageTransform::kMirror:
      return mirrored(image);
    case ImageTransform::kUpsideDown:
      return upside_down(image);
    case ImageTransform::kBrightness:
      return with_brightness(image, factor);
    case ImageTransform::kContrast:
      return with_contrast(image, factor);
    case ImageTransform::kSaturation:
      return with_saturation(image, factor);
    case ImageTransform::kHue:
      return with_hue(image, static_cast<std::uint8_t>(c.amount));
    case ImageTransform::kShift:
      return with_shift(image, {n[0], n[1], n[2]});
    case ImageTransform::kGrey:
      return grey_of(image);
    case ImageTransform::kErase:
      return erased(image, c.left, c.top, c.width, c.height,
                    {c.colour[0], c.colour[1], c.colour[2]});
    case ImageTransform::kPosterize:
      return posterized(image, c.amount);
    case ImageTransform::kSolarize:
      return solarized(image, n[0]);
    case ImageTransform::kAutoContrast:
      return auto_contrasted(image);
    case ImageTransform::kEqualize:
      return equalized(image);
  }
  return image;
}

namespace {

Image changed_by_function(Image image, const Transform& step, SampleRandom random) {
  const int channels = image.channels;
  Image out = step.function(std::move(image), random);
  if (out.channels != channels || out.width < 1 || out.height < 1 ||
      out.pixels.size() != at(out.width) * at(out.height) * at(channels))
    throw ShapeError(
        cat("transform '", step.name, "' gave an image of ", out.width, " x ", out.height, " with ",
            out.channels, " channels in ", out.pixels.size(), " bytes; it must have ", channels,
            channels == 1 ? " channel" : " channels", " and width * height * channels bytes"));
  return out;
}

}  // namespace

Image changed(Image image, const std::vector<Transform>& steps, std::size_t first,
              const ImageTarget& target, ImageDraws& draws) {
  std::vector<ImageTransform> changes;
  for (std::size_t k = first; k < steps.size(); ++k) {
    if (steps[k].function) {
      image = changed_by_function(std::move(image), steps[k], draws.for_function(k));
      continue;
    }
    ImageSize size{image.width, image.height};
    changes.clear();
    draws.begin_step(k);
    draw_step(steps[k], size, target, draws, changes);
    for (const ImageTransform& change : changes) image = changed_by(std::move(image), change);
  }
  return image;
}

}  // namespace tenon::data
