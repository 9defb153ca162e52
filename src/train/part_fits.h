// Checks before the first step that the validation and test parts fit the model, instead of failing
// after an epoch.
#pragma once

#include <tenon/data.h>

#include "train/step.h"

namespace tenon::train {

/// Throws where the part's samples cannot be measured by the network and the loss: ShapeError,
/// DTypeError or ValueError, which names the part and what training's samples are. Nothing is
/// evaluated.
void require_part_fits(EvalStep& step, bool classes, const data::Loader& train,
                       const data::Loader& other, data::Split part);

}  // namespace tenon::train
