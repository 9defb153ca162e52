// The host's caching pool: 64-byte aligned blocks with two size classes for each power of two.
// Buffer takes its host memory here.
#pragma once

#include <cstddef>

#include "device/memory.h"

namespace tenon {

/// The bytes that a block for `bytes` takes from the pool.
std::size_t host_block_size(std::size_t bytes);
/// A block of host_block_size() bytes. Throws MemoryError naming the size if the system refuses.
void* take_host_block(std::size_t reserved);
/// Returns a block to the pool.
void give_host_block(void* block, std::size_t reserved) noexcept;

PoolStats host_pool_stats();
/// Returns cached blocks to the system.
void host_pool_trim();

}  // namespace tenon
