// Random parameters of mixup and cutmix: a weight from Beta(alpha, alpha) for each batch, and a box
// for cutmix.
#include <algorithm>
#include <cmath>

#include <tenon/data.h>
#include <tenon/error.h>

#include "base/system/option_ranges.h"
#include "data/images/transforms.h"

namespace tenon::data {
namespace {

constexpr std::uint64_t kMixingStep = 0xff;  // beyond the steps that a list may have

constexpr OptionRange<Mixing> kMixRanges[] = {
    {"mixup", &Mixing::mixup, finite_from(0)},
    {"cutmix", &Mixing::cutmix, finite_from(0)},
};

// The logarithm of a number drawn from Gamma(alpha): that of a small alpha is often too small for
// a double. Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double log_gamma_draw(double alpha, ImageDraws& draws) {
  const double above = alpha < 1 ? alpha + 1 : alpha, d = above - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double out = 0;
  for (bool taken = false; !taken;) {
    const double x = draws.normal(), root = 1 + c * x, v = root * root * root;
    const double level = std::log(1 - draws.uniform());
    if (root <= 0 || level >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
    out = std::log(d * v);
    taken = true;
  }
  return alpha < 1 ? out + std::log(1 - draws.uniform()) / alpha : out;
}

double beta_draw(double alpha, ImageDraws& draws) {
  const double a = log_gamma_draw(alpha, draws), b = log_gamma_draw(alpha, draws);
  return 1 / (1 + std::exp(b - a));
}

}  // namespace

MixDraw cut_mix(double share, int x, int y, int height, int width) {
  require_range("cut_mix", "share", share, from_to(0, 1));
  require_range("cut_mix", "height", std::int64_t{height}, at_least(1));
  require_range("cut_mix", "width", std::int64_t{width}, at_least(1));
  const double half = 0.5 * std::sqrt(1 - share);
  const int across = static_cast<int>(half * width), down = static_cast<int>(half * height);
  MixDraw out;
  out.left = std::max(x - across, 0), out.right = std::min(x + across, width);
  out.top = std::max(y - down, 0), out.bottom = std::min(y + down, height);
  out.share = 1 - static_cast<double>(out.right - out.left) * (out.bottom - out.top) /
                      (static_cast<double>(width) * height);
  return out;
}

MixDraw draw_mix(const Mixing& mixing, int height, int width, std::uint64_t seed,
                 std::int64_t epoch, std::int64_t batch) {
  check_options("draw_mix", mixing, kMixRanges);
  if (!mixing.any()) throw ValueError("draw_mix: neither mixup nor cutmix is on");
  ImageDraws draws(seed, epoch, batch);
  draws.begin_step(kMixingStep);
  const bool second = draws.chance(0.5),
             cuts = mixing.mixup > 0 && mixing.cutmix > 0 ? second : mixing.cutmix > 0;
  const double share = beta_draw(cuts ? mixing.cutmix : mixing.mixup, draws);
  if (cuts) {
    const int x = draws.below(width), y = draws.below(height);
    return cut_mix(share, x, y, height, width);
  }
  MixDraw out;
  out.pixels = out.share = share;
  return out;
}

}  // namespace tenon::data
