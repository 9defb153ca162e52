// Two magazines a thread, so that taking and giving in turn at a boundary costs no lock.
#include "graph/node_pool.h"

#include <mutex>
#include <new>
#include <span>
#include <vector>

namespace tenon {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr int kMagazine = 0;  // a block that is used after it was given back is to be seen
#else
constexpr int kMagazine = 128;  // blocks
#endif
constexpr std::size_t kDepot = 512;  // magazines: 13 MB with their lists
constexpr std::size_t kLine = 64;    // bytes of a cache
constexpr std::align_val_t kAlignment{kLine};

// Told by their addresses, as a list through the blocks would wait for memory at each. The last in
// is the first out.
struct Magazine {
  NodeBlock blocks[kMagazine + 1];
  int count = 0;

  void push(NodeBlock block) noexcept { blocks[count++] = block; }
  NodeBlock pop() noexcept {
    constexpr int kAhead = 4;  // blocks that are on their way to the cache
    if (count > kAhead) {
      const auto* next = static_cast<const std::byte*>(blocks[count - 1 - kAhead].memory);
      for (std::size_t line = 0; line < kNodeBlock; line += kLine)
        __builtin_prefetch(next + line, 1);
    }
    return blocks[--count];
  }
};

class Depot {
 public:
  NodeBlock make() {
    const std::lock_guard lock(mutex_);
    if (free_numbers_.empty()) {
      // Room for all numbers there are, so that giving one back never allocates.
      if (last_ == free_numbers_.capacity()) free_numbers_.reserve(2 * std::size_t{last_} + 64);
      free_numbers_.push_back(++last_);
    }
    void* const memory = ::operator new(kNodeBlock, kAlignment);
    const std::uint32_t number = free_numbers_.back();
    free_numbers_.pop_back();
    return {memory, number};
  }
  void free(std::span<const NodeBlock> gone) noexcept {
    for (const NodeBlock& block : gone) ::operator delete(block.memory, kAlignment);
    const std::lock_guard lock(mutex_);
    for (const NodeBlock& block : gone) free_numbers_.push_back(block.number);
  }
  /// Whether one waited.
  bool take(Magazine& into) noexcept {
    const std::lock_guard lock(mutex_);
    if (full_ == 0) return false;
    into = magazines_[--full_];
    return true;
  }
  void give(const Magazine& magazine) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (full_ < kDepot) {
        magazines_[full_++] = magazine;
        return;
      }
    }
    free({magazine.blocks, static_cast<std::size_t>(magazine.count)});
  }
  void trim() noexcept {
    for (Magazine gone; take(gone);) free({gone.blocks, static_cast<std::size_t>(gone.count)});
  }
  std::int64_t idle_bytes() noexcept {
    const std::lock_guard lock(mutex_);
    return static_cast<std::int64_t>(full_ * kMagazine * kNodeBlock);
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint32_t> free_numbers_;  // that no living block has
  std::uint32_t last_ = 0;
  Magazine magazines_[kDepot];
  std::size_t full_ = 0;
};

Depot& depot() {
  static Depot* const instance = new Depot;  // tensors in static storage outlive it
  return *instance;
}

// A thread's own. Trivially destroyed, so that nodes may be released after Leaving has run.
struct Own {
  Magazine magazines[2];
  int loaded;  // which of them; the other one is full or empty
  bool started, left;

  Magazine& current() noexcept { return magazines[loaded]; }
  Magazine& other() noexcept { return magazines[1 - loaded]; }
  void swap() noexcept { loaded = 1 - loaded; }
};
thread_local Own t_own{};

struct Leaving {
  ~Leaving() {
    for (const Magazine& magazine : t_own.magazines)
      depot().free({magazine.blocks, static_cast<std::size_t>(magazine.count)});
    t_own.left = true;
  }
};

// Whether the thread's own can be used.
bool has_own(Own& own) noexcept {
  if (kMagazine == 0) return false;
  if (!own.started) {
    thread_local const Leaving leaving;
    own.started = true;
  }
  return !own.left;
}

}  // namespace

NodeBlock take_node_block() {
  Own& own = t_own;
  if (!has_own(own)) return depot().make();
  if (own.current().count == 0) {
    own.swap();
    if (own.current().count == 0 && !depot().take(own.current())) return depot().make();
  }
  return own.current().pop();
}

void give_node_block(NodeBlock block) noexcept {
  Own& own = t_own;
  if (!has_own(own)) return depot().free({&block, 1});
  if (own.current().count == kMagazine) {
    own.swap();
    if (own.current().count != 0) {
      depot().give(own.current());
      own.current().count = 0;
    }
  }
  own.current().push(block);
}

void trim_node_blocks() noexcept { depot().trim(); }
std::int64_t idle_node_bytes() noexcept { return depot().idle_bytes(); }

}  // namespace tenon
