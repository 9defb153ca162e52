// Which steps of a program must wait for which: the edges of its CUDA graph.
#pragma once

#include <vector>

#include "plan/program/program.h"

namespace tenon::cuda {

/// For `runs` consecutive runs of the program: entry r * steps + s lists the earlier entries that
/// step s of run r waits for. Two entries are ordered if one writes memory that the other touches.
/// Waits that follow from others are left out.
std::vector<std::vector<int>> waits(const Program& program, int runs);

/// The same entries in the order in which they are added to the graph, which is the order in which
/// the GPU starts those that are ready. Each entry comes after all entries that it waits for
/// (`before`), run after run and in planned order, except that entries with only short paths after
/// them come last. Input gradients, which all other steps wait for, thus come before weight
/// gradients.
std::vector<int> short_paths_last(const Program& program,
                                  const std::vector<std::vector<int>>& before);

}  // namespace tenon::cuda
