// Buffers of single numbers.
#include "run/number_buffer.h"

#include <cstdint>

#include <tenon/error.h>

#include "device/buffer.h"

namespace tenon {
namespace {

template <class T>
std::shared_ptr<Buffer> buffer_with(T number, Device device) {
  auto buffer = Buffer::allocate(sizeof number, device);
  buffer->write(&number, sizeof number);
  return buffer;
}

}  // namespace

std::shared_ptr<Buffer> number_buffer(Scalar value, DType dtype, Device device) {
  switch (dtype) {
    case DType::Bool:
      return buffer_with<std::uint8_t>(value.is_zero() ? 0 : 1, device);
    case DType::UInt8:
      return buffer_with(static_cast<std::uint8_t>(value.whole()), device);
    case DType::Int8:
      return buffer_with(static_cast<std::int8_t>(value.whole()), device);
    case DType::Int32:
      return buffer_with(static_cast<std::int32_t>(value.whole()), device);
    case DType::Int64:
      return buffer_with(value.whole(), device);
    case DType::Float16:
      return buffer_with(float16(static_cast<float>(value.real())), device);
    case DType::BFloat16:
      return buffer_with(bfloat16(static_cast<float>(value.real())), device);
    case DType::Float32:
      return buffer_with(static_cast<float>(value.real()), device);
    case DType::Float64:
      return buffer_with(value.real(), device);
  }
  throw InternalError("a number of an unknown dtype");
}

}  // namespace tenon
