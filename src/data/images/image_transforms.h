// The transforms of an image of a given size with their parameters drawn: one description
// (ImageTransform), which the CPU executes here and a GPU with a kernel.
#pragma once

#include <cstddef>
#include <vector>

#include "data/images/transforms.h"
#include "scalar/image_transform.h"

namespace tenon::data {

/// Draws the random parameters of a step for an image of this size, appends the result, and updates
/// the size.
void draw_step(const Transform& step, ImageSize& size, const ImageTarget& target, ImageDraws& draws,
               std::vector<ImageTransform>& out);
Image changed_by(Image image, const ImageTransform& change);

/// Draws the transforms that a GPU applies to an image of this size: the steps from number `first`
/// on, with flips merged into crops where possible; at least one of them is not in place. Returns
/// false if a pixel would be a mean of more than kMostTaps pixels, or if the result does not have
/// the target's size.
bool draw_for_gpu(const std::vector<Transform>& steps, std::size_t first, ImageSize size,
                  const ImageTarget& target, ImageDraws& draws, std::vector<ImageTransform>& out);
/// The same for an encoded image of this size, by a GPU that decodes all of it.
bool draw_for_gpu(const std::vector<Transform>& steps, ImageSize size, const ImageTarget& target,
                  ImageDraws& draws, std::vector<ImageTransform>& out);

}  // namespace tenon::data
