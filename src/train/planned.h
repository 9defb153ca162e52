// Plans all programs of a run before its folder is created.
#pragma once

#include <cstdint>

#include "train/session.h"

namespace tenon::train {

/// Plans the training step of a run, and the measuring of its validation and test parts in batches
/// of as many samples as the context's memory limit allows. Returns that number; 0: as many as
/// usual. Throws MemoryError where a step does not fit, or the measuring of one sample.
std::int64_t plan_within_limit(Session& session);
/// The same before a weight is drawn. The teacher's part in a step is not known so, nor what frozen
/// parts give that is computed once.
std::int64_t plan_within_limit(const Settings& settings, const DataSets& sets);

}  // namespace tenon::train
