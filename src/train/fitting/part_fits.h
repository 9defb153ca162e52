// Checks before the first step that the validation and test parts fit the model, instead of failing
// after an epoch.
#pragma once

#include <tenon/data.h>

#include "train/fitting/step.h"

namespace tenon::train {

/// Throws ShapeError, DTypeError or ValueError if the network and the loss cannot evaluate the
/// samples of the part; the message names the part and describes the training samples. Nothing is
/// evaluated.
void require_part_fits(EvalStep& step, const data::Loader& train, const data::Loader& other,
                       data::Split part);

}  // namespace tenon::train
