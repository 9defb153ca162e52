// Changes that keep a picture's size and do not look at neighbouring pixels: what is drawn of them
// is one description (PictureChange), which the CPU carries out here and a card by a kernel.
#pragma once

#include <vector>

#include "data/transforms.h"
#include "scalar/picture_record.h"

namespace tenon::data {

/// Whether a step of this name is made of such changes.
bool is_pointwise(const std::string& step);
/// Draws what a step does to a picture of this size, and appends it. The step is_pointwise().
void draw_changes(const Transform& step, int width, int height, const PictureTarget& target,
                  PictureDraws& draws, std::vector<PictureChange>& out);
Image changed_by(Image image, const PictureChange& change);

/// The first of these steps that cannot be said by a record (scalar/picture_record.h), null when
/// all can.
const Transform* beyond_records(const std::vector<Transform>& steps);
/// The steps with their draws for a decoded picture of this size. False when its box is too large
/// for the result's size, or the result not of the target's.
bool draw_record(const std::vector<Transform>& steps, int width, int height,
                 const PictureTarget& target, PictureDraws& draws, PictureRecord& out);

}  // namespace tenon::data
