// Names and bit patterns of elements.
#include "cuda/engines/launch/words.h"

#include "scalar/convert.h"

namespace tenon::cuda {

const char* element_name(DType dtype) {
  static constexpr const char* kNames[] = {
      nullptr,           "element::UInt8",   "element::Int8",     "element::Int32",
      "element::Int64",  "element::Float16", "element::BFloat16", "element::Float32",
      "element::Float64"};
  return kNames[static_cast<int>(dtype)];
}

std::int64_t repeated_bits(DType dtype, Scalar number) {
  std::uint64_t bits = 0;
  const float half = static_cast<float>(number.real());
  switch (dtype) {
    case DType::Bool:
      bits = !number.is_zero();
      break;
    case DType::Float16:
      bits = scalar::float16_of(half);
      break;
    case DType::BFloat16:
      bits = scalar::bfloat16_of(half);
      break;
    case DType::Float32:
      bits = scalar::bits_of(half);
      break;
    case DType::Float64:
      bits = scalar::bits_of(number.real());
      break;
    default:
      bits = static_cast<std::uint64_t>(number.whole());
  }
  for (std::int64_t width = static_cast<std::int64_t>(item_size(dtype)); width < 8; width *= 2) {
    bits &= (std::uint64_t{1} << (8 * width)) - 1;
    bits |= bits << (8 * width);
  }
  return static_cast<std::int64_t>(bits);
}

}  // namespace tenon::cuda
