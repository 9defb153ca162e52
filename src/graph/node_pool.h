// Memory of nodes: blocks that are taken and given back by the ten thousand in each step.
//
// Every thread keeps some blocks of its own; full magazines go through a depot that all share, up
// to a limit, beyond which they go back to the slabs that they are parts of; a slab is freed once
// all of its blocks are back. A block carries a number that no other block has, no higher than
// there ever was room for at once: walks find nodes by it (graph/node_index.h). Blocks may be given
// back by other threads than took them, and after a thread's own have gone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

inline constexpr std::size_t kNodeBlock = 192;  // bytes, three cache lines

struct NodeBlock {
  void* memory = nullptr;
  std::uint32_t number = 0;  // from 1
};

/// Throws std::bad_alloc.
NodeBlock take_node_block();
void give_node_block(NodeBlock block) noexcept;
/// Gives what waits in the depot back to its slabs.
void trim_node_blocks() noexcept;
/// Bytes that wait in the depot.
std::int64_t idle_node_bytes() noexcept;
/// Bytes of all slabs, in use or not.
std::int64_t node_bytes() noexcept;

}  // namespace tenon
