// The language: every function here builds nodes and returns at once. Names, conventions and
// defaults are PyTorch's.
//
// Shapes broadcast as in NumPy. Two tensors of different dtypes promote as in the array API; a
// plain number never changes the dtype of the tensor it meets, except that a floating number with
// an integer or bool tensor gives float32, and a whole one with a bool tensor int64. A shape, axis
// or dtype that does not fit is refused here, with a ShapeError, DTypeError or ValueError that
// names the op, the layer and the shapes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/generator.h>
#include <tenon/number.h>
#include <tenon/tensor.h>

namespace tenon {

// ---- Making tensors
TENON_API Tensor full(const Shape& shape, Scalar value, DType dtype = DType::Float32);
TENON_API Tensor zeros(const Shape& shape, DType dtype = DType::Float32);
TENON_API Tensor ones(const Shape& shape, DType dtype = DType::Float32);
TENON_API Tensor zeros_like(const Tensor& x);
TENON_API Tensor ones_like(const Tensor& x);
TENON_API Tensor scalar(Scalar value, DType dtype = DType::Float32);
/// The same values on another device; the gradient comes back to this one. A transfer is a step of
/// the program that computes what depends on it. Not in the body of a loop. Constants and ramps,
/// and what is made of them alone, go to the device of what they meet; to() has them computed on
/// that device.
TENON_API Tensor to(const Tensor& x, Device device);
/// start, start + step, …, below end (above it for a negative step). int64 unless another dtype is
/// asked for.
TENON_API Tensor arange(Scalar start, Scalar end, Scalar step = 1, DType dtype = DType::Int64);

// ---- Random numbers (Philox4x32-10; the same on every machine and device)
/// Uniform on [0, 1).
TENON_API Tensor rand(const Shape& shape, DType dtype = DType::Float32,
                      Generator* generator = nullptr);
/// Standard normal (Box-Muller).
TENON_API Tensor randn(const Shape& shape, DType dtype = DType::Float32,
                       Generator* generator = nullptr);
/// Whole numbers in [low, high), at most 2^31 different ones.
TENON_API Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                         DType dtype = DType::Int64, Generator* generator = nullptr);
/// 1 with probability p, else 0.
TENON_API Tensor bernoulli(const Shape& shape, double p, DType dtype = DType::Float32,
                           Generator* generator = nullptr);
/// Zeroes each element with probability p and scales the rest by 1 / (1 - p); the identity when not
/// training.
TENON_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
                         Generator* generator = nullptr);

// ---- Element by element, one tensor
// Floating results: integer and bool inputs are converted to float32 first (not for neg, abs, sign,
// square, floor…trunc, relu).
#define TENON_UNARY(name) TENON_API Tensor name(const Tensor& x)
TENON_UNARY(neg);
TENON_UNARY(abs);
TENON_UNARY(sign);
TENON_UNARY(exp);
TENON_UNARY(expm1);
TENON_UNARY(log);
TENON_UNARY(log1p);
TENON_UNARY(sqrt);
TENON_UNARY(rsqrt);
TENON_UNARY(reciprocal);
TENON_UNARY(square);
TENON_UNARY(sin);
TENON_UNARY(cos);
TENON_UNARY(asin);
TENON_UNARY(acos);
TENON_UNARY(atan);
TENON_UNARY(tanh);
TENON_UNARY(sigmoid);
TENON_UNARY(relu);
TENON_UNARY(erf);
TENON_UNARY(floor);
TENON_UNARY(ceil);
TENON_UNARY(round);
TENON_UNARY(trunc);
TENON_UNARY(logical_not);
TENON_UNARY(isnan);
TENON_UNARY(isinf);
TENON_UNARY(isfinite);
TENON_UNARY(silu);
TENON_UNARY(softsign);
TENON_UNARY(log2);
TENON_UNARY(log10);
TENON_UNARY(exp2);
TENON_UNARY(tan);
TENON_UNARY(mish);
TENON_UNARY(hardtanh);
TENON_UNARY(relu6);
TENON_UNARY(hardsigmoid);
TENON_UNARY(sinh);
TENON_UNARY(cosh);
#undef TENON_UNARY
TENON_API Tensor gelu(const Tensor& x, bool tanh_approximation = false);
TENON_API Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
TENON_API Tensor elu(const Tensor& x, double alpha = 1.0);
TENON_API Tensor softplus(const Tensor& x, double beta = 1.0, double threshold = 20.0);
TENON_API Tensor clamp(const Tensor& x, Scalar low, Scalar high);
/// Converts the element type: rounds to nearest even; floating to integer truncates; to bool: x !=
/// 0.
TENON_API Tensor cast(const Tensor& x, DType dtype);
/// The same value, through which no gradient flows.
TENON_API Tensor detach(const Tensor& x);

// ---- Element by element, two tensors or a tensor and a number
#define TENON_BINARY(name)                                 \
  TENON_API Tensor name(const Tensor& a, const Tensor& b); \
  TENON_API Tensor name(const Tensor& a, Scalar b);        \
  TENON_API Tensor name(Scalar a, const Tensor& b)
TENON_BINARY(add);
TENON_BINARY(sub);
TENON_BINARY(mul);
TENON_BINARY(div);
TENON_BINARY(pow);
TENON_BINARY(atan2);  // the angle of the point (b, a), in (-pi, pi]
TENON_BINARY(maximum);
TENON_BINARY(minimum);
TENON_BINARY(remainder);
TENON_BINARY(floor_divide);
TENON_BINARY(eq);
TENON_BINARY(ne);
TENON_BINARY(lt);
TENON_BINARY(le);
TENON_BINARY(gt);
TENON_BINARY(ge);
TENON_BINARY(logical_and);
TENON_BINARY(logical_or);
TENON_BINARY(logical_xor);
#undef TENON_BINARY
/// condition ? a : b, element by element, all three broadcast.
TENON_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
TENON_API Tensor where(const Tensor& condition, Scalar a, const Tensor& b);
TENON_API Tensor where(const Tensor& condition, const Tensor& a, Scalar b);

/// x = value, of the same dtype: what `x symbol= y` does. Throws ValueError where x is a variable.
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
#undef TENON_OPERATOR
/// Of bool tensors, as masks: (x > 0) & ~(x > 1). A DTypeError for others.
TENON_API Tensor operator&(const Tensor& a, const Tensor& b);
TENON_API Tensor operator|(const Tensor& a, const Tensor& b);
TENON_API Tensor operator^(const Tensor& a, const Tensor& b);
TENON_API Tensor operator~(const Tensor& x);

/// x += y gives the handle x a new value, x + y; other handles of the old one keep it. A ValueError
/// for a variable, whose value assign() and set_value() change.
#define TENON_COMPOUND(symbol)                        \
  template <class T>                                  \
  Tensor& operator symbol##=(Tensor& x, const T& y) { \
    return rebind(x, x symbol y, #symbol[0]);         \
  }
TENON_COMPOUND(+)
TENON_COMPOUND(-)
TENON_COMPOUND(*)
TENON_COMPOUND(/)
TENON_COMPOUND(%)
TENON_COMPOUND(&)
TENON_COMPOUND(|)
TENON_COMPOUND(^)
#undef TENON_COMPOUND
inline Tensor operator-(const Tensor& x) { return neg(x); }

// ---- Reductions: over the given axes (all when empty); keepdim leaves them with size 1
/// Integers and bool add up in int64.
TENON_API Tensor sum(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
TENON_API Tensor prod(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
TENON_API Tensor mean(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Variance with `correction` taken from the count (1: unbiased).
TENON_API Tensor var(const Tensor& x, const Axes& axes = {}, bool keepdim = false,
                     double correction = 1);
/// Largest element; NaN wins. Refuses an empty reduction.
TENON_API Tensor amax(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
TENON_API Tensor amin(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
TENON_API Tensor all(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
TENON_API Tensor any(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
TENON_API Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdim = false);
/// Index of the first maximum (minimum) along an axis, int64.
TENON_API Tensor argmax(const Tensor& x, int axis = -1, bool keepdim = false);
TENON_API Tensor argmin(const Tensor& x, int axis = -1, bool keepdim = false);

// ---- Order: a NaN is larger than all else; of equal elements the first comes first
/// Elements and their places along the axis that they were taken from, int64.
struct ValuesAndIndices {
  Tensor values, indices;
};
/// Largest (smallest) element along an axis and the first place of it; a NaN wins in both. The
/// gradient goes to that place. Refuses an empty axis.
TENON_API ValuesAndIndices max(const Tensor& x, int axis, bool keepdim = false);
TENON_API ValuesAndIndices min(const Tensor& x, int axis, bool keepdim = false);
/// All elements along an axis in order; always stable.
TENON_API ValuesAndIndices sort(const Tensor& x, int axis = -1, bool descending = false,
                                bool stable = false);
TENON_API Tensor argsort(const Tensor& x, int axis = -1, bool descending = false,
                         bool stable = false);
/// The k largest (or smallest) elements along an axis, in order whether asked for or not. A
/// ValueError where the axis has fewer.
TENON_API ValuesAndIndices topk(const Tensor& x, std::int64_t k, int axis = -1, bool largest = true,
                                bool sorted = true);
/// Euclidean norm of all elements, or over axes.
TENON_API Tensor norm(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
TENON_API Tensor softmax(const Tensor& x, int axis = -1);
TENON_API Tensor log_softmax(const Tensor& x, int axis = -1);

// ---- Shape
/// One size may be -1: it is worked out.
TENON_API Tensor reshape(const Tensor& x, const Ints& sizes);
TENON_API Tensor flatten(const Tensor& x, int start_axis = 0, int end_axis = -1);
TENON_API Tensor permute(const Tensor& x, const Ints& axes);
TENON_API Tensor transpose(const Tensor& x, int a = -2, int b = -1);
TENON_API Tensor expand(const Tensor& x, const Ints& sizes);
TENON_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Without an axis of size 1, or without all of them. An axis of another size stays.
TENON_API Tensor squeeze(const Tensor& x, int axis);
TENON_API Tensor squeeze(const Tensor& x);
TENON_API Tensor unsqueeze(const Tensor& x, int axis);
/// x[start:end:step] along an axis, with NumPy's clipping and negative indices; the step is not
/// zero.
TENON_API Tensor slice(const Tensor& x, int axis, std::int64_t start, std::int64_t end,
                       std::int64_t step = 1);
/// x[.., index, ..]: the axis goes away.
TENON_API Tensor select(const Tensor& x, int axis, std::int64_t index);
TENON_API Tensor flip(const Tensor& x, const Axes& axes);
TENON_API Tensor concat(const std::vector<Tensor>& tensors, int axis = 0);
TENON_API Tensor stack(const std::vector<Tensor>& tensors, int axis = 0);
/// `length` elements of an axis, from `start` on, which may be negative. A ValueError names what
/// reaches outside.
TENON_API Tensor narrow(const Tensor& x, int axis, std::int64_t start, std::int64_t length);
/// Parts of `size` elements along an axis; the last may be smaller.
TENON_API std::vector<Tensor> split(const Tensor& x, std::int64_t size, int axis = 0);
/// Parts of the given sizes, which add up to the axis (else a ShapeError).
TENON_API std::vector<Tensor> split(const Tensor& x, const Ints& sizes, int axis = 0);
/// At most `count` parts of equal size along an axis; the last may be smaller.
TENON_API std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, int axis = 0);
/// Every x[.., index, ..] along an axis, which goes away.
TENON_API std::vector<Tensor> unbind(const Tensor& x, int axis = 0);
/// (before, after) pairs from the LAST axis backwards, as in PyTorch.
TENON_API Tensor pad(const Tensor& x, const Ints& padding, Scalar value = 0);
/// PyTorch's gather: out[i][j] = x[index[i][j]][j] for axis 0. Indices are int64 or int32; one
/// outside is a ValueError at run time.
TENON_API Tensor gather(const Tensor& x, int axis, const Tensor& index);
/// base with `updates`, or one value, in the places that gather would read; of equal indices the
/// last wins, and gets the gradient.
TENON_API Tensor scatter(const Tensor& base, int axis, const Tensor& index, const Tensor& updates);
TENON_API Tensor scatter(const Tensor& base, int axis, const Tensor& index, Scalar value);
/// base with `updates` added at the places that gather would read; equal indices add up in order.
TENON_API Tensor scatter_add(const Tensor& base, int axis, const Tensor& index,
                             const Tensor& updates);
/// Rows of `x` along an axis picked by a vector of indices.
TENON_API Tensor index_select(const Tensor& x, int axis, const Tensor& index);
/// int64[…] to int64[…, classes] of 0 and 1 (or another dtype). Refuses indices as gather() does.
TENON_API Tensor one_hot(const Tensor& index, std::int64_t classes, DType dtype = DType::Int64);

// ---- Contractions
/// Matrix product with PyTorch's rules: vectors are promoted, batch axes broadcast.
TENON_API Tensor matmul(const Tensor& a, const Tensor& b);
/// x [.., in] · weightᵀ [out, in] + bias [out]; the bias may be undefined.
TENON_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
struct Conv2dOptions {
  std::pair<std::int64_t, std::int64_t> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};
/// Cross-correlation, as in PyTorch: x [N, C, H, W] or [C, H, W], weight [K, C / groups, R, S],
/// bias [K] or undefined; gives [N, K, P, Q] or [K, P, Q].
TENON_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Conv2dOptions& options = {});

// ---- Attention
struct AttentionOptions {
  bool causal = false;      ///< the query at place i sees keys up to place i
  double scale = 0;         ///< of the scores; 0: 1 / sqrt(size)
  double dropout_p = 0;     ///< of the weights; give 0 outside of training
  bool enable_gqa = false;  ///< keys and values have fewer heads, each for a group of the query's
  Generator* generator = nullptr;
};
/// softmax(scale · query · keyᵀ) · value: query [..., L, E], key [..., S, E], value [..., S, Ev] to
/// [..., L, Ev]; an axis of heads stands before the lengths. `mask` broadcasts to [..., L, S]: bool
/// (true is seen) or floating (added to the scores); it may be undefined. A query that sees no key
/// gives zeros and adds nothing to any gradient, as in PyTorch; so does every query where S = 0.
/// Throws ShapeError or DTypeError.
TENON_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                              const Tensor& value, const Tensor& mask = {},
                                              const AttentionOptions& options = {});

// ---- Pooling: x [N, C, H, W]
struct Pool2dOptions {
  std::pair<std::int64_t, std::int64_t> kernel{2, 2};
  std::pair<std::int64_t, std::int64_t> stride{0, 0};  ///< 0: the kernel's size
  std::pair<std::int64_t, std::int64_t> padding{0, 0}, dilation{1, 1};
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< averages only
};
/// x [N, C, H, W] or [C, H, W]. A NaN is larger than all else; a window that dilation leads past
/// the whole image gives -infinity.
TENON_API Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});
TENON_API Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {});
/// Mean and maximum over windows such that `output` rows and columns come out, whatever the size of
/// x [N, C, H, W] or [C, H, W]. Throws ShapeError, ValueError or DTypeError.
TENON_API Tensor adaptive_avg_pool2d(const Tensor& x, std::pair<std::int64_t, std::int64_t> output);
TENON_API Tensor adaptive_max_pool2d(const Tensor& x, std::pair<std::int64_t, std::int64_t> output);

// ---- Normalisation: sums and deviations of 16-bit values are float32, results have x's dtype
struct Moments {
  Tensor mean, var;
};
/// Mean and variance (of the count, not one less) of each channel of x [N, C, …]: two vectors [C],
/// float32 for 16-bit x. Throws ShapeError below two axes.
TENON_API Moments batch_moments(const Tensor& x);
/// (x - mean) / sqrt(var + eps) · weight + bias by channel of x [N, C, …], the others [C]; weight
/// and bias may be undefined. Gradients flow into all of them: with the batch's own moments this
/// is batch norm while training. Throws ShapeError.
TENON_API Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var,
                            const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
/// x normalised over its last axes, which are `shape`; weight and bias (of that shape) may be
/// undefined. Throws ShapeError.
TENON_API Tensor layer_norm(const Tensor& x, const Shape& shape, const Tensor& weight = {},
                            const Tensor& bias = {}, double eps = 1e-5);
/// x [N, C, …] normalised over groups of channels; weight and bias [C] may be undefined. Throws
/// ShapeError, or ValueError when the channels do not divide.
TENON_API Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {},
                            const Tensor& bias = {}, double eps = 1e-5);
/// x / (k + alpha · m)^beta, where m is the mean of the squares of `size` neighbouring channels of
/// x [N, C, …], zeros beyond the ends (Krizhevsky et al., 2012, whose alpha multiplies their sum).
TENON_API Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha = 1e-4,
                                     double beta = 0.75, double k = 1);

// ---- Losses
/// Losses over their elements; all_reduce and reduce_scatter over members.
enum class Reduction { None, Mean, Sum };
/// logits [N, C], [N, C, …] or [C] with class indices [N], [N, …] or [] (int64 or int32), or with
/// probabilities of the logits' shape. An index that is no class is a ValueError at run time.
TENON_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                               Reduction reduction = Reduction::Mean, double label_smoothing = 0);
TENON_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target,
                          Reduction reduction = Reduction::Mean);
TENON_API Tensor mse_loss(const Tensor& input, const Tensor& target,
                          Reduction reduction = Reduction::Mean);
TENON_API Tensor l1_loss(const Tensor& input, const Tensor& target,
                         Reduction reduction = Reduction::Mean);
TENON_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                                Reduction reduction = Reduction::Mean, double beta = 1);
TENON_API Tensor huber_loss(const Tensor& input, const Tensor& target,
                            Reduction reduction = Reduction::Mean, double delta = 1);
TENON_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                                  Reduction reduction = Reduction::Mean);

// ---- Collectives: what members of a group, each a device, give one another
// `parts` is a tensor a member, of one shape and dtype, by rank: each on a device of its own, or
// all on one. Member k's result lives where its part does; all get the same bits, as sums are made
// in the order of ranks. Gradients flow back through the group. Throws ValueError for no parts, or
// Reduction::None; DeviceError where some members share a device and others do not; ShapeError;
// DTypeError for sums of bool and means of whole numbers.
/// The sum or the mean of all parts, to everybody.
TENON_API std::vector<Tensor> all_reduce(std::span<const Tensor> parts,
                                         Reduction reduction = Reduction::Sum);
/// x, which lives on one of the members, to all of them.
TENON_API std::vector<Tensor> broadcast(const Tensor& x, std::span<const Device> members);
/// All parts behind one another along the first axis, to everybody.
TENON_API std::vector<Tensor> all_gather(std::span<const Tensor> parts);
/// Of the sum or mean of all parts, to member k the k-th of equal stretches along the first axis.
TENON_API std::vector<Tensor> reduce_scatter(std::span<const Tensor> parts,
                                             Reduction reduction = Reduction::Sum);

// ---- Effects
/// When evaluated, `target` (a variable) holds `value` afterwards; yields the value. Shapes and
/// dtypes must agree. Nothing happens to it before: a result that is dropped assigns nothing.
[[nodiscard("an assignment happens when its result is evaluated")]]  //
TENON_API Tensor
assign(const Tensor& target, const Tensor& value);
/// The value itself, which carries assignments from here on: evaluating anything that depends on
/// it, a loss or a compiled step, carries them out, once. Gradients pass through. Where calls in
/// one graph carry assignments to the same variable, each sees what the one before has left. (In a
/// module's forward, update() does this.) Throws ValueError for what is no assignment.
TENON_API Tensor with_updates(const Tensor& value, std::span<const Tensor> assignments);
TENON_API Tensor with_updates(const Tensor& value, std::initializer_list<Tensor> assignments);
/// For steps that guard what they carry or leave it out: replaces the values by the same ones that
/// carry nothing and returns the assignments, one a variable. What is dropped does not happen.
TENON_API std::vector<Tensor> take_updates(std::vector<Tensor>& values);
/// The assignment, where `guard` (a bool scalar) is true; else the variable stays as it is.
TENON_API Tensor guarded(const Tensor& assignment, const Tensor& guard);

}  // namespace tenon
