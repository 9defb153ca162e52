// Tensor: a handle to an immutable node of a graph. Calling an op builds a node; nothing runs
// before a value is asked for.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/device.h>
#include <tenon/dtype.h>
#include <tenon/export.h>
#include <tenon/shape.h>

namespace tenon {

struct Node;
class Scalar;
class Index;
struct ValuesAndIndices;

/// A list of axes or sizes given in braces: sum(x, {0, 2}).
using Ints = std::vector<std::int64_t>;

/// The axes that a reduction goes over: sum(x, 1), x.sum({0, 2}); none given: all.
struct Axes : Ints {
  Axes() = default;
  Axes(std::int64_t axis) : Ints{axis} {}                         // NOLINT: implicit by design
  Axes(std::initializer_list<std::int64_t> axes) : Ints(axes) {}  // NOLINT
  Axes(Ints axes) : Ints(std::move(axes)) {}                      // NOLINT
};

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
  int dim() const { return rank(); }  ///< rank(), by PyTorch's name
  /// Size along an axis; negative axes count from the end.
  std::int64_t size(int axis) const { return shape().at(axis); }
  std::int64_t numel() const { return shape().numel(); }

  /// Computes the value if it is still pending; returns *this.
  const Tensor& eval() const;
  /// The value's bytes in host memory, valid while this tensor (or for a variable, its value)
  /// lives. Evaluates. The value of a tensor on a GPU is copied to the host, once.
  const void* data() const;
  /// As data(), checked: throws DTypeError when T is not the element type.
  template <class T>
  const T* data_as() const {
    check_dtype(dtype_of<T>);
    return static_cast<const T*>(data());
  }
  /// The only element as a double, which rounds integers beyond 2^53: item<std::int64_t>() is
  /// exact. Throws ShapeError when there is more than one. Evaluates.
  double item() const;
  /// As a T: exact where T is the element type, else converted as C++ converts a double.
  template <class T>
  T item() const {
    if (numel() == 1 && dtype() == dtype_of<T>) return *data_as<T>();
    return static_cast<T>(item());
  }
  /// All elements in row-major order. Throws DTypeError when T is not the element type. Evaluates.
  template <class T>
  std::vector<T> to_vector() const {
    const T* p = data_as<T>();
    return std::vector<T>(p, p + numel());
  }
  /// Values (abridged when many), shape and dtype, as a Python user would see them. Evaluates.
  std::string str() const;

  // ---- Parts; negative numbers count from the end. The result is a value, not a view.
  /// Along the first axis: x[2], x[-1], x[Slice(1, 4)], x[mask].
  Tensor operator[](const Index& index) const;
  /// NumPy's and PyTorch's indexing: x.index({0, Slice(1, 4), ellipsis, new_axis, rows, mask}).
  /// Integer tensors broadcast with each other; their axes go to where the first of them stands, or
  /// to the front when other indices stand between them. A number outside is a ShapeError; one in a
  /// tensor is a ValueError at run time. A mask in brackets has as many results as it has ones, so
  /// it is read here: not inside a function that is being compiled, where where() serves.
  Tensor index(const std::vector<Index>& indices) const;
  /// The tensor with `value`, which broadcasts, at those places; this one stays as it is. Where
  /// integer tensors name a place twice, the last one counts; with `accumulate` all are added to
  /// what is there. A mask is not read unless `accumulate` or other tensors make it necessary.
  Tensor index_put(const std::vector<Index>& indices, const Tensor& value,
                   bool accumulate = false) const;
  Tensor index_put(const std::vector<Index>& indices, Scalar value, bool accumulate = false) const;

  // ---- The commonest functions of <tenon/ops.h> and <tenon/functional.h>, which say what they do,
  // as methods
  Tensor to(DType dtype) const;  ///< cast()
  Tensor to(Device device) const;
  Tensor detach() const;
  Tensor sum(const Axes& axes = {}, bool keepdim = false) const;
  Tensor prod(const Axes& axes = {}, bool keepdim = false) const;
  Tensor mean(const Axes& axes = {}, bool keepdim = false) const;
  Tensor var(const Axes& axes = {}, bool keepdim = false, double correction = 1) const;
  Tensor stddev(const Axes& axes = {}, bool keepdim = false, double correction = 1) const;
  Tensor amax(const Axes& axes = {}, bool keepdim = false) const;
  Tensor amin(const Axes& axes = {}, bool keepdim = false) const;
  Tensor all(const Axes& axes = {}, bool keepdim = false) const;
  Tensor any(const Axes& axes = {}, bool keepdim = false) const;
  Tensor norm(const Axes& axes = {}, bool keepdim = false) const;
  Tensor logsumexp(const Axes& axes, bool keepdim = false) const;
  Tensor max() const;  ///< amax() of all elements
  Tensor min() const;
  ValuesAndIndices max(int axis, bool keepdim = false) const;
  ValuesAndIndices min(int axis, bool keepdim = false) const;
  Tensor argmax(int axis = -1, bool keepdim = false) const;
  Tensor argmin(int axis = -1, bool keepdim = false) const;
  ValuesAndIndices sort(int axis = -1, bool descending = false) const;
  Tensor argsort(int axis = -1, bool descending = false) const;
  ValuesAndIndices topk(std::int64_t k, int axis = -1, bool largest = true) const;
  Tensor cumsum(int axis) const;
  Tensor cumprod(int axis) const;
  Tensor softmax(int axis = -1) const;
  Tensor log_softmax(int axis = -1) const;
  Tensor reshape(const Ints& sizes) const;
  Tensor view(const Ints& sizes) const;  ///< reshape(), by PyTorch's name
  Tensor flatten(int start_axis = 0, int end_axis = -1) const;
  Tensor permute(const Ints& axes) const;
  Tensor transpose(int a = -2, int b = -1) const;
  Tensor expand(const Ints& sizes) const;
  Tensor squeeze() const;
  Tensor squeeze(int axis) const;
  Tensor unsqueeze(int axis) const;
  Tensor select(int axis, std::int64_t index) const;
  Tensor slice(int axis, std::int64_t start, std::int64_t end, std::int64_t step = 1) const;
  Tensor narrow(int axis, std::int64_t start, std::int64_t length) const;
  Tensor flip(const Axes& axes) const;
  Tensor roll(const Ints& shifts, const Ints& axes = {}) const;
  Tensor repeat(const Ints& counts) const;
  Tensor repeat_interleave(std::int64_t count, int axis) const;
  Tensor tril(std::int64_t diagonal = 0) const;
  Tensor triu(std::int64_t diagonal = 0) const;
  std::vector<Tensor> split(std::int64_t size, int axis = 0) const;
  std::vector<Tensor> split(const Ints& sizes, int axis = 0) const;
  std::vector<Tensor> chunk(std::int64_t count, int axis = 0) const;
  std::vector<Tensor> unbind(int axis = 0) const;
  Tensor gather(int axis, const Tensor& index) const;
  Tensor index_select(int axis, const Tensor& index) const;
  Tensor index_add(int axis, const Tensor& index, const Tensor& updates) const;
  Tensor scatter(int axis, const Tensor& index, const Tensor& updates) const;
  Tensor scatter(int axis, const Tensor& index, Scalar value) const;
  Tensor scatter_add(int axis, const Tensor& index, const Tensor& updates) const;
  Tensor masked_fill(const Tensor& mask, Scalar value) const;
  Tensor matmul(const Tensor& other) const;
  Tensor neg() const;
  Tensor abs() const;
  Tensor sign() const;
  Tensor exp() const;
  Tensor expm1() const;
  Tensor log() const;
  Tensor log1p() const;
  Tensor log2() const;
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor reciprocal() const;
  Tensor square() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor tanh() const;
  Tensor erf() const;
  Tensor sigmoid() const;
  Tensor relu() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;
  Tensor trunc() const;
  Tensor isnan() const;
  Tensor isinf() const;
  Tensor isfinite() const;
  Tensor pow(const Tensor& exponent) const;
  Tensor pow(Scalar exponent) const;
  Tensor clamp(Scalar low, Scalar high) const;
  bool equal(const Tensor& other) const;
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false) const;

  explicit Tensor(Node* node) noexcept;  ///< Takes a share in the node (library use).
  Node* node() const noexcept { return node_; }

 private:
  static void check_count(std::int64_t count, const Shape& shape);
  void check_dtype(DType wanted) const;
  Node* node_ = nullptr;
};

/// start:end:step of an axis, with NumPy's clipping; what is not given is the axis's own end.
struct Slice {
  std::optional<std::int64_t> start{}, end{};
  std::int64_t step = 1;
  Slice(std::optional<std::int64_t> first = {}, std::optional<std::int64_t> last = {},
        std::int64_t every = 1)
      : start(first), end(last), step(every) {}
};
struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis{};  ///< all axes that the other indices leave
inline constexpr NewAxis new_axis{};   ///< an axis of size 1

/// One index of x.index({…}): a number, a Slice, ellipsis, new_axis, a tensor of integers, or a
/// bool tensor, a mask over as many axes as it has.
class Index {
 public:
  enum class Kind { Number, Slice, Ellipsis, NewAxis, Tensor };
  template <std::integral T>
  requires(!std::same_as<T, bool>) Index(T number)  // NOLINT: implicit by design
      : kind_(Kind::Number), number_(static_cast<std::int64_t>(number)) {}
  Index(const tenon::Slice& slice) : kind_(Kind::Slice), slice_(slice) {}           // NOLINT
  Index(tenon::Ellipsis) : kind_(Kind::Ellipsis) {}                                 // NOLINT
  Index(tenon::NewAxis) : kind_(Kind::NewAxis) {}                                   // NOLINT
  Index(tenon::Tensor tensor) : kind_(Kind::Tensor), tensor_(std::move(tensor)) {}  // NOLINT
  Kind kind() const { return kind_; }
  std::int64_t number() const { return number_; }
  const tenon::Slice& slice() const { return slice_; }
  const tenon::Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  std::int64_t number_ = 0;
  tenon::Slice slice_{};
  tenon::Tensor tensor_{};
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
