// Length of the learning-rate warm-up.
#pragma once

#include <cstdint>

#include <tenon/optim.h>

namespace tenon::optim {

struct WarmUp {
  std::int64_t wanted = 0;  ///< steps, as options.warmup says
  std::int64_t rise = 0;    ///< steps, at most half of a run whose length is known
};
WarmUp warm_up(const ScheduleOptions& options);

}  // namespace tenon::optim
