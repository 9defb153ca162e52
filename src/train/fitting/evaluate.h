// Evaluation: one pass over a dataset.
#pragma once

#include <cstdint>
#include <functional>

#include <tenon/data.h>
#include <tenon/train.h>

#include "train/fitting/step.h"

namespace tenon::train {

/// Loss and metrics over one epoch of the loader. Means are weighted by the number of targets that
/// count: sums in float64, divided once at the end. `progress` gets (batch, batches) and may be
/// empty. The result does not name the source and its part.
Evaluation evaluate(EvalStep& step, data::Loader& loader,
                    const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace tenon::train
