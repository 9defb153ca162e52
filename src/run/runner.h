// The runner: from pending tensors to values. Looks up the program by the graph's structure, plans
// if there is none, binds and runs.
#pragma once

#include <memory>
#include <vector>

#include <tenon/number.h>

#include "graph/node.h"
#include "plan/program/program.h"

namespace tenon {

/// Runs the steps. `values` holds a pointer for each value of the program.
void run_steps(const Program& program, std::byte* const* values, std::byte* arena);
/// Allocates memory for the program's intermediates. A MemoryError names the largest values.
std::shared_ptr<Buffer> allocate_arena(const Program& program);
/// Sets the pointers of the arena's values.
void bind_arena(const Program& program, std::byte* arena, std::vector<std::byte*>& values);
/// The leaf's memory. Throws ValueError for a placeholder input of a function that is being
/// compiled.
std::byte* leaf_memory(const Node& leaf);

}  // namespace tenon
