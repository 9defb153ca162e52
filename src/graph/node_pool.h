// Memory for nodes: blocks that are taken and given back by the ten thousand in each training step.
//
// Every thread keeps some blocks. Full magazines go to a depot shared by all threads, up to a
// limit; beyond the limit blocks go back to their slabs. A slab is freed once all of its blocks are
// back. A block has a number that no other block has, never higher than the largest number of
// blocks that existed at once; walks find nodes by this number (graph/node_index.h). A thread may
// give back blocks that another thread took, even after its own magazines are gone.
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
/// Returns the depot's blocks to their slabs.
void trim_node_blocks() noexcept;
/// Bytes in the depot.
std::int64_t idle_node_bytes() noexcept;
/// Bytes of all slabs, used or unused.
std::int64_t node_bytes() noexcept;

}  // namespace tenon
