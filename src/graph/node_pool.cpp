// Two magazines for each thread, so that alternating take and give at a magazine's boundary needs
// no lock. Memory comes in slabs of blocks, without an allocator's header between the blocks.
#include "graph/node_pool.h"

#include <bit>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "base/per_thread.h"

namespace tenon {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr int kMagazine = 0;  // so that use after free is detected
constexpr int kSlab = 1;
#else
constexpr int kMagazine = 128;  // blocks
constexpr int kSlab = 64;       // blocks, one bit each
#endif
constexpr std::size_t kDepot = 512;  // magazines: 13 MB with their lists
constexpr std::size_t kLine = 64;    // bytes of a cache line
constexpr std::align_val_t kAlignment{kLine};

// Stores addresses in an array: a linked list through the blocks would wait for memory at each
// block. Last in, first out.
struct Magazine {
  NodeBlock blocks[kMagazine + 1];
  int count = 0;

  void push(NodeBlock block) noexcept { blocks[count++] = block; }
  NodeBlock pop() noexcept {
    constexpr int kAhead = 4;  // blocks prefetched into the cache
    if (count > kAhead) {
      const auto* next = static_cast<const std::byte*>(blocks[count - 1 - kAhead].memory);
      for (std::size_t line = 0; line < kNodeBlock; line += kLine)
        __builtin_prefetch(next + line, 1);
    }
    return blocks[--count];
  }
};

// Contiguous blocks, freed once none of them is in use. Block numbers follow from the slab's
// number.
struct Slab {
  std::byte* memory = nullptr;
  std::uint64_t unused = 0;  // one bit for each block
  std::uint32_t open = 0;    // position among the slabs with unused blocks
};
constexpr std::uint64_t kWhole = ~std::uint64_t{0} >> (64 - kSlab);

class Depot {
 public:
  /// Takes blocks from slabs, or from a new slab, up to the size of `into`. Returns their count.
  int make(std::span<NodeBlock> into) {
    const std::lock_guard lock(mutex_);
    if (open_.empty()) add_slab();
    int count = 0;
    while (!open_.empty() && count < std::ssize(into)) {
      const std::uint32_t number = open_.back();
      Slab& slab = slabs_[number];
      // Highest number first: the last one taken is used first.
      for (; slab.unused != 0 && count < std::ssize(into); ++count) {
        const int k = 63 - std::countl_zero(slab.unused);
        slab.unused ^= std::uint64_t{1} << k;
        into[static_cast<std::size_t>(count)] = {
            slab.memory + static_cast<std::size_t>(k) * kNodeBlock,
            number * kSlab + static_cast<std::uint32_t>(k) + 1};
      }
      if (slab.unused == 0) open_.pop_back();
    }
    return count;
  }
  void free(std::span<const NodeBlock> gone) noexcept {
    const std::lock_guard lock(mutex_);
    for (const NodeBlock& block : gone) {
      const std::uint32_t number = (block.number - 1) / kSlab;
      Slab& slab = slabs_[number];
      // Last in, first out.
      if (slab.unused != 0) close(slab);
      open(number);
      slab.unused |= std::uint64_t{1} << (block.number - 1) % kSlab;
      if (slab.unused == kWhole) remove(slab);
    }
  }
  /// Returns whether a full magazine was available.
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
  std::int64_t bytes() noexcept {
    const std::lock_guard lock(mutex_);
    return static_cast<std::int64_t>((slabs_.size() - gone_.size()) * kSlab * kNodeBlock);
  }

 private:
  void add_slab() {
    if (gone_.empty()) {
      // Reserves space for all slabs, so that giving blocks back never allocates.
      for (std::vector<std::uint32_t>* list : {&gone_, &open_})
        if (list->capacity() <= slabs_.size()) list->reserve(2 * slabs_.size() + 1);
      slabs_.emplace_back();
      gone_.push_back(static_cast<std::uint32_t>(slabs_.size()) - 1);
    }
    Slab& slab = slabs_[gone_.back()];
    slab.memory = static_cast<std::byte*>(::operator new(kSlab* kNodeBlock, kAlignment));
    slab.unused = kWhole;
    open(gone_.back());
    gone_.pop_back();
  }
  void open(std::uint32_t number) noexcept {
    slabs_[number].open = static_cast<std::uint32_t>(open_.size());
    open_.push_back(number);
  }
  void close(const Slab& slab) noexcept {
    slabs_[open_.back()].open = slab.open;
    open_[slab.open] = open_.back();
    open_.pop_back();
  }
  void remove(Slab& slab) noexcept {
    gone_.push_back(open_[slab.open]);
    close(slab);
    ::operator delete(slab.memory, kAlignment);
    slab = {};
  }

  std::mutex mutex_;
  std::vector<Slab> slabs_;          // by number
  std::vector<std::uint32_t> open_;  // slabs with unused blocks
  std::vector<std::uint32_t> gone_;  // slab numbers without memory
  Magazine magazines_[kDepot];
  std::size_t full_ = 0;
};

Depot& depot() {
  // never destroyed: tensors in static storage outlive it
  static Depot* const instance = new Depot;
  return *instance;
}

// The magazines of a thread. Trivially destructible, so that nodes may be released after Leaving
// has run.
struct Own {
  Magazine magazines[2];
  int loaded;  // index of the current one; the other one is full or empty
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

// Whether the thread's own magazines can be used.
bool has_own(Own& own) noexcept {
  if (kMagazine == 0) return false;
  if (!own.started) {
    try {
      static const PerThread<Leaving> leaving;
      (void)leaving.get();
    } catch (const std::bad_alloc&) {  // no later call would give the thread's blocks back
      return false;
    }
    own.started = true;
  }
  return !own.left;
}

}  // namespace

NodeBlock take_node_block() {
  Own& own = t_own;
  if (!has_own(own)) {
    NodeBlock block;
    depot().make({&block, 1});
    return block;
  }
  if (own.current().count == 0) {
    own.swap();
    Magazine& magazine = own.current();
    if (magazine.count == 0 && !depot().take(magazine))
      magazine.count = depot().make({magazine.blocks, kSlab});
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
std::int64_t node_bytes() noexcept { return depot().bytes(); }

}  // namespace tenon
