// Takes memory from the host's pool or from a backend, and copies between devices.
#include "device/buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "device/backend.h"
#include "device/copy.h"
#include "device/host_pool.h"

namespace tenon {
namespace {

DeviceMemory& memory_of(Device device) { return *backend_of(device).memory(); }

}  // namespace

std::shared_ptr<Buffer> Buffer::allocate(std::size_t bytes, Device device) {
  if (bytes > (std::size_t{1} << 46))
    throw MemoryError(cat("a tensor of ", bytes, " bytes was asked for: check the shapes"));
  std::shared_ptr<Buffer> buffer(new Buffer);
  const bool host = device.kind == Device::Kind::Cpu;
  const std::size_t reserved = host ? host_block_size(bytes) : std::max<std::size_t>(bytes, 1);
  buffer->data_ =
      host ? take_host_block(reserved) : memory_of(device).allocate(reserved, device.index);
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
    give_host_block(data_, reserved_);
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

}  // namespace tenon
