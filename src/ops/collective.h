// The devices of a collective's members.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/node.h"

namespace tenon {

/// The device of the member with rank k.
Device member_of(const Node& collective, std::int64_t k);
/// All of them, by rank.
std::vector<Device> members_of(const Node& collective);

}  // namespace tenon
