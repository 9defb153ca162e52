// Threads that compile. Started when there is work, joined at the end of the process.
#pragma once

#include <functional>

namespace tenon::cuda {

/// Runs the job on one of the compiling threads. Jobs do not throw and do not wait for each other.
void run_on_worker(std::function<void()> job);

}  // namespace tenon::cuda
