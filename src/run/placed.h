// Running programs on several devices. Their planning is in plan/steps/placed.h.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "device/backend.h"
#include "plan/program/program.h"

namespace tenon {

/// Bytes of the arena that a call must supply: 0 if every device has an arena of its own.
inline std::size_t arena_of_call(const Program& program) {
  return program.devices.size() > 1 ? 0 : static_cast<std::size_t>(program.arena_bytes);
}

/// Owns an arena on each device, so it runs one call at a time. Replays calls in the way that the
/// backends support.
std::unique_ptr<Replay> make_placed_replay(std::shared_ptr<const Program> program);

/// Runs every step once, with temporary arenas; arena values in `values` have no address yet.
void run_placed(const Program& program, std::span<std::byte* const> values);

}  // namespace tenon
