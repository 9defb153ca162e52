// Whether the validation and test parts suit what is trained: found before the first step, not
// after an epoch or at the end of the run.
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
