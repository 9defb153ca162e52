// Evaluation: one pass over a dataset.
#pragma once

#include <cstdint>
#include <functional>

#include <tenon/data.h>
#include <tenon/train.h>

#include "train/step.h"

namespace tenon::train {

/// Loss and metrics over one epoch of the loader, each the mean over what counts: sums in float64,
/// divided once at the end. With `classes` integer targets are classes. `progress` gets (batch,
/// batches) and may be empty. The result says nothing of the source and its part.
Evaluation evaluate(EvalStep& step, data::Loader& loader, bool classes,
                    const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace tenon::train
