// Size classes, slabs and reuse.
#include "cuda/device/pool.h"

#include <algorithm>

#include "device/size_class.h"

namespace tenon::cuda {
namespace {

constexpr std::size_t kAlignment = 256;

}  // namespace

std::size_t Pool::rounded(std::size_t bytes) {
  return bytes <= kLargestSmall ? size_class(bytes, kAlignment)
                                : (bytes + kSlab - 1) / kSlab * kSlab;
}

void Pool::account(std::int64_t in_use, std::int64_t cached) {
  stats_.in_use += in_use;
  stats_.cached += cached;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
}

// Asks the GPU, and once more after all cached memory was returned.
void* Pool::allocate_raw(std::size_t bytes) {
  for (const bool last : {false, true}) {
    const std::int64_t held = stats_.in_use + stats_.cached;
    if (limit_ == 0 || held + static_cast<std::int64_t>(bytes) <= limit_)
      if (void* memory = raw_.take(bytes); memory != nullptr) {
        ++stats_.system_allocations;
        return memory;
      }
    if (!last) trim_locked();
  }
  return nullptr;
}

void Pool::free_raw(void* memory) {
  raw_.give(memory);
  ++stats_.system_releases;
}

void* Pool::take_exact(std::size_t bytes) {
  void* block = allocate_raw(bytes);
  if (block != nullptr) account(static_cast<std::int64_t>(bytes), 0);
  return block;
}

void* Pool::take_small(std::size_t size) {
  if (small_[size].empty()) {
    auto* base = static_cast<char*>(allocate_raw(kSlab));
    if (base == nullptr) return nullptr;
    const int count = static_cast<int>(kSlab / size);
    slabs_[base] = {count, count};
    // Looked up again, because trimming may have changed the map. Low addresses are handed out
    // first.
    std::vector<char*>& blocks = small_[size];
    for (int i = count - 1; i >= 0; --i)
      blocks.push_back(base + static_cast<std::size_t>(i) * size);
    account(0, static_cast<std::int64_t>(kSlab));
  }
  std::vector<char*>& blocks = small_[size];
  char* block = blocks.back();
  blocks.pop_back();
  --std::prev(slabs_.upper_bound(block))->second.free_count;
  account(static_cast<std::int64_t>(size), -static_cast<std::int64_t>(size));
  return block;
}

// The smallest cached block that fits and wastes at most an eighth of its size.
void* Pool::take_large(std::size_t size) {
  const auto fit = large_.lower_bound(size);
  if (fit != large_.end() && fit->first - size <= fit->first / 8) {
    void* block = fit->second;
    const std::size_t real = fit->first;
    large_.erase(fit);
    large_sizes_[block] = real;
    account(static_cast<std::int64_t>(real), -static_cast<std::int64_t>(real));
    return block;
  }
  void* block = allocate_raw(size);
  if (block == nullptr) return nullptr;
  large_sizes_[block] = size;
  account(static_cast<std::int64_t>(size), 0);
  return block;
}

void* Pool::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!keeps_) return take_exact(std::max<std::size_t>(bytes, 1));
  const std::size_t size = rounded(bytes);
  return size <= kLargestSmall ? take_small(size) : take_large(size);
}

void Pool::release(void* memory, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (!keeps_) {
    free_raw(memory);
    return account(-static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1)), 0);
  }
  const std::size_t size = rounded(bytes);
  if (size <= kLargestSmall) {
    auto* block = static_cast<char*>(memory);
    small_[size].push_back(block);
    ++std::prev(slabs_.upper_bound(block))->second.free_count;
    account(-static_cast<std::int64_t>(size), static_cast<std::int64_t>(size));
    return;
  }
  const auto found = large_sizes_.find(memory);
  const std::size_t real = found->second;
  large_sizes_.erase(found);
  large_.emplace(real, memory);
  account(-static_cast<std::int64_t>(real), static_cast<std::int64_t>(real));
}

void Pool::trim_locked() {
  for (const auto& [size, memory] : large_) {
    free_raw(memory);
    account(0, -static_cast<std::int64_t>(size));
  }
  large_.clear();
  const auto unused = [&](char* block) {
    const Slab& slab = std::prev(slabs_.upper_bound(block))->second;
    return slab.free_count == slab.count;
  };
  for (auto& [size, blocks] : small_) std::erase_if(blocks, unused);
  for (auto it = slabs_.begin(); it != slabs_.end();) {
    if (it->second.free_count != it->second.count) {
      ++it;
      continue;
    }
    free_raw(it->first);
    account(0, -static_cast<std::int64_t>(kSlab));
    it = slabs_.erase(it);
  }
}

void Pool::trim() {
  const std::lock_guard lock(mutex_);
  trim_locked();
}

void Pool::set_limit(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
  if (limit_ != 0 && stats_.in_use + stats_.cached > limit_) trim_locked();
}

std::int64_t Pool::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

PoolStats Pool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace tenon::cuda
