// The runner: from pending tensors to values. Looks the program up by the graph's shape, plans on a
// miss, binds and runs.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "graph/node.h"
#include "plan/program.h"

namespace tenon {

/// While it is held, this thread alone queues work on the GPU, so that programs of several threads
/// stand one behind another there, and what one assigns another reads whole. Empty for the CPU.
std::unique_lock<std::mutex> lock_queue(Device device);
/// Runs the steps. `values` holds a pointer for each value of the program.
void run_steps(const Program& program, std::byte* const* values, std::byte* arena);
/// Memory for the program's intermediates. A MemoryError names the largest of its values.
std::shared_ptr<Buffer> allocate_arena(const Program& program);
/// Sets the pointers of the arena's values.
void bind_arena(const Program& program, std::byte* arena, std::vector<std::byte*>& values);
/// The leaf's memory. Throws ValueError for the stand-in of an input of a function that is being
/// compiled.
std::byte* leaf_memory(const Node& leaf);
/// Counts a planned program in runner_stats().
void count_planned(const Program& program);
void count_run();

}  // namespace tenon
