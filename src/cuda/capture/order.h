// Which steps of a program must wait for which: the edges of its CUDA graph.
#pragma once

#include <vector>

#include "plan/program.h"

namespace tenon::cuda {

/// For `runs` runs of the program in a row: entry r * steps + s lists the earlier entries that step
/// s of run r waits for. Two entries are ordered when one writes memory that the other touches;
/// waits that follow from others are left out.
std::vector<std::vector<int>> waits(const Program& program, int runs);

}  // namespace tenon::cuda
