// Numbers that models of time share: those of an H200, whatever the card is, so that plans do not
// depend on it.
#pragma once

namespace tenon::cuda {

inline constexpr double kCyclesAMicrosecond = 1755;  // of one multiprocessor
inline constexpr double kLaunchCycles = 2000;        // a launch inside a graph
inline constexpr double kLastBlockCycles = 600;      // the last block of a launch learns that it is
inline constexpr double kAgainCycles = 400;          // every block makes a short row for itself

}  // namespace tenon::cuda
