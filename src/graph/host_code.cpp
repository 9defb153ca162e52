// Creates and reads the leaves that hold host code.
#include "graph/host_code.h"

#include <cstring>
#include <memory>
#include <utility>

#include "graph/node.h"

namespace tenon {
namespace {

using Address = const HostCode*;
constexpr std::size_t kAddressBytes = sizeof(void*);

struct HeldCode {
  HostCode code;
  std::shared_ptr<Buffer> buffer;
};

}  // namespace

HostCallAttrs host_call_attrs(std::uint64_t name, HostCallTypes types) {
  HostCallAttrs attrs;
  attrs.name = name;
  for (const TensorType& type : types.types) {
    attrs.key.mix(static_cast<std::uint64_t>(type.dtype) |
                  static_cast<std::uint64_t>(type.shape.rank()) << 8);
    for (const std::int64_t size : type.shape) attrs.key.mix(static_cast<std::uint64_t>(size));
  }
  attrs.types = std::make_shared<const HostCallTypes>(std::move(types));
  return attrs;
}

const char* shown_name(Op op, const Attrs& attrs) {
  const auto* call = attrs.get_if<HostCallAttrs>();
  return call == nullptr ? op_row(op).name
                         : label_text(static_cast<std::uint32_t>(call->name)).c_str();
}

Tensor code_leaf(HostCode code) {
  auto held = std::make_shared<HeldCode>(HeldCode{std::move(code), {}});
  held->buffer = Buffer::allocate(kAddressBytes);
  const Address address = &held->code;
  held->buffer->write(&address, kAddressBytes);
  Buffer* const buffer = held->buffer.get();
  // The node's handle to the buffer keeps the code too.
  return make_data(std::shared_ptr<Buffer>(std::move(held), buffer), Shape{}, DType::Int64);
}

const HostCode& code_at(const std::byte* element) {
  Address address = nullptr;
  std::memcpy(&address, element, kAddressBytes);
  return *address;
}

}  // namespace tenon
