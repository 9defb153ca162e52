// Running programs on several devices (plan/placed.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "device/backend.h"
#include "plan/program.h"

namespace tenon {

/// Bytes of the arena that a call brings along: none where there is one on each device.
inline std::size_t arena_of_call(const Program& program) {
  return program.devices.size() > 1 ? 0 : static_cast<std::size_t>(program.arena_bytes);
}

/// Has an arena on each device, so one call at a time; calls are replayed as their backends do.
std::unique_ptr<Replay> make_placed_replay(std::shared_ptr<const Program> program);

/// Does every step once, with arenas of its own; values of the arena have no address yet.
void run_placed(const Program& program, std::span<std::byte* const> values);

}  // namespace tenon
