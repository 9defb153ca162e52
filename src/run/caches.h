// What the runner keeps so as not to make it again: programs, traces, arenas. All of it is entered
// in one ledger, which has a limit in bytes; beyond it what was used least recently goes.
//
// Arenas are told, but do not count: a function needs the one that it runs in, however large.
//
// An entry that goes is only taken out of its owner's table: whoever runs it holds a share and ends
// undisturbed. Finding an entry costs no more than one atomic write here; only a new one takes the
// ledger's lock. Lock order: the ledger's is never held while an owner's is taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "plan/program.h"

namespace tenon {

class CacheEntry {
 public:
  enum class Kind { Program, Trace, Arenas };
  explicit CacheEntry(Kind kind) : kind_(kind) {}
  virtual ~CacheEntry();
  CacheEntry(const CacheEntry&) = delete;
  CacheEntry& operator=(const CacheEntry&) = delete;

  /// Leaves its owner's table. Unless `all`, an owner may keep it: what it used last.
  virtual void leave(bool all) = 0;
  /// Says that it is being used.
  void touch() noexcept;
  /// Bytes that it holds more, or less, than it told before.
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

/// Enters a new one; makes room for it.
void enter(const std::shared_ptr<CacheEntry>& entry);

/// Bytes of host memory that a planned program takes, about: its steps with their regions, its
/// values, its texts.
std::int64_t footprint(const Program& program);

}  // namespace tenon
