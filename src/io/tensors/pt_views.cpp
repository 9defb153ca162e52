// The table of PyTorch's element types, and reading of views: elements of a storage in row-major
// order, whatever their strides.
#include "io/tensors/pt_views.h"

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
    {"ShortStorage", "int16", DType::Int32, 2, Conversion::Int16},
    {"LongStorage", "int64", DType::Int64, 8},
    {"HalfStorage", "float16", DType::Float16, 2},
    {"BFloat16Storage", "bfloat16", DType::BFloat16, 2},
    {"FloatStorage", "float32", DType::Float32, 4},
    {"DoubleStorage", "float64", DType::Float64, 8},
    {"UntypedStorage", "", DType::UInt8, 1},
    {"", "uint16", DType::Int32, 2, Conversion::UInt16},
    {"", "uint32", DType::Int64, 4, Conversion::UInt32},
    {"", "float8_e4m3fn", DType::Float32, 1, Conversion::E4M3FN},
    {"", "float8_e5m2", DType::Float32, 1, Conversion::E5M2},
    {"", "float8_e4m3fnuz", DType::Float32, 1, Conversion::E4M3FNUZ},
    {"", "float8_e5m2fnuz", DType::Float32, 1, Conversion::E5M2FNUZ},
    {"", "float8_e8m0fnu", DType::Float32, 1, Conversion::E8M0FNU},
    {"", "uint64", DType::Int64, 8, Conversion::Unreadable},
    {"", "complex32", DType::Float32, 4, Conversion::Unreadable},
    {"ComplexFloatStorage", "complex64", DType::Float32, 8, Conversion::Unreadable},
    {"ComplexDoubleStorage", "complex128", DType::Float64, 16, Conversion::Unreadable},
    {"QInt8Storage", "qint8", DType::Int8, 1, Conversion::Unreadable},
    {"QUInt8Storage", "quint8", DType::UInt8, 1, Conversion::Unreadable},
    {"QInt32Storage", "qint32", DType::Int32, 4, Conversion::Unreadable},
    {"QUInt4x2Storage", "quint4x2", DType::UInt8, 1, Conversion::Unreadable},
    {"QUInt2x4Storage", "quint2x4", DType::UInt8, 1, Conversion::Unreadable},
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
  const bool own_type = type.conversion == Conversion::None;
  if (view.contiguous() && !storage.swapped && own_type && type.dtype != DType::Bool)
    return Tensor::from_data(bytes.data() + view.offset * type.item, shape, type.dtype, Device{});
  std::string own = gathered(view, bytes);
  if (storage.swapped)
    swap_bytes(own.data(), static_cast<std::size_t>(type.item), own.size() / type.item);
  if (!own_type) own = converted(type.conversion, own);
  if (type.dtype == DType::Bool) normalize_bools(own.data(), own.size());
  return Tensor::from_data(own.data(), shape, type.dtype, Device{});
}

}  // namespace tenon::io
