// Plans all programs of a run before its folder is created.
#pragma once

#include <cstdint>

#include "train/sessions/session.h"

namespace tenon::train {

/// Plans the training step of a run and the evaluation of its validation and test parts. Returns
/// the largest evaluation batch within the context's memory limit; 0: the default batch. Throws
/// MemoryError if a training step, or the evaluation of one sample, does not fit. Does nothing
/// without a limit.
std::int64_t plan_within_limit(Session& session);
/// The same before weights are initialized. Does not include a teacher in the step or the outputs
/// of frozen layers. Without a limit, plans if the weights are large for a device with memory of
/// its own.
std::int64_t plan_within_limit(const ResolvedRun& run, const DataSets& sets);

}  // namespace tenon::train
