// More tensor operations, composed from those of ops.h: activations, comparisons, statistics,
// rearranging, bags of embeddings, convolutions over one and three axes, transposed convolutions,
// interpolation, losses with weights. Conventions, dtypes and errors are those of ops.h. All
// functions can be differentiated more than once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/ops.h>

namespace tenon {

// ---- Element-wise
/// x · hardsigmoid(x).
TENON_API Tensor hardswish(const Tensor& x);
/// Scaled exponential linear unit (Klambauer et al., 2017).
TENON_API Tensor selu(const Tensor& x);
/// log(sigmoid(x)).
TENON_API Tensor logsigmoid(const Tensor& x);
/// max(x, 0) + min(alpha · (e^(x / alpha) - 1), 0).
TENON_API Tensor celu(const Tensor& x, double alpha = 1.0);
/// max(x, 0) + weight · min(x, 0); weight is one number or a vector [C] for x [N, C, …].
TENON_API Tensor prelu(const Tensor& x, const Tensor& weight);
/// Gated linear unit: the first half of an axis times the sigmoid of the second half. The size of
/// the axis must be even.
TENON_API Tensor glu(const Tensor& x, int axis = -1);
/// log(e^a + e^b), computed without overflow.
TENON_API Tensor logaddexp(const Tensor& a, const Tensor& b);
/// Linear interpolation, a + weight · (b - a).
/// @{
TENON_API Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
TENON_API Tensor lerp(const Tensor& a, const Tensor& b, double weight);
/// @}

// ---- Comparisons
/// Whether |a - b| <= atol + rtol · |b|, element by element; bool. Equal infinities are close. NaN
/// is close to NaN only with `equal_nan`.
TENON_API Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                         bool equal_nan = false);
/// Whether isclose() holds for all elements. Evaluates both tensors.
TENON_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false);
/// Whether the shapes and all elements are equal. Evaluates both tensors.
TENON_API bool equal(const Tensor& a, const Tensor& b);

// ---- Statistics
/// Standard deviation, the square root of var(); its gradient at 0 is 0. PyTorch: `torch.std`.
TENON_API Tensor stddev(const Tensor& x, const Axes& axes = {}, bool keepdim = false,
                        double correction = 1);
/// The p-norm, sum(|x|^p)^(1 / p). Infinity gives the largest |x|, -infinity the smallest |x|, and
/// 0 the number of nonzero elements. PyTorch: `torch.linalg.vector_norm`.
TENON_API Tensor vector_norm(const Tensor& x, double p = 2, const Axes& axes = {},
                             bool keepdim = false);
/// sum(a · b) / (max(|a|, eps) · max(|b|, eps)) along an axis, which is removed.
TENON_API Tensor cosine_similarity(const Tensor& a, const Tensor& b, int axis = 1,
                                   double eps = 1e-8);
/// Root mean square normalisation (Zhang and Sennrich, 2019): x / sqrt(mean(x²) + eps) · weight
/// over the last axes of x, whose sizes are `shape`. The weight may be undefined. Without `eps`,
/// the machine epsilon of the dtype of x is used.
TENON_API Tensor rms_norm(const Tensor& x, const Shape& shape, const Tensor& weight = {},
                          std::optional<double> eps = {});
/// Cumulative sum along an axis. Integers and bool are summed in int64. With `dtype`, elements are
/// first cast to it and summed in it.
TENON_API Tensor cumsum(const Tensor& x, int axis, std::optional<DType> dtype = {});
/// Cumulative product along an axis; dtypes as for cumsum().
TENON_API Tensor cumprod(const Tensor& x, int axis, std::optional<DType> dtype = {});

// ---- Rearranging
/// Shifts elements along axes; elements that leave at one end come back at the other. Without axes,
/// shifts all elements as one flat sequence.
TENON_API Tensor roll(const Tensor& x, const Ints& shifts, const Ints& axes = {});
/// Repeats the whole tensor counts[a] times along each axis a. More counts than axes add axes in
/// front.
TENON_API Tensor repeat(const Tensor& x, const Ints& counts);
/// Repeats each element of an axis `count` times in a row.
TENON_API Tensor repeat_interleave(const Tensor& x, std::int64_t count, int axis);
/// Coordinate grids of vectors: result k has the values of vector k along axis k. `columns_first`
/// exchanges the first two axes (PyTorch's `indexing="xy"`).
TENON_API std::vector<Tensor> meshgrid(TensorList vectors, bool columns_first = false);
/// Lower triangle of the matrices in the last two axes: elements above the diagonal become zero.
/// `diagonal` k is the k-th above the main diagonal.
TENON_API Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
/// Upper triangle of the matrices in the last two axes: elements below the diagonal become zero.
TENON_API Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// `value` where the mask (bool, broadcasts) is true, else x.
TENON_API Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
/// `base` with alpha · (slice j of `updates`) added to slice index[j] along an axis.
TENON_API Tensor index_add(const Tensor& base, int axis, const Tensor& index, const Tensor& updates,
                           Scalar alpha = 1);

// ---- Bilinear map
/// y[o] = Σ a[i] · weight[o][i][j] · b[j] + bias[o]: a [.., I], b [.., J], weight [out, I, J], bias
/// [out] or undefined; gives [.., out].
TENON_API Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight,
                          const Tensor& bias = {});

// ---- Bags of embeddings
/// How embedding_bag() combines the rows of a bag.
enum class BagMode {
  Sum,   ///< Sum of the rows.
  Mean,  ///< Mean of the rows.
  Max    ///< Element-wise maximum of the rows.
};
/// Options of embedding_bag() and nn::EmbeddingBag.
struct EmbeddingBagOptions {
  /// Entries that are not counted. In the initial weight of nn::EmbeddingBag their row is zero.
  std::optional<std::int64_t> padding_index{};
  std::optional<double> max_norm{};  ///< As in EmbeddingOptions.
  double norm_type = 2;              ///< As in EmbeddingOptions.
  bool scale_grad_by_freq = false;   ///< As in EmbeddingOptions.
  bool sparse = false;               ///< As in EmbeddingOptions.
  BagMode mode = BagMode::Mean;      ///< How rows are combined.
  /// The last offset is the end of the last bag, not the beginning of another one. Entries from
  /// there on belong to no bag (in PyTorch, to the last bag's mean and maximum but not to its sum).
  bool include_last_offset = false;
};
/// The sum, mean or maximum of the rows of `weight` ([rows, features]) in each bag: [bags,
/// features]. Entries equal to the padding index are not counted; an empty bag gives zeros.
///
/// `index` is [bags, length]. Or it is a vector, and `offsets` (int64 or int32 [bags], increasing
/// from 0) says where each bag begins. `per_sample_weights` has the index's shape and a factor for
/// each row, for BagMode::Sum only.
///
/// Throws ShapeError or ValueError. At run time, an index out of range and offsets that do not
/// increase from 0 to at most the length of the index are a ValueError. PyTorch:
/// `torch.nn.functional.embedding_bag`.
TENON_API Tensor embedding_bag(const Tensor& index, const Tensor& weight,
                               const Tensor& offsets = {}, const EmbeddingBagOptions& options = {},
                               const Tensor& per_sample_weights = {});

// ---- Convolutions and interpolation
/// Options of conv1d() and nn::Conv1d.
struct Conv1dOptions {
  std::int64_t stride = 1;                   ///< Step of the window.
  std::int64_t padding = 0;                  ///< Elements added on each side.
  std::int64_t dilation = 1;                 ///< Distance of the kernel's elements.
  std::int64_t groups = 1;                   ///< Groups of channels.
  std::optional<PadMode> padding_mode = {};  ///< What is added; none: zeros.
};
/// Convolution over one axis: x [N, C, L] or [C, L], weight [K, C / groups, R], bias [K] or
/// undefined.
TENON_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Conv1dOptions& options = {});
/// Options of conv3d() and nn::Conv3d. Triples are (depth, height, width); one number sets all.
struct Conv3dOptions {
  Triple stride = 1;                         ///< Step of the window.
  Triple padding = 0;                        ///< Elements added on each side.
  Triple dilation = 1;                       ///< Distance of the kernel's elements.
  std::int64_t groups = 1;                   ///< Groups of channels.
  std::optional<PadMode> padding_mode = {};  ///< What is added; none: zeros.
};
/// Convolution over three axes: x [N, C, D, H, W] or [C, D, H, W], weight [K, C / groups, T, R, S],
/// bias [K] or undefined.
TENON_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Conv3dOptions& options = {});
/// Options of conv_transpose2d() and nn::ConvTranspose2d. Pairs are (height, width); one number
/// sets both.
struct ConvTranspose2dOptions {
  Pair stride = 1;   ///< Step between windows in the output.
  Pair padding = 0;  ///< Rows and columns cut off on each side.
  /// Added to the end of the output; must be less than the stride or the dilation.
  Pair output_padding = 0;
  Pair dilation = 1;        ///< Distance of the kernel's elements.
  std::int64_t groups = 1;  ///< Groups of channels.
};
/// Transposed convolution, the input gradient of a convolution: x [N, C, H, W] or [C, H, W], weight
/// [C, K / groups, R, S], bias [K] or undefined.
TENON_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose2dOptions& options = {});
/// Options of conv_transpose1d() and nn::ConvTranspose1d.
struct ConvTranspose1dOptions {
  std::int64_t stride = 1;          ///< Step between windows in the output.
  std::int64_t padding = 0;         ///< Elements cut off on each side.
  std::int64_t output_padding = 0;  ///< Added to the end of the output.
  std::int64_t dilation = 1;        ///< Distance of the kernel's elements.
  std::int64_t groups = 1;          ///< Groups of channels.
};
/// Transposed convolution over one axis: x [N, C, L] or [C, L], weight [C, K / groups, R].
TENON_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose1dOptions& options = {});
/// Options of conv_transpose3d() and nn::ConvTranspose3d. Triples are (depth, height, width); one
/// number sets all.
struct ConvTranspose3dOptions {
  Triple stride = 1;          ///< Step between windows in the output.
  Triple padding = 0;         ///< Elements cut off on each side.
  Triple output_padding = 0;  ///< Added to the end of the output.
  Triple dilation = 1;        ///< Distance of the kernel's elements.
  std::int64_t groups = 1;    ///< Groups of channels.
};
/// Transposed convolution over three axes: x [N, C, D, H, W] or [C, D, H, W], weight [C, K /
/// groups, T, R, S].
TENON_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose3dOptions& options = {});
/// How interpolate() computes values between elements.
enum class Interpolation {
  Nearest,       ///< The element at floor(i · scale). PyTorch's "nearest".
  Linear,        ///< PyTorch's "linear", "bilinear" or "trilinear", by the number of axes.
  NearestExact,  ///< The element whose center is nearest. PyTorch's "nearest-exact".
  Cubic,         ///< Cubic convolution (Keys, 1981), PyTorch's "bicubic", for any number of axes.
  Area           ///< The mean over adaptive windows, as adaptive_avg_pool2d().
};
/// Resizes the axes after the channels of x [N, C, …] to the given sizes. resampling.h has scale
/// factors and antialiasing.
TENON_API Tensor interpolate(const Tensor& x, const Ints& sizes,
                             Interpolation mode = Interpolation::Nearest,
                             bool align_corners = false);

// ---- Normalisation
/// Instance normalisation: normalises each channel of each sample of x [N, C, …] separately. weight
/// and bias are [C] or undefined. Throws ShapeError, or ValueError if a channel has only one value.
TENON_API Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                               double eps = 1e-5);
/// Options of local_contrast_norm().
struct LocalContrastNormOptions {
  std::int64_t size = 5;  ///< Side of the window.
  double alpha = 1;       ///< Factor of the mean square.
  double beta = 0.5;      ///< Exponent.
  double k = 1;           ///< Added constant.
  Tensor means = {};      ///< Subtracted from x; broadcasts to x. Undefined: zeros.
};
/// Local contrast normalisation, x / (k + alpha · v)^beta for x [N, C, H, W], where v is the mean
/// of (x - means)² over the size × size window around each element in its own channel, with zeros
/// beyond the edges. This is the divisive normalisation of Jarrett et al. (2009) and cuDNN's
/// cudnnDivisiveNormalizationForward. For an even size, the window has one more element after the
/// center than before. Gradients flow into x and the means; differences of 16-bit values are
/// computed in float32. Throws ShapeError, ValueError or DTypeError.
TENON_API Tensor local_contrast_norm(const Tensor& x, const LocalContrastNormOptions& options = {});

// ---- Losses
/// Options of cross_entropy() and nll_loss().
struct ClassLossOptions {
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  double label_smoothing = 0;             ///< In [0, 1]; cross_entropy() only.
  Tensor weight = {};                     ///< Weight of each class [C]; means are weighted by it.
  /// Targets with this class are ignored. PyTorch's default is -100; here no class is ignored.
  std::optional<std::int64_t> ignore_index = {};
};
/// Cross entropy with class weights and an ignored class.
TENON_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                               const ClassLossOptions& options);
/// cross_entropy(linear(x, weight, bias), target, options): the loss of a last layer with the
/// weight [classes, features].
TENON_API Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& target,
                                      const ClassLossOptions& options = {},
                                      const Tensor& bias = {});
/// Negative log likelihood with class weights and an ignored class.
TENON_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target,
                          const ClassLossOptions& options);
/// Kullback-Leibler divergence, target · (log(target) - input) for log-probabilities `input`. The
/// target holds probabilities, or log-probabilities if `log_target` is true.
TENON_API Tensor kl_div(const Tensor& input, const Tensor& target,
                        Reduction reduction = Reduction::Mean, bool log_target = false);
/// Options of the binary cross entropy losses.
struct BinaryLossOptions {
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  Tensor weight = {};                     ///< Weight of each element; broadcasts.
  Tensor pos_weight = {};                 ///< Weight of positive targets; with logits only.
};
/// Binary cross entropy of logits, with weights.
TENON_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                                  const BinaryLossOptions& options);
/// Binary cross entropy of probabilities.
TENON_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                      const BinaryLossOptions& options = {});

}  // namespace tenon
