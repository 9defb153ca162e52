// Threads that compile. Started when there is work, joined at the end of the process.
#pragma once

#include <functional>

namespace tenon::cuda {

/// Runs the job on one of the compiling threads. Jobs must not throw, and wait for one another only
/// at locks.
void run_on_worker(std::function<void()> job);
/// The same, after all of those jobs: compilations of the highest effort start first, even before
/// others that were requested milliseconds earlier.
void compile_on_worker(std::function<void()> job, int effort);
/// Makes the end of the process wait for the jobs before it destroys objects constructed before
/// this call. Jobs call it when they are done.
void stop_workers_at_exit();
/// True if the process is ending: jobs give up without a report.
bool are_workers_stopped();

}  // namespace tenon::cuda
