// What a run will compute, planned before it has a folder.
#pragma once

#include <cstdint>

#include "train/session.h"

namespace tenon::train {

/// Plans the training step of a run, and its tests in batches of as many examples as the context's
/// memory limit allows, at most as many as without one. Returns that number; 0: no limit is
/// set, or nothing is tested. Throws MemoryError where a step does not fit, or a test of one
/// example.
std::int64_t plan_within_limit(Session& session);
/// The same before a weight is drawn. The teacher's part in a step is not known so, nor what frozen
/// parts give that is computed once.
std::int64_t plan_within_limit(const Settings& settings, const DataSets& sets);

}  // namespace tenon::train
