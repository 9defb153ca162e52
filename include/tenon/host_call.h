// host_call(): a function in C++ as an operation of the graph. It reads and writes host memory.
//
// The function runs when the operation is evaluated, as often as the operation is evaluated, in any
// thread, possibly in several threads at once. It must be deterministic: the same inputs give the
// same results. It must not evaluate tensors. parallel_for() (parallel.h) divides its work between
// threads. docs/functions.md shows how to give it a gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/dtype.h>
#include <tenon/export.h>
#include <tenon/shape.h>
#include <tenon/tensor.h>

namespace tenon {

/// The element type and the shape of a tensor.
struct TensorType {
  DType dtype = DType::Float32;  ///< Element type.
  Shape shape{};                 ///< Sizes.
};

/// An array in host memory, contiguous and in row-major order.
class TENON_API HostArray {
 public:
  /// An array at `data`. Keeps a reference to the shape.
  HostArray(std::byte* data, DType dtype, const Shape& shape)
      : data_(data), shape_(&shape), dtype_(dtype) {}
  /// The element type.
  DType dtype() const noexcept { return dtype_; }
  /// The sizes.
  const Shape& shape() const noexcept { return *shape_; }
  /// Number of elements.
  std::int64_t numel() const noexcept { return shape_->numel(); }

 protected:
  /// The first byte.
  std::byte* bytes() const noexcept { return data_; }
  /// Throws DTypeError if the elements have another type.
  void check(DType dtype) const;

 private:
  std::byte* data_;
  const Shape* shape_;
  DType dtype_;
};

/// An argument of host code. Valid during the call.
class HostInput : public HostArray {
 public:
  using HostArray::HostArray;
  /// The bytes.
  const void* data() const noexcept { return bytes(); }
  /// The elements. Throws DTypeError if `T` is not the element type.
  template <class T>
  std::span<const T> values() const {
    check(dtype_of<T>);
    return {reinterpret_cast<const T*>(bytes()), static_cast<std::size_t>(numel())};
  }
};

/// A result of host code: memory without a value, which the code must fill. Valid during the call.
class HostOutput : public HostArray {
 public:
  /// Memory at `data`. Keeps a reference to the shape.
  HostOutput(std::byte* data, DType dtype, const Shape& shape, bool is_read)
      : HostArray(data, dtype, shape), is_read_(is_read) {}
  /// The bytes.
  void* data() const noexcept { return bytes(); }
  /// The elements. Throws DTypeError if `T` is not the element type.
  template <class T>
  std::span<T> values() const {
    check(dtype_of<T>);
    return {reinterpret_cast<T*>(bytes()), static_cast<std::size_t>(numel())};
  }
  /// Whether anything reads the result. The code may leave a result that nothing reads as it is.
  bool is_read() const noexcept { return is_read_; }

 private:
  bool is_read_;
};

/// Host code: computes all results from the inputs.
using HostCode = std::function<void(std::span<const HostInput>, std::span<const HostOutput>)>;

/// The results of `code` for these inputs, with these dtypes and shapes. `name` is the operation's
/// name in errors. Returns at once; the code runs when a result is evaluated. Inputs on a GPU are
/// copied to the host before the code runs, and the results are copied to the GPU. An exception of
/// the code reaches the caller of compute(): a tenon::Error keeps its type, any other exception is
/// nested in an Error; the message begins with the name and the layer.
///
/// Plans do not depend on the code. A new function object for each step of a training loop is
/// therefore no reason to plan again, and a reused plan calls the code of its own call.
///
/// The results have no gradient: grad() throws NotSupported where it meets one. Function
/// (function.h) adds a gradient. Throws ValueError if there are no results or the code is empty,
/// and NotSupported inside the body of a loop or branch on a GPU (loops.h). PyTorch:
/// `torch.library.custom_op`.
TENON_API std::vector<Tensor> host_call(const std::string& name, TensorList inputs,
                                        std::vector<TensorType> results, HostCode code);
/// The same for one result.
TENON_API Tensor host_call(const std::string& name, TensorList inputs, const TensorType& result,
                           HostCode code);

}  // namespace tenon
