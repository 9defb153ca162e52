// What a list of changes does to a picture of some size, drawn: one description (PictureChange),
// which the CPU carries out here and a card by a kernel.
#pragma once

#include <cstddef>
#include <vector>

#include "data/transforms.h"
#include "scalar/picture_record.h"

namespace tenon::data {

/// Draws what a step does to a picture of this size, which becomes the result's, and appends it.
void draw_step(const Transform& step, PictureSize& size, const PictureTarget& target,
               PictureDraws& draws, std::vector<PictureChange>& out);
Image changed_by(Image image, const PictureChange& change);

/// What a card makes of a picture of this size: the steps from number `first` on, as they are drawn
/// but for mirrors, which are part of what cuts the picture where they can be; at least one is not
/// in place. False when pixels would be means of too many for a card (kMostTaps), or the result not
/// of the target's size.
bool draw_for_card(const std::vector<Transform>& steps, std::size_t first, PictureSize size,
                   const PictureTarget& target, PictureDraws& draws,
                   std::vector<PictureChange>& out);
/// The same for an encoded picture of this size, by a card that decodes all of it.
bool draw_for_card(const std::vector<Transform>& steps, PictureSize size,
                   const PictureTarget& target, PictureDraws& draws,
                   std::vector<PictureChange>& out);

}  // namespace tenon::data
