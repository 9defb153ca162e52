// Which steps of a program must wait for which: the edges of its CUDA graph.
#pragma once

#include <vector>

#include "plan/program.h"

namespace tenon::cuda {

/// For `runs` runs of the program in a row: entry r * steps + s lists the earlier entries that step
/// s of run r waits for. Two entries are ordered when one writes memory that the other touches;
/// waits that follow from others are left out.
std::vector<std::vector<int>> waits(const Program& program, int runs);

/// The same entries in the order in which they are put into the graph, which is that in which the
/// GPU is given those that are ready: each behind all that it waits for (`before`), run after run
/// and as planned, but that those from which only short paths of values go out come last. So the
/// gradients with respect to images, which all else waits for, come before those of filters.
std::vector<int> short_paths_last(const Program& program,
                                  const std::vector<std::vector<int>>& before);

}  // namespace tenon::cuda
