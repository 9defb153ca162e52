// The lock of versions, and the two ways to assign: in place, or in other memory while readers keep
// the old value.
#include "device/versions.h"

#include <condition_variable>
#include <mutex>

namespace tenon {
namespace {

// number of steps that keep the old value after another thread has read it
constexpr std::uint32_t kServed = 64;

struct Versions {
  std::mutex mutex;
  std::condition_variable ended;  // signalled when a step that assigns in place ends
};
Versions& versions() {
  static Versions* const instance = new Versions;
  return *instance;
}

std::uint32_t this_thread() noexcept {
  static std::atomic<std::uint32_t> last{0};
  thread_local const std::uint32_t number = ++last;
  return number;
}

std::byte* memory_of(Buffer& buffer) { return static_cast<std::byte*>(buffer.data()); }

}  // namespace

void note_assigned(Buffer& buffer) noexcept {
  buffer.access.assigner.store(this_thread(), std::memory_order_relaxed);
}

bool assigned_here(const Buffer& buffer) noexcept {
  return buffer.access.assigner.load(std::memory_order_relaxed) == this_thread();
}

// Without the lock, a reader and a result could both make a holder of the memory, of which one
// would free it while the other is in use.
void hold_value(Buffer& result, Buffer& variable) {
  std::shared_ptr<Buffer> before;  // freed without the lock
  Versions& v = versions();
  std::unique_lock lock(v.mutex);
  v.ended.wait(lock, [&] { return !variable.access.in_place; });
  before = result.mirror(&variable);
}

void keep_shared_value(Buffer& buffer) {
  if (!buffer.is_shared()) return;
  std::shared_ptr<Buffer> own = Buffer::allocate(buffer.bytes(), buffer.device());
  own->copy_from(buffer, buffer.bytes());
  buffer.adopt(std::move(own));
}

// Call under the lock. Returns false while a step is assigning in place; try again when it has
// ended.
bool BufferUse::try_begin(std::span<Buffer* const> assigned, std::span<Buffer* const> read,
                          int& taken) {
  bool ready = true;
  for (Buffer* buffer : read) {
    Buffer::Access& access = buffer->access;
    if (access.assigner.load(std::memory_order_relaxed) != 0 && !assigned_here(*buffer))
      access.served = kServed;
    ready &= !access.in_place;
  }
  for (std::size_t k = 0; k < assigned.size() && taken < 0; ++k)
    if (assigned[k]->access.assigning) taken = static_cast<int>(k);
  if (taken >= 0 || !ready) return taken >= 0;
  for (Buffer* buffer : read) {
    read_.push_back({buffer, buffer->share(), memory_of(*buffer), false});
    ++buffer->access.readers;
  }
  for (Buffer* buffer : assigned) {
    Buffer::Access& access = buffer->access;
    const bool beside = access.readers > 0 || access.served > 0 || buffer->is_shared();
    if (beside) buffer->share();
    assigned_.push_back({buffer, nullptr, memory_of(*buffer), beside});
    if (access.served > 0) --access.served;
    note_assigned(*buffer);
    access.assigning = true;
    access.in_place = !beside;
  }
  return true;
}

int BufferUse::begin(std::span<Buffer* const> assigned, std::span<Buffer* const> read) {
  assigned_.reserve(assigned.size());
  read_.reserve(read.size());
  int taken = -1;
  try {
    {
      Versions& v = versions();
      std::unique_lock lock(v.mutex);
      v.ended.wait(lock, [&] { return try_begin(assigned, read, taken); });
    }
    // Nothing writes the old values now, so they are copied without the lock.
    for (Share& share : assigned_) {
      if (!share.beside) continue;
      share.held = Buffer::allocate(share.buffer->bytes());
      if (share.buffer->bytes() != 0) share.held->copy_from(*share.buffer, share.buffer->bytes());
      share.memory = memory_of(*share.held);
    }
  } catch (...) {
    abandon();
    throw;
  }
  return taken;
}

void BufferUse::finish(bool good) noexcept {
  if (assigned_.empty() && read_.empty()) return;
  {
    const std::lock_guard lock(versions().mutex);
    for (Share& share : assigned_) {
      if (good && share.beside) share.held = share.buffer->adopt(std::move(share.held));
      share.buffer->access.assigning = share.buffer->access.in_place = false;
    }
    for (Share& share : read_) --share.buffer->access.readers;
  }
  if (!assigned_.empty()) versions().ended.notify_all();
  assigned_.clear();  // frees the old values, unless they have readers
  read_.clear();
}

bool WholeWrite::begin(Buffer& buffer) {
  bool beside = false;
  {
    const std::lock_guard lock(versions().mutex);
    Buffer::Access& access = buffer.access;
    if (access.assigning) return false;
    beside = access.readers > 0 || access.served > 0 || buffer.is_shared();
    if (beside) buffer.share();
    if (access.served > 0) --access.served;
    note_assigned(buffer);
    access.assigning = true;
    access.in_place = !beside;
    buffer_ = &buffer;
  }
  if (beside) held_ = Buffer::allocate(buffer.bytes());
  return true;
}

void WholeWrite::finish(bool good) noexcept {
  if (buffer_ == nullptr) return;
  {
    const std::lock_guard lock(versions().mutex);
    if (good && held_ != nullptr) held_ = buffer_->adopt(std::move(held_));
    buffer_->access.assigning = buffer_->access.in_place = false;
  }
  versions().ended.notify_all();
  buffer_ = nullptr;
  held_.reset();
}

}  // namespace tenon
