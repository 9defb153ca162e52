// The public loop over the pool of threads.
#include <tenon/parallel.h>

#include <algorithm>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/thread_pool.h"

namespace tenon {

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& f) {
  if (grain < 1)
    throw make_error<ValueError>("parallel_for: a grain of ", grain, ": give 1 or more");
  if (end <= begin) return;
  const std::int64_t ranges = (end - begin - 1) / grain + 1;
  parallel_for(ranges, [&](std::int64_t range, int) {
    const std::int64_t first = begin + range * grain;
    f(first, std::min(end - first, grain) + first);
  });
}

}  // namespace tenon
