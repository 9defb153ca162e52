// Threads that compile. Started when there is work, joined at the end of the process.
#pragma once

#include <functional>

namespace tenon::cuda {

/// Runs the job on one of the compiling threads. Jobs do not throw, and wait for each other at
/// locks alone.
void run_on_worker(std::function<void()> job);
/// Likewise, behind all of those: compilations of most effort begin first, also before some that
/// were asked for milliseconds earlier.
void compile_on_worker(std::function<void()> job, int effort);
/// Lets the end of the process wait for the jobs before it destroys what was made up to this call.
/// Jobs do so when they are done.
void stop_workers_at_exit();
/// Whether the process ends: jobs give up, and nobody is told.
bool are_workers_stopped();

}  // namespace tenon::cuda
