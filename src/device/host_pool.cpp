// The free blocks of the host by size class, and where they come from.
#include "device/host_pool.h"

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <tenon/error.h>

#include "base/str.h"
#include "device/size_class.h"

namespace tenon {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kManyPages = 2 * kHugePage;  // larger blocks ask for huge pages

struct Pool {
  std::mutex mutex;
  // Two classes for each power of two; index = 2 * log2 + (power of two ? 1 : 0).
  std::vector<void*> free_blocks[130];
  PoolStats stats;
};

Pool& pool() {
  static Pool* instance = new Pool;  // never destroyed: tensors in static storage may outlive it
  return *instance;
}

int class_of(std::size_t reserved) {
  const int log = static_cast<int>(std::bit_width(reserved)) - 1;
  return 2 * log + (std::has_single_bit(reserved) ? 1 : 0);
}

// Matrix products walk down columns of large matrices, one page for each row. With huge pages the
// first-level TLB holds their addresses. A system without huge pages ignores the request.
void* allocate_block(std::size_t reserved) {
  if (reserved < kManyPages) return std::aligned_alloc(kAlignment, reserved);
  void* block = std::aligned_alloc(kHugePage, reserved);
#if defined(MADV_HUGEPAGE)
  if (block != nullptr) madvise(block, reserved, MADV_HUGEPAGE);
#endif
  return block;
}

}  // namespace

std::size_t host_block_size(std::size_t bytes) { return size_class(bytes, kAlignment); }

void* take_host_block(std::size_t reserved) {
  Pool& p = pool();
  std::lock_guard lock(p.mutex);
  auto& list = p.free_blocks[class_of(reserved)];
  void* block = nullptr;
  if (!list.empty()) {
    block = list.back();
    list.pop_back();
    p.stats.cached -= static_cast<std::int64_t>(reserved);
  } else {
    block = allocate_block(reserved);
    if (block == nullptr)
      throw MemoryError(cat("the system refused ", reserved, " bytes of memory (", p.stats.in_use,
                            " are in use): use a smaller batch or a smaller network"));
    ++p.stats.system_allocations;
  }
  p.stats.in_use += static_cast<std::int64_t>(reserved);
  if (p.stats.in_use > p.stats.peak) p.stats.peak = p.stats.in_use;
  return block;
}

// Called by destructors: if the list cannot grow, the block goes back to the system.
void give_host_block(void* block, std::size_t reserved) noexcept {
  Pool& p = pool();
  std::lock_guard lock(p.mutex);
  p.stats.in_use -= static_cast<std::int64_t>(reserved);
  try {
    p.free_blocks[class_of(reserved)].push_back(block);
    p.stats.cached += static_cast<std::int64_t>(reserved);
  } catch (const std::bad_alloc&) {
    std::free(block);
  }
}

PoolStats host_pool_stats() {
  std::lock_guard lock(pool().mutex);
  return pool().stats;
}

void host_pool_trim() {
  Pool& p = pool();
  std::lock_guard lock(p.mutex);
  for (auto& list : p.free_blocks) {
    for (void* block : list) std::free(block);
    list.clear();
  }
  p.stats.cached = 0;
}

}  // namespace tenon
