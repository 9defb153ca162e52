// The host side of Buffer: a caching pool with two size classes for each power of two.
#include "device/buffer.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <tenon/error.h>

#include "base/str.h"
#include "device/backend.h"
#include "device/copy.h"
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

void* take(std::size_t reserved) {
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

DeviceMemory& memory_of(Device device) { return *backend_of(device).memory(); }

// Called by destructors: if the list cannot grow, the block goes back to the system.
void give(void* block, std::size_t reserved) noexcept {
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

}  // namespace

std::shared_ptr<Buffer> Buffer::allocate(std::size_t bytes, Device device) {
  if (bytes > (std::size_t{1} << 46))
    throw MemoryError(cat("a tensor of ", bytes, " bytes was asked for: check the shapes"));
  std::shared_ptr<Buffer> buffer(new Buffer);
  const bool host = device.kind == Device::Kind::Cpu;
  const std::size_t reserved =
      host ? size_class(bytes, kAlignment) : std::max<std::size_t>(bytes, 1);
  buffer->data_ = host ? take(reserved) : memory_of(device).allocate(reserved, device.index);
  buffer->bytes_ = bytes;
  buffer->reserved_ = reserved;
  buffer->device_ = device;
  return buffer;
}

std::shared_ptr<Buffer> Buffer::none(Device device) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->device_ = device;
  return buffer;
}

std::shared_ptr<Buffer> Buffer::window(std::shared_ptr<Buffer> parent, std::size_t offset,
                                       std::size_t bytes) {
  if (offset > parent->bytes_ || bytes > parent->bytes_ - offset)
    throw InternalError(
        cat("buffer window [", offset, ", +", bytes, ") outside ", parent->bytes_, " bytes"));
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->data_ = static_cast<char*>(parent->data_) + offset;
  buffer->bytes_ = bytes;
  buffer->device_ = parent->device_;
  buffer->parent_ = std::move(parent);
  return buffer;
}

std::shared_ptr<Buffer> Buffer::share() {
  if (parent_ == nullptr) {
    std::shared_ptr<Buffer> own(new Buffer);
    own->data_ = data_;
    own->bytes_ = bytes_;
    own->reserved_ = std::exchange(reserved_, 0);
    own->device_ = device_;
    parent_ = std::move(own);
  }
  return parent_;
}

std::shared_ptr<Buffer> Buffer::adopt(std::shared_ptr<Buffer> memory) noexcept {
  data_ = memory->data_;
  return std::exchange(parent_, std::move(memory));
}

std::shared_ptr<Buffer> Buffer::mirror(Buffer* other) {
  std::shared_ptr<Buffer> memory = other == nullptr ? nullptr : other->share();
  data_ = other == nullptr ? nullptr : other->data_;
  bytes_ = other == nullptr ? 0 : other->bytes_;
  return std::exchange(parent_, std::move(memory));
}

Buffer::~Buffer() {
  if (reserved_ == 0) return;
  if (device_.kind == Device::Kind::Cpu)
    give(data_, reserved_);
  else
    find_backend(device_.kind)->memory()->release(data_, reserved_, device_.index);
}

void Buffer::write(const void* host, std::size_t bytes) {
  if (device_.kind == Device::Kind::Cpu)
    std::memmove(data_, host, bytes);
  else
    memory_of(device_).from_host(data_, host, bytes, device_.index);
}

void Buffer::read(void* host, std::size_t bytes) const {
  if (device_.kind == Device::Kind::Cpu)
    std::memmove(host, data_, bytes);
  else
    memory_of(device_).to_host(host, data_, bytes, device_.index);
}

void Buffer::copy_from(const Buffer& source, std::size_t bytes) {
  copy_bytes(data_, device_, source.data_, source.device_, bytes);
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device,
                std::size_t bytes) {
  const bool from_host = from_device.kind == Device::Kind::Cpu;
  if (to_device.kind == Device::Kind::Cpu) {
    if (from_host)
      std::memmove(to, from, bytes);
    else
      memory_of(from_device).to_host(to, from, bytes, from_device.index);
  } else if (from_host) {
    memory_of(to_device).from_host(to, from, bytes, to_device.index);
  } else if (to_device.kind == from_device.kind) {
    memory_of(to_device).copy(to, to_device.index, from, from_device.index, bytes);
  } else {  // different backends: copy through the host
    const std::shared_ptr<Buffer> host = Buffer::allocate(bytes);
    copy_bytes(host->data(), {}, from, from_device, bytes);
    copy_bytes(to, to_device, host->data(), {}, bytes);
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
