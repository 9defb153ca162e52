// Tensor: a handle to an immutable node of a graph. Calling an op builds a node; nothing runs
// before a value is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/device.h>
#include <tenon/dtype.h>
#include <tenon/export.h>
#include <tenon/shape.h>

namespace tenon {

struct Node;

/// The only tensor type: what an op returns, what a parameter is, what a gradient is. Copying
/// copies the handle. Reading a value (data, item, to_vector, str) evaluates what is pending.
/// Values are contiguous in row-major order.
class TENON_API Tensor {
 public:
  Tensor() noexcept = default;  ///< Undefined: no value, no shape.
  Tensor(const Tensor& other) noexcept;
  Tensor(Tensor&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Tensor& operator=(const Tensor& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();

  /// Copies `shape.numel()` elements of `dtype` from host memory to the device, or to the default
  /// one.
  static Tensor from_data(const void* data, const Shape& shape, DType dtype);
  static Tensor from_data(const void* data, const Shape& shape, DType dtype, Device device);
  /// Copies a list of values; throws ShapeError when their number is not shape.numel().
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape) {
    check_count(static_cast<std::int64_t>(values.size()), shape);
    return from_data(values.data(), shape, dtype_of<T>);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape) {
    return from(std::span<const T>(values.begin(), values.size()), shape);
  }

  bool defined() const noexcept { return node_ != nullptr; }
  const Shape& shape() const;
  DType dtype() const;
  Device device() const;
  int rank() const { return shape().rank(); }
  /// Size along an axis; negative axes count from the end.
  std::int64_t size(int axis) const { return shape().at(axis); }
  std::int64_t numel() const { return shape().numel(); }

  /// Computes the value if it is still pending; returns *this.
  const Tensor& eval() const;
  /// The value's bytes in host memory, valid while this tensor (or for a variable, its value)
  /// lives. Evaluates. The value of a tensor on a card is copied to the host, once.
  const void* data() const;
  /// As data(), checked: throws DTypeError when T is not the element type.
  template <class T>
  const T* data_as() const {
    check_dtype(dtype_of<T>);
    return static_cast<const T*>(data());
  }
  /// The only element, converted. Throws ShapeError when there is more than one. Evaluates.
  double item() const;
  /// All elements in row-major order. Throws DTypeError when T is not the element type. Evaluates.
  template <class T>
  std::vector<T> to_vector() const {
    const T* p = data_as<T>();
    return std::vector<T>(p, p + numel());
  }
  /// Values (abridged when many), shape and dtype, as a Python user would see them. Evaluates.
  std::string str() const;

  explicit Tensor(Node* node) noexcept;  ///< Takes a share in the node (library use).
  Node* node() const noexcept { return node_; }

 private:
  static void check_count(std::int64_t count, const Shape& shape);
  void check_dtype(DType wanted) const;
  Node* node_ = nullptr;
};

/// A tensor whose stored value can be replaced: a parameter, a running statistic, a learning rate.
/// Starts as a copy of `init`. `name` appears in error messages and in `tenon inspect`.
TENON_API Tensor variable(const Tensor& init, const std::string& name = "");
/// True for what variable() made.
TENON_API bool is_variable(const Tensor& tensor);
/// Writes into a variable from the host at once. Shapes and dtypes must match (ShapeError,
/// DTypeError). Throws ValueError when `target` is no variable.
TENON_API void set_value(const Tensor& target, const Tensor& value);
TENON_API void set_value(const Tensor& target, const void* data, std::size_t bytes);

/// Names the nodes built while it lives ("conv1"): nested scopes join with dots, errors and plans
/// quote them.
class TENON_API Scope {
 public:
  explicit Scope(const std::string& name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::uint32_t previous_;
};

}  // namespace tenon
