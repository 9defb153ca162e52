// The list of all cache entries, the limit in bytes, and the eviction of the least recently used
// entry.
#include "run/caches.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <tenon/compute.h>
#include <tenon/error.h>

#include "base/str.h"
#include "device/host_pool.h"
#include "graph/node_pool.h"
#include "plan/steps/sized_plan.h"

namespace tenon {
namespace {

constexpr std::int64_t kLimit = std::int64_t{512} << 20;
// Estimated bytes of a kernel and the objects around a region.
constexpr std::int64_t kOfAStep = 4096;

// Statistics of one kind of entry; written by any thread that holds an entry of this kind.
struct Totals {
  std::atomic<std::int64_t> count{0}, bytes{0};
};

struct Ledger {
  std::mutex mutex;
  std::vector<std::weak_ptr<CacheEntry>> entries;
  std::size_t size_after_cleanup = 0;  // size after the last cleanup
  std::atomic<std::int64_t> limit{kLimit}, bytes{0};
  std::atomic<std::uint64_t> now{1};
  std::array<Totals, 3> totals;
};

// Never destroyed and built without allocation, because entries that are destroyed late still use
// it.
Ledger& ledger() noexcept {
  alignas(Ledger) static std::byte place[sizeof(Ledger)];
  static Ledger* const instance = new (place) Ledger;
  return *instance;
}

using Entries = std::vector<std::shared_ptr<CacheEntry>>;

// All live entries; expired entries are removed from the list.
Entries living() {
  Ledger& l = ledger();
  const std::lock_guard lock(l.mutex);
  Entries out;
  // Allocated first, because nothing may throw while entries are taken out.
  out.reserve(l.entries.size());
  std::erase_if(l.entries, [&](const std::weak_ptr<CacheEntry>& weak) {
    std::shared_ptr<CacheEntry> entry = weak.lock();
    if (entry == nullptr) return true;
    out.push_back(std::move(entry));
    return false;
  });
  l.size_after_cleanup = l.entries.size();
  return out;
}

// Evicts down to seven eighths of the limit, so that not every new entry starts a search.
void make_room() {
  Ledger& l = ledger();
  const std::int64_t limit = l.limit.load(std::memory_order_relaxed);
  if (l.bytes.load(std::memory_order_relaxed) <= limit) return;
  // Other threads use entries meanwhile. Each entry's last use is read once, otherwise the sort
  // would see changing keys.
  struct LastUse {
    std::uint64_t at;
    std::shared_ptr<CacheEntry> entry;
  };
  std::vector<LastUse> uses;
  {
    Entries entries = living();
    uses.reserve(entries.size());
    for (std::shared_ptr<CacheEntry>& entry : entries) {
      const std::uint64_t at = entry->used();
      uses.push_back({at, std::move(entry)});
    }
  }
  std::sort(uses.begin(), uses.end(),
            [](const LastUse& a, const LastUse& b) { return a.at < b.at; });
  for (LastUse& use : uses) {
    if (l.bytes.load(std::memory_order_relaxed) <= limit / 8 * 7) break;
    use.entry->leave(false);
    use.entry.reset();  // usually the last reference
  }
}

}  // namespace

CacheEntry::~CacheEntry() {
  Ledger& l = ledger();
  Totals& totals = l.totals[static_cast<std::size_t>(kind_)];
  if (counts()) l.bytes.fetch_sub(bytes(), std::memory_order_relaxed);
  totals.bytes.fetch_sub(bytes(), std::memory_order_relaxed);
  if (used() != 0) totals.count.fetch_sub(1, std::memory_order_relaxed);
}

void CacheEntry::touch() noexcept {
  used_.store(ledger().now.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void CacheEntry::charge(std::int64_t bytes) noexcept {
  Ledger& l = ledger();
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (counts()) l.bytes.fetch_add(bytes, std::memory_order_relaxed);
  l.totals[static_cast<std::size_t>(kind_)].bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void enter(const std::shared_ptr<CacheEntry>& entry) {
  Ledger& l = ledger();
  l.now.fetch_add(1, std::memory_order_relaxed);
  entry->touch();
  l.totals[static_cast<std::size_t>(entry->kind())].count.fetch_add(1, std::memory_order_relaxed);
  bool cleanup = false;
  {
    const std::lock_guard lock(l.mutex);
    l.entries.push_back(entry);
    cleanup = l.entries.size() > 2 * l.size_after_cleanup + 64;
  }
  if (cleanup) living();
  make_room();
}

std::int64_t footprint(const Program& program) {
  std::int64_t bytes = sizeof program;
  for (const Step& step : program.steps) {
    bytes += kOfAStep + footprint(step.region) + static_cast<std::int64_t>(sizeof step) +
             static_cast<std::int64_t>(step.passed_over.capacity());
    for (const std::shared_ptr<const Program>& body : step.region.opaque.bodies)
      // Body of a loop or branch, or the program of one of several devices.
      bytes += footprint(*body);
  }
  bytes += static_cast<std::int64_t>(program.values.capacity() * sizeof(Value));
  return bytes + program.graph.bytes();
}

CacheStats cache_stats() {
  const Ledger& l = ledger();
  CacheStats out;
  const auto read = [&l](CacheEntry::Kind kind) {
    const Totals& totals = l.totals[static_cast<std::size_t>(kind)];
    return CacheStats::Part{totals.count.load(std::memory_order_relaxed),
                            totals.bytes.load(std::memory_order_relaxed)};
  };
  out.programs = read(CacheEntry::Kind::Program);
  out.traces = read(CacheEntry::Kind::Trace);
  out.arenas = read(CacheEntry::Kind::Arenas);
  out.limit = l.limit.load(std::memory_order_relaxed);
  return out;
}

void set_cache_limit(std::int64_t bytes) {
  if (bytes < 0) throw ValueError(cat("cache limit = ", bytes, ": use 0 or more bytes"));
  ledger().limit.store(bytes, std::memory_order_relaxed);
  make_room();
}

void clear_caches() {
  for (std::shared_ptr<CacheEntry>& entry : living()) entry->leave(true);
  trim_node_blocks();
  host_pool_trim();
#ifdef __GLIBC__
  malloc_trim(0);  // the allocator keeps small freed blocks until it is told to return them
#endif
}

}  // namespace tenon
