// PackedParts: several tensors for each sample in one tensor. Datasets, loaders, the Trainer and
// runs handle one input and one target; with PackedParts these hold any number of tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// One of several tensors of a sample.
struct Part {
  std::string name;              ///< A name, for example "image".
  Shape shape{};                 ///< Sizes for one sample; []: one number.
  DType dtype = DType::Float32;  ///< Element type.
};

/// The layout of several tensors of a sample in one vector: part after part, each flattened. The
/// elements are stored as float32 or float64. docs/datasets.md has an example with two inputs and
/// two targets.
class TENON_API PackedParts {
 public:
  /// `dtype` is Float32 or Float64. Float32 holds integers exactly up to 2^24, Float64 up to 2^53.
  /// Throws ValueError for an empty list, an empty or repeated name, or a part of another
  /// floating-point dtype that `dtype` cannot hold.
  explicit PackedParts(std::vector<Part> parts, DType dtype = DType::Float32);
  /// The parts, in order.
  const std::vector<Part>& parts() const { return parts_; }
  /// Shape of one packed sample, for DatasetInfo::input_shape or target_shape: [n].
  Shape shape() const { return {size_}; }
  /// Data type of packed samples, for DatasetInfo::input_dtype or target_dtype.
  DType dtype() const { return dtype_; }
  /// Packs the parts of N samples, each [N, …], into [N, n]. Gradients flow to floating parts.
  /// Throws ShapeError or DTypeError that names the part, and ValueError for integers that dtype()
  /// cannot hold (inside a function that is being compiled they are not checked).
  Tensor pack(TensorList parts) const;
  /// The parts of N packed samples [N, n], each [N, …] and of its dtype. Throws ShapeError.
  std::vector<Tensor> unpack(const Tensor& packed) const;
  /// One part. Throws ValueError with a similar name if there is none.
  Tensor unpack(const Tensor& packed, const std::string& name) const;

 private:
  Tensor part(const Tensor& packed, std::size_t k) const;
  std::vector<Part> parts_;
  std::vector<std::int64_t> begins_;
  std::int64_t size_ = 0;
  DType dtype_;
};

}  // namespace tenon
