// Types, and the elements of views in row-major order.
#include "io/pt_views.h"

#include <algorithm>
#include <cstring>

#include <tenon/error.h>

#include "io/byte_order.h"

namespace tenon::io {
namespace {

constexpr TorchType kTorchTypes[] = {
    {"BoolStorage", "bool", DType::Bool, 1},
    {"ByteStorage", "uint8", DType::UInt8, 1},
    {"CharStorage", "int8", DType::Int8, 1},
    {"IntStorage", "int32", DType::Int32, 4},
    {"ShortStorage", "int16", DType::Int32, 2},
    {"LongStorage", "int64", DType::Int64, 8},
    {"HalfStorage", "float16", DType::Float16, 2},
    {"BFloat16Storage", "bfloat16", DType::BFloat16, 2},
    {"FloatStorage", "float32", DType::Float32, 4},
    {"DoubleStorage", "float64", DType::Float64, 8},
    {"UntypedStorage", "", DType::UInt8, 1},
};

std::string gathered(const TorchView& view, std::string_view bytes) {
  const auto item = static_cast<std::size_t>(view.type->item);
  const auto count = static_cast<std::size_t>(view.shape().numel());
  std::string out(count * item, '\0');
  std::uint64_t index[kMaxRank] = {};
  std::uint64_t from = view.offset;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out.data() + i * item, bytes.data() + from * item, item);
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      from += view.strides[axis];
      if (++index[axis] < view.sizes[axis]) break;
      from -= view.strides[axis] * view.sizes[axis];
      index[axis] = 0;
    }
  }
  return out;
}

std::string widened_to_int32(std::string_view narrow) {
  std::string out(narrow.size() * 2, '\0');
  for (std::size_t i = 0; i < narrow.size() / 2; ++i) {
    std::int16_t from = 0;
    std::memcpy(&from, narrow.data() + 2 * i, sizeof from);
    const std::int32_t value = from;
    std::memcpy(out.data() + 4 * i, &value, sizeof value);
  }
  return out;
}

}  // namespace

const TorchType* torch_type(std::string_view name) noexcept {
  for (const std::string_view room : {"cuda.", "storage."})
    if (name.starts_with(room)) name.remove_prefix(room.size());
  for (const TorchType& type : kTorchTypes)
    if (!name.empty() && (type.storage == name || type.name == name)) return &type;
  return nullptr;
}

const TorchType& torch_type(DType dtype) noexcept {
  const auto* found = std::find_if(std::begin(kTorchTypes), std::end(kTorchTypes),
                                   [&](const TorchType& type) { return type.dtype == dtype; });
  return *found;
}

std::string_view TorchStorage::read() const {
  if (entry == nullptr) return bytes;
  if (checked) return entry->packed;
  const std::string_view out = archive->stored(*entry);
  checked = true;
  return out;
}

Shape TorchView::shape() const {
  std::int64_t out[kMaxRank] = {};
  std::copy(sizes, sizes + rank, out);
  return Shape(out, rank);
}

bool TorchView::contiguous() const noexcept {
  std::uint64_t step = 1;
  for (int i = rank; i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != step) return false;
    step *= sizes[i];
  }
  return true;
}

Tensor read_view(const TorchView& view) {
  const TorchStorage& storage = *view.storage;
  const TorchType& type = *view.type;
  const Shape shape = view.shape();
  if (shape.numel() == 0) return Tensor::from_data("", shape, type.dtype, Device{});
  const std::string_view bytes = storage.read();
  const bool narrow = type.item != item_size(type.dtype);
  if (view.contiguous() && !storage.swapped && !narrow && type.dtype != DType::Bool)
    return Tensor::from_data(bytes.data() + view.offset * type.item, shape, type.dtype, Device{});
  std::string own = gathered(view, bytes);
  if (storage.swapped)
    swap_bytes(own.data(), static_cast<std::size_t>(type.item), own.size() / type.item);
  if (narrow) own = widened_to_int32(own);
  if (type.dtype == DType::Bool) normalize_bools(own.data(), own.size());
  return Tensor::from_data(own.data(), shape, type.dtype, Device{});
}

}  // namespace tenon::io
