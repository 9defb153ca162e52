// Two magazines a thread, so that taking and giving in turn at a boundary costs no lock. Memory is
// taken in slabs of blocks, which have no allocator's words between them.
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
constexpr int kMagazine = 0;  // a block that is used after it was given back is to be seen
constexpr int kSlab = 1;
#else
constexpr int kMagazine = 128;  // blocks
constexpr int kSlab = 64;       // blocks, a bit each
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

// Blocks side by side, freed once none of them is in use. Their numbers follow from the slab's.
struct Slab {
  std::byte* memory = nullptr;
  std::uint64_t unused = 0;  // a bit a block
  std::uint32_t open = 0;    // place among those that have unused blocks
};
constexpr std::uint64_t kWhole = ~std::uint64_t{0} >> (64 - kSlab);

class Depot {
 public:
  /// As many blocks as there is room for, or as slabs have left, or as a new one has; their count.
  int make(std::span<NodeBlock> into) {
    const std::lock_guard lock(mutex_);
    if (open_.empty()) add_slab();
    int count = 0;
    while (!open_.empty() && count < std::ssize(into)) {
      const std::uint32_t number = open_.back();
      Slab& slab = slabs_[number];
      // The highest first: the last one is the first to be used.
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
      // The last in is the first out.
      if (slab.unused != 0) close(slab);
      open(number);
      slab.unused |= std::uint64_t{1} << (block.number - 1) % kSlab;
      if (slab.unused == kWhole) remove(slab);
    }
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
  std::int64_t bytes() noexcept {
    const std::lock_guard lock(mutex_);
    return static_cast<std::int64_t>((slabs_.size() - gone_.size()) * kSlab * kNodeBlock);
  }

 private:
  void add_slab() {
    if (gone_.empty()) {
      // Room for all slabs there are, so that giving blocks back never allocates.
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
  std::vector<std::uint32_t> open_;  // slabs that have unused blocks
  std::vector<std::uint32_t> gone_;  // those without memory
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
    try {
      static const PerThread<Leaving> leaving;
      (void)leaving.get();
    } catch (const std::bad_alloc&) {  // nobody would give its blocks back
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
