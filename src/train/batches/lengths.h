// Learning-rate schedules of runs whose length was changed on resume.
#pragma once

#include <cstdint>
#include <memory>

#include <tenon/optim.h>
#include <tenon/train.h>

namespace tenon::train {

/// The schedule of a run that ends at step `total`. Up to the steps in `earlier_lengths`, the
/// schedule is that of the run's length at that time.
std::unique_ptr<optim::Schedule> schedule_of(const TrainOptions& options, std::int64_t total,
                                             std::int64_t steps_per_epoch);

}  // namespace tenon::train
