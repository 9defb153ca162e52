// Several tensors of a sample in one tensor.
#include <tenon/packed_parts.h>

#include <algorithm>
#include <utility>

#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/shapes_only.h>

#include "base/make_error.h"
#include "base/str.h"
#include "graph/tracing/traced_state.h"

namespace tenon {
namespace {

// The largest integer up to which all integers are exact.
double exact_limit(DType dtype) { return dtype == DType::Float64 ? 0x1p53 : 0x1p24; }

Shape of_samples(std::int64_t count, const Shape& shape) {
  Shape out{count};
  for (const std::int64_t size : shape) out.push_back(size);
  return out;
}

void check_part(const Part& part, const Tensor& given, std::int64_t count) {
  const Shape shape = of_samples(count, part.shape);
  if (given.shape() != shape)
    throw make_error<ShapeError>("pack: '", part.name, "' is ", given.shape(), ", must be ", shape);
  if (given.dtype() != part.dtype)
    throw make_error<DTypeError>("pack: '", part.name, "' is ", given.dtype(), ", must be ",
                                 part.dtype, ": cast it");
}

void check_exact(const Part& part, const Tensor& given, DType dtype) {
  if (!is_integral(part.dtype) || given.numel() == 0 || is_tracing() || ShapesOnly::is_on()) return;
  const double limit = exact_limit(dtype);
  for (const Tensor& extreme : {amax(given), amin(given)})
    if (const double value = extreme.item(); value > limit || value < -limit)
      throw make_error<ValueError>("pack: '", part.name, "' has the number ", value, ", and ",
                                   dtype, " holds integers exactly up to ", limit,
                                   dtype == DType::Float32 ? ": pack as DType::Float64" : "");
}

}  // namespace

PackedParts::PackedParts(std::vector<Part> parts, DType dtype)
    : parts_(std::move(parts)), dtype_(dtype) {
  if (dtype != DType::Float32 && dtype != DType::Float64)
    throw make_error<ValueError>("PackedParts: the dtype is ", dtype,
                                 ", must be float32 or float64");
  if (parts_.empty()) throw ValueError("PackedParts: there are no parts");
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Part& part = parts_[k];
    const auto is_same = [&](const Part& other) { return other.name == part.name; };
    if (part.name.empty() ||
        std::any_of(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(k), is_same))
      throw make_error<ValueError>("PackedParts: part ", k, " has the name '", part.name,
                                   "', must have a name of its own");
    if (part.dtype == DType::Float64 && dtype == DType::Float32)
      throw make_error<ValueError>("PackedParts: '", part.name,
                                   "' is float64: pack as DType::Float64");
    begins_.push_back(size_);
    size_ += part.shape.numel();
  }
}

Tensor PackedParts::pack(TensorList parts) const {
  if (parts.size() != parts_.size())
    throw make_error<ValueError>("pack: ", parts.size(), " tensors for ", parts_.size(), " parts");
  std::vector<Tensor> flat;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (!parts[k].defined() || parts[k].rank() < 1)
      throw make_error<ShapeError>("pack: '", parts_[k].name, "' has no axis of samples");
    const std::int64_t count = parts[0].size(0);
    check_part(parts_[k], parts[k], count);
    check_exact(parts_[k], parts[k], dtype_);
    flat.push_back(reshape(cast(parts[k], dtype_), {count, parts_[k].shape.numel()}));
  }
  return concat(flat, 1);
}

Tensor PackedParts::part(const Tensor& packed, std::size_t k) const {
  if (packed.rank() != 2 || packed.size(1) != size_)
    throw make_error<ShapeError>("unpack: the packed samples are ", packed.shape(),
                                 ", must be [N, ", size_, "]");
  const Part& part = parts_[k];
  Ints sizes{packed.size(0)};
  sizes.insert(sizes.end(), part.shape.begin(), part.shape.end());
  return cast(reshape(narrow(packed, 1, begins_[k], part.shape.numel()), sizes), part.dtype);
}

std::vector<Tensor> PackedParts::unpack(const Tensor& packed) const {
  std::vector<Tensor> out;
  for (std::size_t k = 0; k < parts_.size(); ++k) out.push_back(part(packed, k));
  return out;
}

Tensor PackedParts::unpack(const Tensor& packed, const std::string& name) const {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    if (parts_[k].name == name) return part(packed, k);
    names.push_back(parts_[k].name);
  }
  const std::string near = nearest(name, names.data(), static_cast<int>(names.size()));
  throw make_error<ValueError>("unpack: there is no part '", name, "'",
                               near.empty() ? "" : cat("; did you mean '", near, "'?"));
}

}  // namespace tenon
