// Tensor operations: creation, random numbers, element-wise operations, reductions, shape
// operations, matrix products, convolution, attention, pooling, normalisation, losses, collectives.
//
// Every function builds graph nodes and returns at once; nothing is computed before a value is
// needed (compute.h). Names, conventions and defaults are PyTorch's. Shapes broadcast as in NumPy.
// Two tensors of different dtypes are promoted as in the array API (promote() in dtype.h). A plain
// number does not change the dtype of the tensor that it meets, with two exceptions: a
// floating-point number with an integer or bool tensor gives float32, and a whole number with a
// bool tensor gives int64. Matrix products and convolutions of float64 and another floating type
// throw DTypeError, so that no network becomes float64 unnoticed. A shape, axis or dtype that does
// not fit throws ShapeError, DTypeError or ValueError at the call; the message names the operation,
// the layer and the shapes.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/generator.h>
#include <tenon/number.h>
#include <tenon/tensor.h>

namespace tenon {

// ---- Creating tensors
/// A tensor filled with one value. PyTorch: `torch.full`.
TENON_API Tensor full(const Shape& shape, Scalar value, DType dtype = DType::Float32);
/// A tensor of zeros.
TENON_API Tensor zeros(const Shape& shape, DType dtype = DType::Float32);
/// A tensor of ones.
TENON_API Tensor ones(const Shape& shape, DType dtype = DType::Float32);
/// Zeros with the shape and dtype of `x`.
TENON_API Tensor zeros_like(const Tensor& x);
/// Ones with the shape and dtype of `x`.
TENON_API Tensor ones_like(const Tensor& x);
/// A tensor of rank 0 that holds one value.
TENON_API Tensor scalar(Scalar value, DType dtype = DType::Float32);
/// Copies the values to another device; the gradient is copied back to the device of `x`. The
/// transfer is a step of the program that uses the result. Not allowed in the body of a loop
/// (loops.h). Constants and arange() results, and tensors computed only from them, are placed on
/// the device of the tensors that they are combined with; to() places them on `device`.
TENON_API Tensor to(const Tensor& x, Device device);
/// The numbers start, start + step, … up to but not including `end`; `step` may be negative. int64
/// by default. PyTorch: `torch.arange`.
TENON_API Tensor arange(Scalar start, Scalar end, Scalar step = 1, DType dtype = DType::Int64);

// ---- Random numbers: Philox4x32-10, with the same results on every machine and device. Without a
// generator, Generator::current() is used.
/// Uniform random numbers in [0, 1).
TENON_API Tensor rand(const Shape& shape, DType dtype = DType::Float32,
                      const OptionalGenerator& generator = {});
/// Standard normal random numbers (Box-Muller).
TENON_API Tensor randn(const Shape& shape, DType dtype = DType::Float32,
                       const OptionalGenerator& generator = {});
/// Random integers in [low, high); the range has at most 2^31 integers.
TENON_API Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                         DType dtype = DType::Int64, const OptionalGenerator& generator = {});
/// Random elements: 1 with probability `p`, else 0.
TENON_API Tensor bernoulli(const Shape& shape, double p, DType dtype = DType::Float32,
                           const OptionalGenerator& generator = {});
/// Sets each element to zero with probability `p` and scales the others by 1 / (1 - p). Returns `x`
/// unchanged if `training` is false.
TENON_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
                         const OptionalGenerator& generator = {});

// ---- Element-wise, one tensor
// Functions with floating-point results convert integer and bool inputs to float32 first. neg, abs,
// sign, square, relu, floor, ceil, round and trunc keep integers.
#define TENON_UNARY(name) TENON_API Tensor name(const Tensor& x)
TENON_UNARY(neg);          ///< -x. Keeps integer dtypes.
TENON_UNARY(abs);          ///< |x|. Keeps integer dtypes.
TENON_UNARY(sign);         ///< -1, 0 or 1, the sign of x. Keeps integer dtypes.
TENON_UNARY(exp);          ///< e^x.
TENON_UNARY(expm1);        ///< e^x - 1, accurate near 0.
TENON_UNARY(log);          ///< Natural logarithm.
TENON_UNARY(log1p);        ///< log(1 + x), accurate near 0.
TENON_UNARY(sqrt);         ///< Square root.
TENON_UNARY(rsqrt);        ///< 1 / sqrt(x).
TENON_UNARY(reciprocal);   ///< 1 / x.
TENON_UNARY(square);       ///< x · x. Keeps integer dtypes.
TENON_UNARY(sin);          ///< Sine; x in radians.
TENON_UNARY(cos);          ///< Cosine; x in radians.
TENON_UNARY(asin);         ///< Arc sine, in radians.
TENON_UNARY(acos);         ///< Arc cosine, in radians.
TENON_UNARY(atan);         ///< Arc tangent, in radians.
TENON_UNARY(tanh);         ///< Hyperbolic tangent.
TENON_UNARY(sigmoid);      ///< 1 / (1 + e^-x).
TENON_UNARY(relu);         ///< max(x, 0). Keeps integer dtypes.
TENON_UNARY(erf);          ///< Error function.
TENON_UNARY(floor);        ///< Largest integer not above x.
TENON_UNARY(ceil);         ///< Smallest integer not below x.
TENON_UNARY(round);        ///< Nearest integer; halves are rounded to even.
TENON_UNARY(trunc);        ///< x without its fraction.
TENON_UNARY(logical_not);  ///< Whether x is 0; bool.
TENON_UNARY(isnan);        ///< Whether x is NaN; bool.
TENON_UNARY(isinf);        ///< Whether x is infinite; bool.
TENON_UNARY(isfinite);     ///< Whether x is neither infinite nor NaN; bool.
TENON_UNARY(silu);         ///< x · sigmoid(x) (swish).
TENON_UNARY(softsign);     ///< x / (1 + |x|).
TENON_UNARY(log2);         ///< Logarithm to base 2.
TENON_UNARY(log10);        ///< Logarithm to base 10.
TENON_UNARY(exp2);         ///< 2^x.
TENON_UNARY(tan);          ///< Tangent; x in radians.
TENON_UNARY(mish);         ///< x · tanh(log(1 + e^x)).
TENON_UNARY(hardtanh);     ///< x limited to [-1, 1].
TENON_UNARY(relu6);        ///< x limited to [0, 6].
TENON_UNARY(hardsigmoid);  ///< x / 6 + 0.5, limited to [0, 1].
TENON_UNARY(sinh);         ///< Hyperbolic sine.
TENON_UNARY(cosh);         ///< Hyperbolic cosine.
#undef TENON_UNARY
/// Gaussian error linear unit (Hendrycks and Gimpel, 2016): x · Φ(x), or its tanh approximation.
TENON_API Tensor gelu(const Tensor& x, bool tanh_approximation = false);
/// x for x > 0, else negative_slope · x.
TENON_API Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// x for x > 0, else alpha · (e^x - 1).
TENON_API Tensor elu(const Tensor& x, double alpha = 1.0);
/// log(1 + e^(beta · x)) / beta; x itself where beta · x is above the threshold.
TENON_API Tensor softplus(const Tensor& x, double beta = 1.0, double threshold = 20.0);
/// x limited to [low, high].
TENON_API Tensor clamp(const Tensor& x, Scalar low, Scalar high);
/// Converts to another dtype. Floating-point results are rounded to nearest even; floating point to
/// integer truncates; conversion to bool gives x != 0. PyTorch: `Tensor.to(dtype)`.
TENON_API Tensor cast(const Tensor& x, DType dtype);
/// The same value without its gradient: grad() treats the result as a constant.
TENON_API Tensor detach(const Tensor& x);
/// A copy of a variable's value, made at once, which later assignments do not change (inside a
/// function that is being compiled: made when the function runs). The gradient flows through the
/// copy. Other tensors never change, so clone() returns them. PyTorch: `x.clone()`.
TENON_API Tensor clone(const Tensor& x);

// ---- Element-wise, two tensors or a tensor and a number; shapes broadcast
#define TENON_BINARY(name)                                 \
  TENON_API Tensor name(const Tensor& a, const Tensor& b); \
  TENON_API Tensor name(const Tensor& a, Scalar b);        \
  TENON_API Tensor name(Scalar a, const Tensor& b)
/// a + b.
/// @{
TENON_BINARY(add);
/// @}
/// a - b.
/// @{
TENON_BINARY(sub);
/// @}
/// a · b.
/// @{
TENON_BINARY(mul);
/// @}
/// a / b; integers give float32.
/// @{
TENON_BINARY(div);
/// @}
/// a raised to the power b.
/// @{
TENON_BINARY(pow);
/// @}
/// The angle of the point (b, a) in radians, in (-π, π].
/// @{
TENON_BINARY(atan2);
/// @}
/// The larger of a and b.
/// @{
TENON_BINARY(maximum);
/// @}
/// The smaller of a and b.
/// @{
TENON_BINARY(minimum);
/// @}
/// The remainder of a / b with the sign of b, as Python's `%`.
/// @{
TENON_BINARY(remainder);
/// @}
/// a / b rounded down.
/// @{
TENON_BINARY(floor_divide);
/// @}
/// a == b; bool.
/// @{
TENON_BINARY(eq);
/// @}
/// a != b; bool.
/// @{
TENON_BINARY(ne);
/// @}
/// a < b; bool.
/// @{
TENON_BINARY(lt);
/// @}
/// a <= b; bool.
/// @{
TENON_BINARY(le);
/// @}
/// a > b; bool.
/// @{
TENON_BINARY(gt);
/// @}
/// a >= b; bool.
/// @{
TENON_BINARY(ge);
/// @}
/// Whether a and b are both nonzero; bool.
/// @{
TENON_BINARY(logical_and);
/// @}
/// Whether a or b is nonzero; bool.
/// @{
TENON_BINARY(logical_or);
/// @}
/// Whether exactly one of a and b is nonzero; bool.
/// @{
TENON_BINARY(logical_xor);
/// @}
#undef TENON_BINARY
/// `a` where `condition` (bool) is true, else `b`, element by element; all three broadcast.
/// @{
TENON_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
TENON_API Tensor where(const Tensor& condition, Scalar a, const Tensor& b);
TENON_API Tensor where(const Tensor& condition, const Tensor& a, Scalar b);
/// @}

/// Makes the handle `x` refer to `value`, which must have the shape of `x`; implements the compound
/// operators (`x += y`). `symbol` is the operator for the error message. Throws ValueError if `x`
/// is a variable, ShapeError for another shape, DTypeError if only one of the two dtypes is
/// floating point.
TENON_API Tensor& rebind(Tensor& x, const Tensor& value, char symbol);

#define TENON_OPERATOR(symbol, name)                                                     \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return name(a, b); } \
  template <class T>                                                                     \
  requires std::is_arithmetic_v<T> Tensor operator symbol(const Tensor& a, T b) {        \
    return name(a, Scalar(b));                                                           \
  }                                                                                      \
  template <class T>                                                                     \
  requires std::is_arithmetic_v<T> Tensor operator symbol(T a, const Tensor& b) {        \
    return name(Scalar(a), b);                                                           \
  }
/// Operators on tensors, and on a tensor and a plain number: `a + b` is add(a, b), `-` sub, `*`
/// mul, `/` div, `%` remainder, `==` eq, `!=` ne, `<` lt, `<=` le, `>` gt, `>=` ge.
/// @{
TENON_OPERATOR(+, add)
TENON_OPERATOR(-, sub)
TENON_OPERATOR(*, mul)
TENON_OPERATOR(/, div)
TENON_OPERATOR(%, remainder)
TENON_OPERATOR(==, eq)
TENON_OPERATOR(!=, ne)
TENON_OPERATOR(<, lt)
TENON_OPERATOR(<=, le)
TENON_OPERATOR(>, gt)
TENON_OPERATOR(>=, ge)
/// @}
#undef TENON_OPERATOR
/// Element-wise logic of bool tensors (masks): `(x > 0) & ~(x > 1)`. Throws DTypeError for other
/// dtypes.
/// @{
TENON_API Tensor operator&(const Tensor& a, const Tensor& b);
TENON_API Tensor operator|(const Tensor& a, const Tensor& b);
TENON_API Tensor operator^(const Tensor& a, const Tensor& b);
TENON_API Tensor operator~(const Tensor& x);
/// @}

#define TENON_COMPOUND(symbol)                        \
  template <class T>                                  \
  Tensor& operator symbol##=(Tensor& x, const T& y) { \
    return rebind(x, x symbol y, #symbol[0]);         \
  }
/// Compound operators: `x += y` is `x = x + y`. Only the handle `x` gets the new value; other
/// handles of the old value keep it. Throws ValueError if `x` is a variable: use assign() or
/// set_value().
/// @{
TENON_COMPOUND(+)
TENON_COMPOUND(-)
TENON_COMPOUND(*)
TENON_COMPOUND(/)
TENON_COMPOUND(%)
TENON_COMPOUND(&)
TENON_COMPOUND(|)
TENON_COMPOUND(^)
/// @}
#undef TENON_COMPOUND
/// neg(x).
inline Tensor operator-(const Tensor& x) { return neg(x); }

// ---- Reductions over the given axes (all axes if none is given). The reduced axes are removed;
// with `keepdim` they stay with size 1.
/// Sum. Integers and bool are summed in int64.
TENON_API Tensor sum(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Product. Integers and bool are multiplied in int64.
TENON_API Tensor prod(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Mean.
TENON_API Tensor mean(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Variance: the sum of squared deviations divided by (count - correction). The default 1 gives the
/// unbiased estimate.
TENON_API Tensor var(const Tensor& x, const Axes& axes = {}, bool keepdim = false,
                     double correction = 1);
/// Largest element; NaN if any element is NaN. An empty reduction is an error.
TENON_API Tensor amax(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Smallest element; NaN if any element is NaN. An empty reduction is an error.
TENON_API Tensor amin(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Whether all elements are nonzero; bool.
TENON_API Tensor all(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Whether any element is nonzero; bool.
TENON_API Tensor any(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// log(sum(e^x)), computed without overflow.
TENON_API Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdim = false);
/// Index of the first maximum along an axis; int64.
TENON_API Tensor argmax(const Tensor& x, int axis = -1, bool keepdim = false);
/// Index of the first minimum along an axis; int64.
TENON_API Tensor argmin(const Tensor& x, int axis = -1, bool keepdim = false);

// ---- Sorting: NaN is larger than every number, and equal elements keep their order
/// Selected elements and their positions along the axis.
struct ValuesAndIndices {
  Tensor values;   ///< The elements, of the input's dtype.
  Tensor indices;  ///< Their indices along the axis; int64.
};
/// Largest element along an axis and its first index; NaN if the axis contains NaN. The gradient
/// goes to the element at that index. An empty axis is an error.
TENON_API ValuesAndIndices max(const Tensor& x, int axis, bool keepdim = false);
/// Smallest element along an axis and its first index; otherwise as max().
TENON_API ValuesAndIndices min(const Tensor& x, int axis, bool keepdim = false);
/// Sorts along an axis. The sort is always stable, whatever `stable` says.
TENON_API ValuesAndIndices sort(const Tensor& x, int axis = -1, bool descending = false,
                                bool stable = false);
/// The indices of sort(); int64.
TENON_API Tensor argsort(const Tensor& x, int axis = -1, bool descending = false,
                         bool stable = false);
/// The k largest (or smallest) elements along an axis, always in sorted order, whatever `sorted`
/// says. Throws ValueError if the axis has fewer than k elements.
TENON_API ValuesAndIndices topk(const Tensor& x, std::int64_t k, int axis = -1, bool largest = true,
                                bool sorted = true);
/// Euclidean norm over axes (all axes if none is given).
TENON_API Tensor norm(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// e^x / sum(e^x) along an axis.
TENON_API Tensor softmax(const Tensor& x, int axis = -1);
/// log(softmax(x)) along an axis, computed without overflow.
TENON_API Tensor log_softmax(const Tensor& x, int axis = -1);

// ---- Shape operations
/// The same elements with other sizes. One size may be -1; it is computed from the others.
TENON_API Tensor reshape(const Tensor& x, const Ints& sizes);
/// Merges the axes start_axis to end_axis into one.
TENON_API Tensor flatten(const Tensor& x, int start_axis = 0, int end_axis = -1);
/// Reorders the axes: axis i of the result is axis `axes[i]` of `x`.
TENON_API Tensor permute(const Tensor& x, const Ints& axes);
/// Exchanges two axes; by default the last two.
TENON_API Tensor transpose(const Tensor& x, int a = -2, int b = -1);
/// Repeats axes of size 1 to the given sizes, and adds axes in front; -1 keeps a size. PyTorch:
/// `Tensor.expand`.
TENON_API Tensor expand(const Tensor& x, const Ints& sizes);
/// Broadcasts `x` to a shape by NumPy's rules.
TENON_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Removes an axis of size 1. An axis of another size is kept.
TENON_API Tensor squeeze(const Tensor& x, int axis);
/// Removes all axes of size 1.
TENON_API Tensor squeeze(const Tensor& x);
/// Inserts an axis of size 1 at position `axis`.
TENON_API Tensor unsqueeze(const Tensor& x, int axis);
/// `x[start:end:step]` along an axis, with NumPy's clipping and negative indices. `step` must not
/// be zero.
TENON_API Tensor slice(const Tensor& x, int axis, std::int64_t start, std::int64_t end,
                       std::int64_t step = 1);
/// The element at `index` along an axis, `x[.., index, ..]`; the axis is removed.
TENON_API Tensor select(const Tensor& x, int axis, std::int64_t index);
/// Reverses the order along axes.
TENON_API Tensor flip(const Tensor& x, const Axes& axes);
/// Concatenates tensors along an existing axis. PyTorch: `torch.cat`.
TENON_API Tensor concat(TensorList tensors, int axis = 0);
/// Concatenates tensors of equal shape along a new axis.
TENON_API Tensor stack(TensorList tensors, int axis = 0);
/// `length` elements along an axis from `start`, which may be negative. Throws ValueError if the
/// range exceeds the axis.
TENON_API Tensor narrow(const Tensor& x, int axis, std::int64_t start, std::int64_t length);
/// Chunks of `size` elements along an axis; the last chunk may be smaller.
TENON_API std::vector<Tensor> split(const Tensor& x, std::int64_t size, int axis = 0);
/// Chunks of the given sizes along an axis. Throws ShapeError if the sizes do not add up to the
/// axis.
TENON_API std::vector<Tensor> split(const Tensor& x, const Ints& sizes, int axis = 0);
/// At most `count` chunks of equal size along an axis; the last chunk may be smaller.
TENON_API std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, int axis = 0);
/// All slices `x[.., index, ..]` along an axis; the axis is removed.
TENON_API std::vector<Tensor> unbind(const Tensor& x, int axis = 0);
/// Pads with a constant value. `padding` holds (before, after) pairs, the last axis first, as in
/// PyTorch.
TENON_API Tensor pad(const Tensor& x, const Ints& padding, Scalar value = 0);
/// Picks elements by index along an axis: `out[i][j] = x[index[i][j]][j]` for axis 0. `index` is
/// int64 or int32; an index out of range is a ValueError at run time. PyTorch: `torch.gather`.
TENON_API Tensor gather(const Tensor& x, int axis, const Tensor& index);
/// `base` with `updates` written to the positions that gather() would read. Of equal indices the
/// last one wins and receives the gradient.
TENON_API Tensor scatter(const Tensor& base, int axis, const Tensor& index, const Tensor& updates);
/// `base` with one value written to the positions that gather() would read.
TENON_API Tensor scatter(const Tensor& base, int axis, const Tensor& index, Scalar value);
/// `base` with `updates` added at the positions that gather() would read. Updates with equal
/// indices are added in order.
TENON_API Tensor scatter_add(const Tensor& base, int axis, const Tensor& index,
                             const Tensor& updates);
/// Slices of `x` along an axis, picked by a vector of indices.
TENON_API Tensor index_select(const Tensor& x, int axis, const Tensor& index);
/// One-hot encoding: int64 […] to […, classes] of 0 and 1, in the given dtype. An index out of
/// range is a ValueError at run time.
TENON_API Tensor one_hot(const Tensor& index, std::int64_t classes, DType dtype = DType::Int64);

/// Options of embedding() and nn::Embedding.
struct EmbeddingOptions {
  /// Row that gets no gradient. In the initial weight of nn::Embedding it is zero.
  std::optional<std::int64_t> padding_index{};
  /// Rows with a larger norm are scaled to this norm when they are read; gradients ignore the
  /// scale. The weight is not changed (PyTorch writes the scaled rows into the weight).
  std::optional<double> max_norm{};
  double norm_type = 2;             ///< The p of the norm for max_norm.
  bool scale_grad_by_freq = false;  ///< Divide a row's gradient by the number of its reads.
  /// Optimizers update only the rows that were read, and never compute the gradient of the whole
  /// weight. optim::SparseAdam, Adagrad and Sgd can do so. PyTorch: `sparse`.
  bool sparse = false;
};
/// Rows of a weight [entries, features] by index: int64 or int32 […] to […, features]. The gradient
/// changes only the rows that were read. Throws ShapeError or ValueError; an index out of range is
/// a ValueError at run time.
TENON_API Tensor embedding(const Tensor& index, const Tensor& weight,
                           const EmbeddingOptions& options = {});
/// embedding() with a padding index (a number, an optional number or nullopt) as its only option.
/// An argument in braces is EmbeddingOptions, whose first member is the padding index.
template <std::convertible_to<std::optional<std::int64_t>> PaddingIndex>
Tensor embedding(const Tensor& index, const Tensor& weight, PaddingIndex padding_index) {
  return embedding(index, weight, EmbeddingOptions{.padding_index = padding_index});
}

// ---- Matrix products and convolution
/// Matrix product with PyTorch's rules: vectors are promoted to matrices, batch axes broadcast.
/// Throws DTypeError for a float64 tensor with one of another floating type: cast() one.
TENON_API Tensor matmul(const Tensor& a, const Tensor& b);
/// x · weightᵀ + bias: x [.., in], weight [out, in], bias [out] or undefined; gives [.., out].
TENON_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// How pad() and convolutions continue a tensor beyond its borders.
enum class PadMode {
  Reflect,    ///< mirrored at the border element, which is not repeated
  Replicate,  ///< the border element
  Circular    ///< from the other end
};
/// Options of conv2d() and nn::Conv2d. Pairs are (height, width); one number sets both.
struct Conv2dOptions {
  Pair stride = 1;                           ///< Step of the window.
  Pair padding = 0;                          ///< Elements added on each side.
  Pair dilation = 1;                         ///< Distance of the kernel's elements.
  std::int64_t groups = 1;                   ///< Groups of channels.
  std::optional<PadMode> padding_mode = {};  ///< What is added; none: zeros.
};
/// Convolution (cross-correlation, as in PyTorch): x [N, C, H, W] or [C, H, W], weight [K, C /
/// groups, R, S], bias [K] or undefined; gives [N, K, P, Q] or [K, P, Q].
TENON_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Conv2dOptions& options = {});

// ---- Attention
/// Options of scaled_dot_product_attention().
struct AttentionOptions {
  bool causal = false;   ///< Query i attends to keys 0 to i only.
  double scale = 0;      ///< Factor of the scores; 0: 1 / sqrt(E).
  double dropout_p = 0;  ///< Dropout probability of the attention weights; use 0 in evaluation.
  /// Grouped-query attention: keys and values have fewer heads; each serves a group of query heads.
  bool enable_gqa = false;
  OptionalGenerator generator{};  ///< For dropout; without one, Generator::current().
};
/// Attention, softmax(scale · query · keyᵀ) · value: query [..., L, E], key [..., S, E], value
/// [..., S, Ev]; gives [..., L, Ev]. The axis of heads comes before the axes L and S. `mask`
/// broadcasts to [..., L, S]: bool (true: the query attends to the key) or floating point (added to
/// the scores); it may be undefined. A query that attends to no key gives zeros and contributes
/// nothing to any gradient, as in PyTorch; the same holds for all queries if S = 0. Throws
/// ShapeError or DTypeError.
TENON_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                              const Tensor& value, const Tensor& mask = {},
                                              const AttentionOptions& options = {});

// ---- Pooling
/// Options of two-dimensional pooling. Pairs are (height, width).
struct Pool2dOptions {
  Pair kernel = 2;                ///< Size of the window.
  Pair stride = 0;                ///< Step of the window; 0: its size.
  Pair padding = 0;               ///< Padding on each side.
  Pair dilation = 1;              ///< Distance of the window's elements; maxima only.
  bool ceil_mode = false;         ///< Round the output size up instead of down.
  bool count_include_pad = true;  ///< Averages only: count the padding in the divisor.
};
/// Maximum of each window of x [N, C, H, W] or [C, H, W]. NaN is larger than every number. A window
/// whose dilated elements are all outside the image gives -infinity.
TENON_API Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});
/// Mean of each window of x [N, C, H, W] or [C, H, W].
TENON_API Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {});
/// Mean over windows whose sizes are chosen so that the output has `output` rows and columns: x [N,
/// C, H, W] or [C, H, W] of any size. Throws ShapeError, ValueError or DTypeError.
TENON_API Tensor adaptive_avg_pool2d(const Tensor& x, Pair output);
/// Maximum over windows whose sizes are chosen as in adaptive_avg_pool2d().
TENON_API Tensor adaptive_max_pool2d(const Tensor& x, Pair output);

// ---- Normalisation. Sums and deviations of 16-bit values are computed in float32; results have
// the dtype of x.
/// Mean and variance of each channel.
struct Moments {
  Tensor mean;  ///< [C].
  Tensor var;   ///< [C]; divided by the count, not by the count minus one.
};
/// Mean and variance of each channel of x [N, C, …]: two vectors [C], float32 for 16-bit x. The
/// variance is divided by the count. Throws ShapeError for fewer than two axes.
TENON_API Moments batch_moments(const Tensor& x);
/// (x - mean) / sqrt(var + eps) · weight + bias for each channel of x [N, C, …]; the other tensors
/// are [C], and weight and bias may be undefined. Gradients flow into all of them, so with
/// batch_moments(x) this is batch normalisation in training (Ioffe and Szegedy, 2015). Throws
/// ShapeError.
TENON_API Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var,
                            const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
/// Layer normalisation (Ba et al., 2016) over the last axes of x, whose sizes are `shape`. weight
/// and bias have that shape or are undefined. Throws ShapeError.
TENON_API Tensor layer_norm(const Tensor& x, const Shape& shape, const Tensor& weight = {},
                            const Tensor& bias = {}, double eps = 1e-5);
/// Group normalisation (Wu and He, 2018) of x [N, C, …] over groups of channels. weight and bias
/// are [C] or undefined. Throws ShapeError, or ValueError if `groups` does not divide the channels.
TENON_API Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {},
                            const Tensor& bias = {}, double eps = 1e-5);
/// Local response normalisation, x / (k + alpha · m)^beta, where m is the mean of the squares of
/// `size` neighbouring channels of x [N, C, …], with zeros beyond the first and last channel. In
/// Krizhevsky et al. (2012) alpha multiplies the sum instead of the mean.
TENON_API Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha = 1e-4,
                                     double beta = 0.75, double k = 1);

// ---- Losses
/// How a loss combines its elements, and how all_reduce() and reduce_scatter() combine their parts.
enum class Reduction {
  None,  ///< Return the loss of each element.
  Mean,  ///< Return the mean.
  Sum    ///< Return the sum.
};
/// Cross entropy of logits [N, C], [N, C, …] or [C] with a target: class indices [N], [N, …] or []
/// (int64 or int32), or probabilities of the logits' shape. An index outside [0, C) is a ValueError
/// at run time.
TENON_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                               Reduction reduction = Reduction::Mean, double label_smoothing = 0);
/// Negative log likelihood: as cross_entropy() with class indices, for log-probabilities.
TENON_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target,
                          Reduction reduction = Reduction::Mean);
/// Squared error, (input - target)².
TENON_API Tensor mse_loss(const Tensor& input, const Tensor& target,
                          Reduction reduction = Reduction::Mean);
/// Absolute error, |input - target|.
TENON_API Tensor l1_loss(const Tensor& input, const Tensor& target,
                         Reduction reduction = Reduction::Mean);
/// With d = |input - target|: 0.5 · d² / beta for d < beta, else d - 0.5 · beta.
TENON_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                                Reduction reduction = Reduction::Mean, double beta = 1);
/// With d = |input - target|: 0.5 · d² for d < delta, else delta · (d - 0.5 · delta).
TENON_API Tensor huber_loss(const Tensor& input, const Tensor& target,
                            Reduction reduction = Reduction::Mean, double delta = 1);
/// Binary cross entropy of sigmoid(input) with targets in [0, 1] of the same shape.
TENON_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                                  Reduction reduction = Reduction::Mean);

// ---- Collectives between the members of a group; each member is a device
// `parts` holds one tensor for each member (rank), all of one shape and dtype. The parts are either
// each on a device of its own or all on one device. Result k is on the device of part k. All
// members get the same bits, because sums are computed in the order of ranks. Gradients flow back
// through the group. Throws ValueError for no parts or Reduction::None; DeviceError if only some
// members share a device; ShapeError; DTypeError for sums of bool and means of integers.
/// The sum or mean of all parts, for every member.
TENON_API std::vector<Tensor> all_reduce(TensorList parts, Reduction reduction = Reduction::Sum);
/// Copies `x`, which is on the device of one member, to all members.
TENON_API std::vector<Tensor> broadcast(const Tensor& x, std::span<const Device> members);
/// All parts concatenated along the first axis, for every member.
TENON_API std::vector<Tensor> all_gather(TensorList parts);
/// Splits the sum or mean of all parts into equal chunks along the first axis; member k gets chunk
/// k.
TENON_API std::vector<Tensor> reduce_scatter(TensorList parts,
                                             Reduction reduction = Reduction::Sum);

// ---- Assignments
/// An assignment of `value` to the variable `target`. It takes effect when the returned tensor is
/// evaluated; if the result is dropped, nothing is assigned. The result's value is `value`, also
/// after later assignments to the variable. Shapes and dtypes must agree.
[[nodiscard("an assignment happens when its result is evaluated")]]  //
TENON_API Tensor
assign(const Tensor& target, const Tensor& value);
/// `value`, with assignments attached: evaluating any tensor that depends on the result (a loss, a
/// compiled step) carries the assignments out, once. Gradients pass through. If several calls in
/// one graph attach assignments to the same variable, each sees the value that the previous one
/// assigned. In a module's forward(), update() does this. Throws ValueError if a tensor is not an
/// assignment.
TENON_API Tensor with_updates(const Tensor& value, TensorList assignments);
/// Detaches assignments: replaces the values by the same values without assignments and returns the
/// assignments, one for each variable. A training step uses this to guard or to drop updates; an
/// assignment that is dropped does not happen.
TENON_API std::vector<Tensor> take_updates(std::vector<Tensor>& values);
/// An assignment that takes effect only if `guard` (a bool scalar) is true at run time.
TENON_API Tensor guarded(const Tensor& assignment, const Tensor& guard);

}  // namespace tenon
