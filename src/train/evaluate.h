// One pass over test data.
#pragma once

#include <cstdint>
#include <functional>

#include <tenon/data.h>
#include <tenon/train.h>

#include "train/step.h"

namespace tenon::train {

/// Loss, accuracy and confusion matrix over one epoch of the loader. The loss is the mean over
/// examples, and of sequences over the tokens that count (not data::kIgnoredTarget). `progress`
/// gets (batch, batches) and may be empty.
Evaluation evaluate(EvalStep& step, data::Loader& loader, bool classes,
                    const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace tenon::train
