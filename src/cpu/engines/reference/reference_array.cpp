// Arrays of the reference engine: reading, writing and rounding. No other file of the engine
// depends on how elements are stored.
#include <cmath>
#include <cstring>
#include <limits>

#include "base/index.h"
#include "cpu/engines/reference/reference.h"

namespace tenon::cpu::reference {

namespace {

template <class T>
T load(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* data, std::int64_t index, T value) {
  std::memcpy(data + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

double load_real(const std::byte* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::Float16:
      return static_cast<float>(load<float16>(data, index));
    case DType::BFloat16:
      return static_cast<float>(load<bfloat16>(data, index));
    case DType::Float32:
      return load<float>(data, index);
    default:
      return load<double>(data, index);
  }
}

std::int64_t load_whole(const std::byte* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::Bool:
      return load<std::uint8_t>(data, index) != 0;
    case DType::UInt8:
      return load<std::uint8_t>(data, index);
    case DType::Int8:
      return load<std::int8_t>(data, index);
    case DType::Int32:
      return load<std::int32_t>(data, index);
    default:
      return load<std::int64_t>(data, index);
  }
}

void store_real(std::byte* data, DType dtype, std::int64_t index, double value) {
  switch (dtype) {
    case DType::Float16:
      return store(data, index, float16(static_cast<float>(value)));
    case DType::BFloat16:
      return store(data, index, bfloat16(static_cast<float>(value)));
    case DType::Float32:
      return store(data, index, static_cast<float>(value));
    default:
      return store(data, index, value);
  }
}

void store_whole(std::byte* data, DType dtype, std::int64_t index, std::int64_t value) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8:
      return store(data, index, static_cast<std::uint8_t>(value));
    case DType::Int8:
      return store(data, index, static_cast<std::int8_t>(value));
    case DType::Int32:
      return store(data, index, static_cast<std::int32_t>(value));
    default:
      return store(data, index, value);
  }
}

}  // namespace

View contiguous(const Shape& shape, ValueId id) {
  View view;
  view.value = id;
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    view.stride[d] = stride;
    stride *= shape[d];
  }
  return view;
}

Array::Array(DType type, std::int64_t count) : dtype(type) {
  if (is_floating(type)) {
    real.resize(at(count));
  } else {
    whole.resize(at(count));
  }
}

std::int64_t Array::size() const {
  return static_cast<std::int64_t>(floating() ? real.size() : whole.size());
}

double Array::real_at(std::int64_t i) const {
  return floating() ? real[at(i)] : static_cast<double>(whole[at(i)]);
}

std::int64_t Array::whole_at(std::int64_t i) const {
  return floating() ? to_whole(real[at(i)]) : whole[at(i)];
}

void copy_element(Array& out, std::int64_t i, const Array& from, std::int64_t j) {
  if (from.floating())
    out.set(i, from.real_at(j));
  else
    out.set(i, from.whole_at(j));
}

void Array::set(std::int64_t i, double value) {
  if (floating()) {
    real[at(i)] = round_to(dtype, value);
  } else {
    whole[at(i)] = is_bool(dtype) ? value != 0 : wrap_to(dtype, to_whole(value));
  }
}

void Array::set(std::int64_t i, std::int64_t value) {
  if (floating()) {
    real[at(i)] = round_to(dtype, static_cast<double>(value));
  } else {
    whole[at(i)] = wrap_to(dtype, value);
  }
}

void Array::set(std::int64_t i, const Scalar& value) {
  if (value.is_whole())
    set(i, value.whole());
  else
    set(i, value.real());
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::Float16:
      return static_cast<float>(float16(static_cast<float>(value)));
    case DType::BFloat16:
      return static_cast<float>(bfloat16(static_cast<float>(value)));
    case DType::Float32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

std::int64_t wrap_to(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::Bool:
      return value != 0;
    case DType::UInt8:
      return static_cast<std::uint8_t>(value);
    case DType::Int8:
      return static_cast<std::int8_t>(value);
    case DType::Int32:
      return static_cast<std::int32_t>(value);
    default:
      return value;
  }
}

std::int64_t to_whole(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

Array read(const std::byte* data, DType dtype, const Shape& space, const View& view) {
  Array out(dtype, space.numel());
  for_each(space, view, [&](std::int64_t i, std::int64_t offset) {
    if (out.floating()) {
      out.real[at(i)] = load_real(data, dtype, offset);
    } else {
      out.whole[at(i)] = load_whole(data, dtype, offset);
    }
  });
  return out;
}

Array read(const Binding& binding, std::span<const Value> values, ValueId id) {
  const Value& value = values[at(id)];
  return read(binding.values[id], value.dtype, value.shape, contiguous(value.shape, id));
}

void write(const Array& array, std::byte* data, const Shape& space, const View& view) {
  for_each(space, view, [&](std::int64_t i, std::int64_t offset) {
    if (array.floating()) {
      store_real(data, array.dtype, offset, array.real[at(i)]);
    } else {
      store_whole(data, array.dtype, offset, array.whole[at(i)]);
    }
  });
}

void write(const Array& array, const Binding& binding, std::span<const Value> values, ValueId id) {
  const Value& value = values[at(id)];
  write(convert(array, value.dtype), binding.values[id], value.shape, contiguous(value.shape, id));
}

Array convert(const Array& array, DType dtype) {
  if (array.dtype == dtype) return array;
  Array out(dtype, array.size());
  for (std::int64_t i = 0; i < array.size(); ++i) {
    if (array.floating()) {
      out.set(i, array.real[at(i)]);
    } else {
      out.set(i, array.whole[at(i)]);
    }
  }
  return out;
}

}  // namespace tenon::cpu::reference
