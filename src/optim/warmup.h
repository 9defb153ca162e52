// Length of the learning-rate warm-up.
#pragma once

#include <cstdint>

#include <tenon/optim.h>

namespace tenon::optim {

struct WarmUp {
  std::int64_t wanted = 0;  ///< steps requested by options.warmup
  std::int64_t rise = 0;    ///< steps used: at most half of the run, if its length is known
};
WarmUp warm_up(const ScheduleOptions& options);

}  // namespace tenon::optim
