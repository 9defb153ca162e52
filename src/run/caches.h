// Bounded caches of the runner: programs, traces, arenas. All entries are in one list with a limit
// in bytes. Above the limit the least recently used entries are evicted.
//
// Arenas are reported but do not count towards the limit: a function needs the arena that it runs
// in, however large.
//
// Eviction only removes an entry from its owner's table. A thread that runs the entry holds a
// reference and finishes undisturbed. Finding an entry costs one atomic write here; only a new
// entry takes the list's lock. Lock order: the list's lock is never held while an owner's lock is
// taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "plan/program/program.h"

namespace tenon {

class CacheEntry {
 public:
  enum class Kind { Program, Trace, Arenas };
  explicit CacheEntry(Kind kind) : kind_(kind) {}
  virtual ~CacheEntry();
  CacheEntry(const CacheEntry&) = delete;
  CacheEntry& operator=(const CacheEntry&) = delete;

  /// Removes the entry from its owner's table. Unless `all` is true, an owner may keep the entry
  /// that it used last.
  virtual void leave(bool all) = 0;
  /// Marks the entry as used now.
  void touch() noexcept;
  /// Adds the bytes that the entry holds in addition to its last report; negative if it holds
  /// fewer.
  void charge(std::int64_t bytes) noexcept;
  Kind kind() const noexcept { return kind_; }
  bool counts() const noexcept { return kind_ != Kind::Arenas; }
  std::int64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

 private:
  const Kind kind_;
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::uint64_t> used_{0};
};

/// Adds a new entry and evicts others to make room for it.
void enter(const std::shared_ptr<CacheEntry>& entry);

/// Approximate bytes of host memory of a planned program: its steps with their regions, its values,
/// its texts.
std::int64_t footprint(const Program& program);

}  // namespace tenon
