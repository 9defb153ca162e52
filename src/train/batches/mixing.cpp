// Rows of random numbers for mixup and cutmix, and the graph nodes that use them.
#include "train/batches/mixing.h"

#include <algorithm>
#include <vector>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "base/str.h"

namespace tenon::train {
namespace {

enum MixNumber { kPixels, kOtherPixels, kShare, kOtherShare, kLeft, kTop, kRight, kBottom };

void append_row(const data::MixDraw& draw, std::vector<float>& out) {
  for (const double number :
       {draw.pixels, 1 - draw.pixels, draw.share, 1 - draw.share, double{1} * draw.left,
        double{1} * draw.top, double{1} * draw.right, double{1} * draw.bottom})
    out.push_back(static_cast<float>(number));
}

// The partner of each sample: the sample before it; for the first sample the last.
Tensor others(const Tensor& x) { return roll(x, {1}, {0}); }

}  // namespace

Tensor mix_rows(const data::Mixing& mixing, const Shape& image, const data::LoaderState& epoch,
                std::int64_t first, std::int64_t steps) {
  const bool flat = image.rank() < 2;
  if (flat && mixing.cutmix > 0)
    throw ValueError(
        cat("cutmix: samples of ", image, " have no height and width, so no box can be pasted"));
  const int height = flat ? 1 : static_cast<int>(image[image.rank() - 2]),
            width = flat ? 1 : static_cast<int>(image[image.rank() - 1]);
  std::vector<float> numbers;
  for (std::int64_t k = 0; k < steps; ++k)
    append_row(data::draw_mix(mixing, height, width, epoch.seed, epoch.epoch, first + k), numbers);
  return Tensor::from(numbers, {steps, kMixNumbers});
}

Tensor Mixed::number(std::int64_t which) const { return select(row_, 0, which); }

Tensor Mixed::input(const Tensor& input) const {
  if (!is_floating(input.dtype()))
    throw DTypeError(cat("mixing: the samples are ", input.dtype(), " ", input.shape(),
                         ", must be floating-point, as a Loader converts bytes"));
  Tensor own = number(kPixels), other = number(kOtherPixels);
  if (input.rank() >= 3) {
    const auto within = [&](int axis, MixNumber low, MixNumber high, const Ints& shape) {
      const Tensor place = reshape(arange(0, input.size(axis), 1, DType::Float32), shape);
      return logical_and(ge(place, number(low)), lt(place, number(high)));
    };
    const Tensor box = logical_and(within(-2, kTop, kBottom, {input.size(-2), 1}),
                                   within(-1, kLeft, kRight, {1, input.size(-1)}));
    own = where(box, 0, own), other = where(box, 1, other);
  }
  return others(input) * cast(other, input.dtype()) + input * cast(own, input.dtype());
}

Tensor Mixed::loss(const nn::Loss& loss, const Tensor& scores, const Tensor& target) const {
  const Tensor own = loss(scores, target), other = loss(scores, others(target));
  return own * cast(number(kShare), own.dtype()) + other * cast(number(kOtherShare), own.dtype());
}

Tensor Mixed::main_target(const Tensor& target) const {
  return where(ge(number(kShare), 0.5), target, others(target));
}

data::Batch mixed(const data::Batch& batch, const data::MixDraw& draw, std::int64_t classes) {
  if (batch.target.rank() != 1 || is_floating(batch.target.dtype()))
    throw ShapeError(cat("mixed: the targets are ", batch.target.dtype(), " ", batch.target.shape(),
                         ", must be class numbers [N]"));
  std::vector<float> numbers;
  append_row(draw, numbers);
  const Mixed how(Tensor::from(numbers, {kMixNumbers}));
  const Tensor own = one_hot(batch.target, classes, DType::Float32);
  return {how.input(batch.input).compute(),
          (others(own) * (1 - draw.share) + own * draw.share).compute(), batch.size};
}

}  // namespace tenon::train
