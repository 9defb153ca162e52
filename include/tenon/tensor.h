// Tensor: a handle to an immutable node of a graph. An operation builds a node; nothing is computed
// before a value is needed.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
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

/// Deep learning on CPUs and NVIDIA GPUs: tensors, operations, gradients, and the namespaces of
/// networks, optimizers, data, files and training.
namespace tenon {

struct Node;
class Scalar;
class Index;
struct ValuesAndIndices;

/// A list of axes or sizes given in braces: sum(x, {0, 2}).
using Ints = std::vector<std::int64_t>;

/// The axes of a reduction: sum(x, 1), x.sum({0, 2}). An empty list means all axes. Negative axes
/// count from the end.
struct Axes : Ints {
  /// All axes.
  Axes() = default;
  /// One axis.
  Axes(std::int64_t axis) : Ints{axis} {}  // NOLINT: implicit by design
  /// Axes in braces.
  Axes(std::initializer_list<std::int64_t> axes) : Ints(axes) {}  // NOLINT
  /// Axes in a vector.
  Axes(Ints axes) : Ints(std::move(axes)) {}  // NOLINT
};

/// The only tensor type: results of operations, parameters and gradients are all Tensors. A copy is
/// a second handle to the same value. Functions that read a value (data(), item(), to_vector(),
/// str()) compute it first if necessary. Values are contiguous in row-major order.
class TENON_API Tensor {
 public:
  /// An undefined tensor, without value and shape.
  Tensor() noexcept = default;
  /// Copies the handle.
  Tensor(const Tensor& other) noexcept;
  /// Moves the handle; `other` becomes undefined.
  Tensor(Tensor&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  /// Copies the handle. Not for temporaries: `x[0] = v` would replace a handle that nobody keeps,
  /// so it does not compile. Write `x = x.index_put({0}, v)`.
  Tensor& operator=(const Tensor& other) & noexcept;
  /// Moves the handle. Not for temporaries.
  Tensor& operator=(Tensor&& other) & noexcept;
  ~Tensor();

  /// Copies `shape.numel()` elements of `dtype` from host memory to a device; without `device`, to
  /// the default device of the thread's context.
  /// @{
  static Tensor from_data(const void* data, const Shape& shape, DType dtype);
  static Tensor from_data(const void* data, const Shape& shape, DType dtype, Device device);
  /// @}
  /// Copies a list of values; the dtype follows from `T`. Throws ShapeError if the number of values
  /// is not `shape.numel()`.
  /// @{
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

  /// @}

  /// Whether the tensor has a value and a shape.
  bool defined() const noexcept { return node_ != nullptr; }
  /// The sizes.
  const Shape& shape() const;
  /// The element type.
  DType dtype() const;
  /// The device that holds the value.
  Device device() const;
  /// Number of axes.
  int rank() const { return shape().rank(); }
  /// rank(), by PyTorch's name.
  int dim() const { return rank(); }
  /// Size along an axis; negative axes count from the end.
  std::int64_t size(int axis) const { return shape().at(axis); }
  /// Number of elements.
  std::int64_t numel() const { return shape().numel(); }

  /// Computes the value if it is still pending; returns *this.
  const Tensor& compute() const;
  /// The value's bytes in host memory. Evaluates. The pointer is valid as long as this tensor lives
  /// (for a variable: as long as the value is not replaced). A value on a GPU is copied to the host
  /// once.
  const void* data() const;
  /// data() as a typed pointer. Throws DTypeError if `T` is not the element type.
  template <class T>
  const T* data_as() const {
    check_dtype(dtype_of<T>);
    return static_cast<const T*>(data());
  }
  /// The only element as a double. Integers beyond 2^53 are rounded; `item<std::int64_t>()` is
  /// exact. Throws ShapeError if there is more than one element. Evaluates.
  double item() const;
  /// The only element as a `T`: exact if `T` is the element type, else converted from double.
  template <class T>
  T item() const {
    if (numel() == 1 && dtype() == dtype_of<T>) return *data_as<T>();
    return static_cast<T>(item());
  }
  /// All elements in row-major order. Throws DTypeError if `T` is not the element type. Evaluates.
  template <class T>
  std::vector<T> to_vector() const {
    const T* p = data_as<T>();
    return std::vector<T>(p, p + numel());
  }
  /// Values (abridged if there are many), shape and dtype as text, in PyTorch's form. Evaluates.
  std::string str() const;

  // ---- Indexing. Negative numbers count from the end. The result is a value, not a view: it
  // cannot be assigned to; use index_put().
  /// Indexes the first axis: `x[2]`, `x[-1]`, `x[Slice(1, 4)]`, `x[mask]`.
  Tensor operator[](const Index& index) const;
  /// NumPy's and PyTorch's indexing: `x.index({0, Slice(1, 4), ellipsis, new_axis, rows, mask})`.
  /// Integer tensors broadcast with each other. Their axes replace the first indexed axis, or come
  /// first in the result if other indices are between them. A number out of range throws
  /// ShapeError; an element of an index tensor out of range is a ValueError at run time. The size
  /// of the result depends on the number of true elements of a mask, so the mask is evaluated at
  /// once. This is not possible inside a function that is being compiled; use where() there.
  Tensor index(const std::vector<Index>& indices) const;
  /// A copy of this tensor with `value` (broadcast) at the indexed positions. If integer tensors
  /// name a position twice, the last value wins; with `accumulate`, all values are added to the
  /// existing element. A mask is evaluated only if `accumulate` or index tensors make it necessary.
  /// @{
  Tensor index_put(const std::vector<Index>& indices, const Tensor& value,
                   bool accumulate = false) const;
  Tensor index_put(const std::vector<Index>& indices, Scalar value, bool accumulate = false) const;
  /// @}

  // ---- The most common functions of <tenon/ops.h> and <tenon/functional.h> as methods. The
  // comments at those functions have the details.
  /// Converts to another dtype, as cast().
  Tensor to(DType dtype) const;
  /// Copies to another device; the gradient is copied back.
  Tensor to(Device device) const;
  /// The same value without its gradient.
  Tensor detach() const;
  /// Sum. Integers and bool are summed in int64.
  Tensor sum(const Axes& axes = {}, bool keepdim = false) const;
  /// Product. Integers and bool are multiplied in int64.
  Tensor prod(const Axes& axes = {}, bool keepdim = false) const;
  /// Mean.
  Tensor mean(const Axes& axes = {}, bool keepdim = false) const;
  /// Variance: the sum of squared deviations divided by (count - correction).
  Tensor var(const Axes& axes = {}, bool keepdim = false, double correction = 1) const;
  /// Standard deviation, the square root of var(); its gradient at 0 is 0.
  Tensor stddev(const Axes& axes = {}, bool keepdim = false, double correction = 1) const;
  /// Largest element; NaN if any element is NaN.
  Tensor amax(const Axes& axes = {}, bool keepdim = false) const;
  /// Smallest element; NaN if any element is NaN.
  Tensor amin(const Axes& axes = {}, bool keepdim = false) const;
  /// Whether all elements are nonzero; bool.
  Tensor all(const Axes& axes = {}, bool keepdim = false) const;
  /// Whether any element is nonzero; bool.
  Tensor any(const Axes& axes = {}, bool keepdim = false) const;
  /// Euclidean norm over axes (all axes if none is given).
  Tensor norm(const Axes& axes = {}, bool keepdim = false) const;
  /// log(sum(e^x)), computed without overflow.
  Tensor logsumexp(const Axes& axes, bool keepdim = false) const;
  /// Largest element of all, as amax().
  Tensor max() const;
  /// Smallest element of all, as amin().
  Tensor min() const;
  /// Largest element along an axis and its first index.
  ValuesAndIndices max(int axis, bool keepdim = false) const;
  /// Smallest element along an axis and its first index.
  ValuesAndIndices min(int axis, bool keepdim = false) const;
  /// Index of the first maximum along an axis; int64.
  Tensor argmax(int axis = -1, bool keepdim = false) const;
  /// Index of the first minimum along an axis; int64.
  Tensor argmin(int axis = -1, bool keepdim = false) const;
  /// Sorts along an axis.
  ValuesAndIndices sort(int axis = -1, bool descending = false) const;
  /// The indices of sort(); int64.
  Tensor argsort(int axis = -1, bool descending = false) const;
  /// The k largest (or smallest) elements along an axis, always in sorted order, whatever `sorted`
  /// says.
  ValuesAndIndices topk(std::int64_t k, int axis = -1, bool largest = true) const;
  /// Cumulative sum along an axis.
  Tensor cumsum(int axis) const;
  /// Cumulative product along an axis; dtypes as for cumsum().
  Tensor cumprod(int axis) const;
  /// e^x / sum(e^x) along an axis.
  Tensor softmax(int axis = -1) const;
  /// log(softmax(x)) along an axis, computed without overflow.
  Tensor log_softmax(int axis = -1) const;
  /// The same elements with other sizes.
  Tensor reshape(const Ints& sizes) const;
  /// reshape(), by PyTorch's name. The result is a value.
  Tensor view(const Ints& sizes) const;
  /// Merges the axes start_axis to end_axis into one.
  Tensor flatten(int start_axis = 0, int end_axis = -1) const;
  /// Reorders the axes: axis i of the result is axis `axes[i]` of this tensor.
  Tensor permute(const Ints& axes) const;
  /// Exchanges two axes; by default the last two.
  Tensor transpose(int a = -2, int b = -1) const;
  /// Repeats axes of size 1 to the given sizes, and adds axes in front; -1 keeps a size.
  Tensor expand(const Ints& sizes) const;
  /// Removes all axes of size 1.
  Tensor squeeze() const;
  /// Removes an axis of size 1.
  Tensor squeeze(int axis) const;
  /// Inserts an axis of size 1 at position `axis`.
  Tensor unsqueeze(int axis) const;
  /// The element at `index` along an axis, `x[.., index, ..]`; the axis is removed.
  Tensor select(int axis, std::int64_t index) const;
  /// `x[start:end:step]` along an axis, with NumPy's clipping and negative indices. `step` must not
  /// be zero.
  Tensor slice(int axis, std::int64_t start, std::int64_t end, std::int64_t step = 1) const;
  /// `length` elements along an axis from `start`, which may be negative.
  Tensor narrow(int axis, std::int64_t start, std::int64_t length) const;
  /// Reverses the order along axes.
  Tensor flip(const Axes& axes) const;
  /// Shifts elements along axes; elements that leave at one end come back at the other.
  Tensor roll(const Ints& shifts, const Ints& axes = {}) const;
  /// Repeats the whole tensor counts[a] times along each axis a.
  Tensor repeat(const Ints& counts) const;
  /// Repeats each element of an axis `count` times in a row.
  Tensor repeat_interleave(std::int64_t count, int axis) const;
  /// Lower triangle of the matrices in the last two axes: elements above the diagonal become zero.
  /// `diagonal` k is the k-th above the main diagonal.
  Tensor tril(std::int64_t diagonal = 0) const;
  /// Upper triangle of the matrices in the last two axes: elements below the diagonal become zero.
  Tensor triu(std::int64_t diagonal = 0) const;
  /// Chunks of `size` elements along an axis; the last chunk may be smaller.
  std::vector<Tensor> split(std::int64_t size, int axis = 0) const;
  /// Chunks of the given sizes along an axis.
  std::vector<Tensor> split(const Ints& sizes, int axis = 0) const;
  /// At most `count` chunks of equal size along an axis; the last chunk may be smaller.
  std::vector<Tensor> chunk(std::int64_t count, int axis = 0) const;
  /// All slices `x[.., index, ..]` along an axis; the axis is removed.
  std::vector<Tensor> unbind(int axis = 0) const;
  /// Picks elements by index along an axis: `out[i][j] = x[index[i][j]][j]` for axis 0. `index` is
  /// int64 or int32; an index out of range is a ValueError at run time.
  Tensor gather(int axis, const Tensor& index) const;
  /// Slices along an axis, picked by a vector of indices.
  Tensor index_select(int axis, const Tensor& index) const;
  /// A copy with slice j of `updates` added to slice index[j] along an axis.
  Tensor index_add(int axis, const Tensor& index, const Tensor& updates) const;
  /// A copy with `updates` written to the positions that gather() would read.
  Tensor scatter(int axis, const Tensor& index, const Tensor& updates) const;
  /// A copy with one value written to the positions that gather() would read.
  Tensor scatter(int axis, const Tensor& index, Scalar value) const;
  /// A copy with `updates` added at the positions that gather() would read.
  Tensor scatter_add(int axis, const Tensor& index, const Tensor& updates) const;
  /// A copy with `value` where the mask (bool, broadcasts) is true.
  Tensor masked_fill(const Tensor& mask, Scalar value) const;
  /// Matrix product with `other`, with PyTorch's rules.
  Tensor matmul(const Tensor& other) const;
  /// -x. Keeps integer dtypes.
  Tensor neg() const;
  /// |x|. Keeps integer dtypes.
  Tensor abs() const;
  /// -1, 0 or 1, the sign of x. Keeps integer dtypes.
  Tensor sign() const;
  /// e^x.
  Tensor exp() const;
  /// e^x - 1, accurate near 0.
  Tensor expm1() const;
  /// Natural logarithm.
  Tensor log() const;
  /// log(1 + x), accurate near 0.
  Tensor log1p() const;
  /// Logarithm to base 2.
  Tensor log2() const;
  /// Square root.
  Tensor sqrt() const;
  /// 1 / sqrt(x).
  Tensor rsqrt() const;
  /// 1 / x.
  Tensor reciprocal() const;
  /// x · x. Keeps integer dtypes.
  Tensor square() const;
  /// Sine; x in radians.
  Tensor sin() const;
  /// Cosine; x in radians.
  Tensor cos() const;
  /// Hyperbolic tangent.
  Tensor tanh() const;
  /// Error function.
  Tensor erf() const;
  /// 1 / (1 + e^-x).
  Tensor sigmoid() const;
  /// max(x, 0). Keeps integer dtypes.
  Tensor relu() const;
  /// Largest integer not above x.
  Tensor floor() const;
  /// Smallest integer not below x.
  Tensor ceil() const;
  /// Nearest integer; halves are rounded to even.
  Tensor round() const;
  /// x without its fraction.
  Tensor trunc() const;
  /// Whether x is NaN; bool.
  Tensor isnan() const;
  /// Whether x is infinite; bool.
  Tensor isinf() const;
  /// Whether x is neither infinite nor NaN; bool.
  Tensor isfinite() const;
  /// Raises to a power, element by element.
  Tensor pow(const Tensor& exponent) const;
  /// Raises to a power, element by element.
  Tensor pow(Scalar exponent) const;
  /// x limited to [low, high].
  Tensor clamp(Scalar low, Scalar high) const;
  /// Whether the shapes and all elements are equal. Evaluates both tensors.
  bool equal(const Tensor& other) const;
  /// Whether all elements are close, as isclose(). Evaluates both tensors.
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false) const;

  /// Shares ownership of a graph node. For the library's own use.
  explicit Tensor(Node* node) noexcept;
  /// The graph node. For the library's own use.
  Node* node() const noexcept { return node_; }

 private:
  static void check_count(std::int64_t count, const Shape& shape);
  void check_dtype(DType wanted) const;
  Node* node_ = nullptr;
};

/// Tensors that a function reads and does not keep: a vector, an array or a span of tensors, or a
/// list in braces, `concat({a, b})`. A std::span that accepts braces.
class TensorList : public std::span<const Tensor> {
 public:
  using std::span<const Tensor>::span;
  /// The tensors of a span.
  TensorList(std::span<const Tensor> tensors) : span(tensors) {}  // NOLINT: implicit by design
  /// Tensors in braces. They live until the function that is called returns.
  TensorList(std::initializer_list<Tensor> tensors)  // NOLINT: implicit by design
      : span(tensors.begin(), tensors.size()) {}
};

/// A range of an axis, `start:end:step`, clipped to the axis as in NumPy. A missing start or end is
/// the first or last element of the axis.
struct Slice {
  std::optional<std::int64_t> start{};  ///< First index; negative numbers count from the end.
  std::optional<std::int64_t> end{};    ///< End of the range, not included.
  std::int64_t step = 1;                ///< Distance of the indices.
  /// `first:last:every`.
  Slice(std::optional<std::int64_t> first = {}, std::optional<std::int64_t> last = {},
        std::int64_t every = 1)
      : start(first), end(last), step(every) {}
};
/// The type of `ellipsis`.
struct Ellipsis {};
/// The type of `new_axis`.
struct NewAxis {};
inline constexpr Ellipsis ellipsis{};  ///< Index for all axes that the other indices do not name.
inline constexpr NewAxis new_axis{};   ///< Index that inserts an axis of size 1.

/// One index of `x.index({…})`: a number, a Slice, `ellipsis`, `new_axis`, an integer tensor, or a
/// bool tensor (a mask over as many axes as it has).
class Index {
 public:
  /// The kinds of index.
  enum class Kind {
    Number,    ///< One position; the axis is removed.
    Slice,     ///< A range of the axis.
    Ellipsis,  ///< All axes that the other indices do not name.
    NewAxis,   ///< A new axis of size 1.
    Tensor     ///< Positions in an integer tensor, or a bool mask.
  };
  /// A position.
  template <std::integral T>
  requires(!std::same_as<T, bool>) Index(T number)  // NOLINT: implicit by design
      : kind_(Kind::Number), number_(static_cast<std::int64_t>(number)) {}
  /// A range.
  Index(const tenon::Slice& slice) : kind_(Kind::Slice), slice_(slice) {}  // NOLINT
  /// All axes that the other indices do not name.
  Index(tenon::Ellipsis) : kind_(Kind::Ellipsis) {}  // NOLINT
  /// A new axis of size 1.
  Index(tenon::NewAxis) : kind_(Kind::NewAxis) {}  // NOLINT
  /// Positions or a mask.
  Index(tenon::Tensor tensor) : kind_(Kind::Tensor), tensor_(std::move(tensor)) {}  // NOLINT
  /// Which kind of index this is.
  Kind kind() const { return kind_; }
  /// The position, for Kind::Number.
  std::int64_t number() const { return number_; }
  /// The range, for Kind::Slice.
  const tenon::Slice& slice() const { return slice_; }
  /// The positions or the mask, for Kind::Tensor.
  const tenon::Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  std::int64_t number_ = 0;
  tenon::Slice slice_{};
  tenon::Tensor tensor_{};
};

/// Creates a variable: a tensor whose stored value can be replaced, for example a parameter, a
/// running statistic or a learning rate. Its first value is a copy of `init`. `name` appears in
/// error messages and in `tenon inspect`.
TENON_API Tensor variable(const Tensor& init, const std::string& name = "");
/// Whether the tensor was created by variable().
TENON_API bool is_variable(const Tensor& tensor);
/// Replaces the value of a variable at once. Throws ShapeError or DTypeError if shapes or dtypes
/// differ, and ValueError if `target` is not a variable.
TENON_API void set_value(const Tensor& target, const Tensor& value);
/// Replaces the value of a variable by `bytes` bytes from host memory.
TENON_API void set_value(const Tensor& target, const void* data, std::size_t bytes);

/// Names the nodes that this thread builds while the scope lives ("conv1"). Names of nested scopes
/// are joined with dots. Errors and plans show the names.
class TENON_API Scope {
 public:
  /// Begins the scope.
  explicit Scope(const std::string& name);
  ~Scope();                                 ///< Ends the scope.
  Scope(const Scope&) = delete;             ///< Not copyable.
  Scope& operator=(const Scope&) = delete;  ///< Not copyable.

 private:
  std::uint32_t previous_;
};

}  // namespace tenon
