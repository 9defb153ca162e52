// Creates and reads the leaves that hold host code, and makes the attributes of calls.
#include "graph/host_code.h"

#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include <tenon/error.h>

#include "base/digest.h"
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

std::shared_ptr<const OwnKernelCode> own_kernel_code(CudaKernel kernel) {
  Digester digester;
  digester.add(kernel.source);
  digester.add(kernel.entry);
  for (const Scalar& number : kernel.numbers) {
    digester.add(std::uint64_t{number.is_whole()});
    digester.add(number.is_whole() ? static_cast<std::uint64_t>(number.whole())
                                   : std::bit_cast<std::uint64_t>(number.real()));
  }
  const Digest digest = digester.result();
  OwnKernelCode code{std::move(kernel), {}};
  code.key.mix(digest.lo);
  code.key.mix(digest.hi);
  code.key.mix(reinterpret_cast<std::uintptr_t>(code.kernel.launch));
  return std::make_shared<const OwnKernelCode>(std::move(code));
}

bool has_elements(const std::vector<TensorType>& types) {
  std::int64_t elements = 0;
  for (const TensorType& type : types) elements |= type.shape.numel();
  return elements != 0;
}

const std::string& checked_operation_name(const std::string& name) {
  if (name.empty() || name.find_first_of("\n\r\\") != std::string::npos)
    throw make_error<ValueError>("an operation is called '", name,
                                 "': give it a name of one line without backslashes");
  return name;
}

HostCallAttrs host_call_attrs(std::uint64_t name, HostCallTypes types,
                              std::shared_ptr<const OwnKernelCode> kernel) {
  HostCallAttrs attrs;
  attrs.name = name;
  if (kernel != nullptr) attrs.code = kernel->key;
  attrs.kernel = std::move(kernel);
  for (const TensorType& type : types.types) {
    attrs.key.mix(static_cast<std::uint64_t>(type.dtype) |
                  static_cast<std::uint64_t>(type.shape.rank()) << 8);
    for (const std::int64_t size : type.shape) attrs.key.mix(static_cast<std::uint64_t>(size));
  }
  attrs.types = std::make_shared<const HostCallTypes>(std::move(types));
  return attrs;
}

const char* shown_name(Op op, const Attrs& attrs) {
  std::uint64_t label = 0;
  if (const auto* call = attrs.get_if<HostCallAttrs>())
    label = call->name;
  else if (const auto* element = attrs.get_if<ElementAttrs>())
    label = element->name;
  else
    return op_row(op).name;
  return label_text(static_cast<std::uint32_t>(label)).c_str();
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
