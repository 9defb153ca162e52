// The draws of each change.
#include "data/picture_changes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/index.h"
#include "scalar/picture.h"

namespace tenon::data {
namespace {

PictureChange change_of(PictureChange::Kind kind, double factor = 1) {
  PictureChange out;
  out.kind = kind;
  out.factor = static_cast<float>(factor);
  return out;
}

PictureChange erasing(int left, int top, int width, int height, const PictureTarget& target) {
  PictureChange out = change_of(PictureChange::kErase);
  out.left = left, out.top = top, out.width = width, out.height = height;
  std::copy(target.mean.begin(), target.mean.end(), out.colour);
  return out;
}

void draw_jitter(const Transform& step, PictureDraws& draws, std::vector<PictureChange>& out) {
  const auto factor = [&](std::size_t k) {
    const double by = number_of(step, k);
    return draws.uniform(std::max(0.0, 1 - by), 1 + by);
  };
  const double brightness = factor(0), contrast = factor(1), saturation = factor(2);
  PictureChange changes[] = {change_of(PictureChange::kBrightness, brightness),
                             change_of(PictureChange::kContrast, contrast),
                             change_of(PictureChange::kSaturation, saturation),
                             change_of(PictureChange::kHue)};
  changes[3].turn = hue_turn(draws.uniform(-number_of(step, 3), number_of(step, 3)));
  std::array<int, 4> order{0, 1, 2, 3};
  for (int i = 3; i > 0; --i) std::swap(order[at(i)], order[at(draws.below(i + 1))]);
  for (const int what : order)
    if (number_of(step, at(what)) > 0) out.push_back(changes[what]);
}

// torchvision's RandomErasing: ten tries, then nothing.
void draw_hole(const Transform& step, int width, int height, const PictureTarget& target,
               PictureDraws& draws, std::vector<PictureChange>& out) {
  const double area = double{1} * width * height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = area * draws.uniform(number_of(step, 1), number_of(step, 2)),
                 ratio = std::exp(draws.uniform(std::log(0.3), std::log(3.3)));
    const int h = static_cast<int>(std::lround(std::sqrt(share * ratio))),
              w = static_cast<int>(std::lround(std::sqrt(share / ratio)));
    if (h >= height || w >= width) continue;
    const int top = draws.below(height - h + 1), left = draws.below(width - w + 1);
    out.push_back(erasing(left, top, w, h, target));
    return;
  }
}

}  // namespace

bool is_pointwise(const std::string& step) {
  static constexpr const char* kNames[] = {"flip", "vflip", "jitter", "pca",
                                           "grey", "erase", "cutout"};
  return std::find(std::begin(kNames), std::end(kNames), step) != std::end(kNames);
}

void draw_changes(const Transform& step, int width, int height, const PictureTarget& target,
                  PictureDraws& draws, std::vector<PictureChange>& out) {
  const std::string& name = step.name;
  const double first = number_of(step, 0);
  if (name == "jitter") return draw_jitter(step, draws, out);
  if (name == "pca") {
    std::array<double, 3> alphas{};
    for (double& alpha : alphas) alpha = first * draws.normal();
    const std::array<double, 3> shift = pca_shift(alphas);
    out.push_back(change_of(PictureChange::kShift));
    std::copy(shift.begin(), shift.end(), out.back().shift);
    return;
  }
  if (name == "cutout") {
    const int side = static_cast<int>(first), x = draws.below(width), y = draws.below(height);
    out.push_back(erasing(x - side / 2, y - side / 2, side, side, target));
    return;
  }
  if (!draws.chance(first)) return;
  if (name == "erase") return draw_hole(step, width, height, target, draws, out);
  out.push_back(change_of(name == "flip"    ? PictureChange::kMirror
                          : name == "vflip" ? PictureChange::kUpsideDown
                                            : PictureChange::kGrey));
}

const Transform* beyond_records(const std::vector<Transform>& steps) {
  const auto is = [&](std::size_t k, const char* name) {
    return k < steps.size() && steps[k].name == name;
  };
  std::size_t changes = 0;
  for (std::size_t k = is(0, "resized_crop")                     ? 1
                       : is(0, "resize") && is(1, "center_crop") ? 2
                                                                 : 0;
       k < steps.size(); ++k) {
    changes += steps[k].name == "jitter" ? 4 : 1;
    if (k == 0 || !is_pointwise(steps[k].name) || changes > kMostPictureChanges) return &steps[k];
  }
  return nullptr;
}

bool draw_record(const std::vector<Transform>& steps, int width, int height,
                 const PictureTarget& target, PictureDraws& draws, PictureRecord& out) {
  const FirstSteps first = first_steps(steps, width, height, target, draws);
  if (first.width != target.width || first.height != target.height) return false;
  const ImageBox& box = first.box;
  const SeenPixels seen = seen_pixels(first.done == 2 ? first.part.box : box, width, height);
  out.width = width, out.height = height;
  out.left = box.left, out.top = box.top, out.right = box.right, out.bottom = box.bottom;
  out.low_x = seen.left, out.high_x = seen.right, out.low_y = seen.top, out.high_y = seen.bottom;
  const scalar::ResampleAxis across = scalar::resample_axis(box.left, box.right, seen.left,
                                                            seen.right, target.width),
                             down = scalar::resample_axis(box.top, box.bottom, seen.top,
                                                          seen.bottom, target.height);
  if (2 * std::max(across.support, down.support) + 2 > kMostTaps) return false;
  const double top = scalar::tap_centre(down, 0),
               bottom = scalar::tap_centre(down, target.height - 1);
  out.first_row = scalar::first_tap(down, top);
  out.rows = scalar::end_of_taps(down, bottom, scalar::first_tap(down, bottom)) - out.first_row;
  std::vector<PictureChange> changes;
  for (std::size_t k = first.done; k < steps.size(); ++k) {
    draws.begin_step(k);
    draw_changes(steps[k], target.width, target.height, target, draws, changes);
  }
  // Mirroring comes first, so what was erased before it is mirrored too.
  for (PictureChange change : changes) {
    const bool across_it = change.kind == PictureChange::kMirror;
    if (!across_it && change.kind != PictureChange::kUpsideDown) {
      out.change[out.changes++] = change;
      continue;
    }
    (across_it ? out.mirrored : out.upside_down) ^= 1;
    for (int k = 0; k < out.changes; ++k) {
      PictureChange& before = out.change[k];
      if (across_it) before.left = target.width - before.left - before.width;
      if (!across_it) before.top = target.height - before.top - before.height;
    }
  }
  return true;
}

Image changed_by(Image image, const PictureChange& c) {
  switch (c.kind) {
    case PictureChange::kMirror:
      return mirrored(image);
    case PictureChange::kUpsideDown:
      return upside_down(image);
    case PictureChange::kBrightness:
      return with_brightness(image, static_cast<double>(c.factor));
    case PictureChange::kContrast:
      return with_contrast(image, static_cast<double>(c.factor));
    case PictureChange::kSaturation:
      return with_saturation(image, static_cast<double>(c.factor));
    case PictureChange::kHue:
      return with_hue(image, c.turn);
    case PictureChange::kShift:
      return with_shift(image, {c.shift[0], c.shift[1], c.shift[2]});
    case PictureChange::kGrey:
      return grey_of(image);
    case PictureChange::kErase:
      return erased(image, c.left, c.top, c.width, c.height,
                    {c.colour[0], c.colour[1], c.colour[2]});
  }
  return image;
}

}  // namespace tenon::data
