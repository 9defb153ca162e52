// More of the language, composed from ops.h: activations, statistics, rearranging,
// convolutions over one and three axes and transposed ones, interpolation, losses with weights.
// Conventions, dtypes and errors are those of ops.h; all differentiate again.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <tenon/ops.h>

namespace tenon {

// ---- Element by element
TENON_API Tensor hardswish(const Tensor& x);
TENON_API Tensor selu(const Tensor& x);
TENON_API Tensor logsigmoid(const Tensor& x);
TENON_API Tensor celu(const Tensor& x, double alpha = 1.0);
/// max(x, 0) + weight min(x, 0); weight is one number or a vector [C] for x [N, C, …].
TENON_API Tensor prelu(const Tensor& x, const Tensor& weight);
/// The first half of an axis times the sigmoid of the second; the axis is even.
TENON_API Tensor glu(const Tensor& x, int axis = -1);
/// log(exp(a) + exp(b)).
TENON_API Tensor logaddexp(const Tensor& a, const Tensor& b);
/// a + weight (b - a).
TENON_API Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
TENON_API Tensor lerp(const Tensor& a, const Tensor& b, double weight);

// ---- Comparing
/// |a - b| <= atol + rtol |b|, element by element; infinities are close to themselves, NaN to NaN
/// where `equal_nan` says so.
TENON_API Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                         bool equal_nan = false);
/// Whether that holds everywhere. Evaluates.
TENON_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false);
/// Whether shapes and all elements are equal. Evaluates.
TENON_API bool equal(const Tensor& a, const Tensor& b);

// ---- Statistics
/// Square root of var; its gradient at 0 is 0.
TENON_API Tensor stddev(const Tensor& x, const Axes& axes = {}, bool keepdim = false,
                        double correction = 1);
/// (sum |x|^p)^(1 / p); of infinity the largest |x|, of -infinity the smallest, of 0 how many are
/// not 0.
TENON_API Tensor vector_norm(const Tensor& x, double p = 2, const Axes& axes = {},
                             bool keepdim = false);
/// sum(a b) / (max(|a|, eps) max(|b|, eps)) along an axis, which goes away.
TENON_API Tensor cosine_similarity(const Tensor& a, const Tensor& b, int axis = 1,
                                   double eps = 1e-8);
/// x / sqrt(mean(x^2) + eps) over its last axes, which are `shape`, times weight, which may be
/// undefined. Without eps: the distance from 1 to the next number of x's dtype.
TENON_API Tensor rms_norm(const Tensor& x, const Shape& shape, const Tensor& weight = {},
                          std::optional<double> eps = {});
/// Sums (products) of the elements of an axis up to and with each. Integers and bool in int64; with
/// a dtype, of the elements cast to it, in it.
TENON_API Tensor cumsum(const Tensor& x, int axis, std::optional<DType> dtype = {});
TENON_API Tensor cumprod(const Tensor& x, int axis, std::optional<DType> dtype = {});

// ---- Rearranging
/// Elements that leave at one end of an axis come back at the other. Without axes: of all elements
/// in a row.
TENON_API Tensor roll(const Tensor& x, const Ints& shifts, const Ints& axes = {});
/// The whole tensor counts[a] times along each axis; more counts than axes add axes in front.
TENON_API Tensor repeat(const Tensor& x, const Ints& counts);
/// Each element of an axis `count` times in a row.
TENON_API Tensor repeat_interleave(const Tensor& x, std::int64_t count, int axis);
/// Vectors as the coordinates of a grid: result k has the values of vector k along axis k
/// (columns_first, PyTorch's indexing "xy": the first two axes change places).
TENON_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors,
                                       bool columns_first = false);
/// Matrices (the last two axes) with zeros above, or below, a diagonal.
TENON_API Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
TENON_API Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// The value where the mask (bool, broadcasts) is true, else x.
TENON_API Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
/// base with alpha times row j of `updates` added to row index[j] along an axis.
TENON_API Tensor index_add(const Tensor& base, int axis, const Tensor& index, const Tensor& updates,
                           Scalar alpha = 1);

// ---- Tables of rows
struct EmbeddingOptions {
  std::optional<std::int64_t> padding_index{};  ///< whose row gets no gradient
  /// Rows of a larger norm are scaled to this one as they are read, which gradients do not see. The
  /// table itself stays as it is (PyTorch writes the scaled rows into it).
  std::optional<double> max_norm{};
  double norm_type = 2;             ///< the p of those norms
  bool scale_grad_by_freq = false;  ///< a row's gradient is divided by how often it was read
};
/// Rows of weight [entries, features]: gives […, features] for indices […], int64 or int32. The
/// gradient touches the rows that were read alone. Throws ShapeError or ValueError; an index
/// outside is a ValueError at run time.
TENON_API Tensor embedding(const Tensor& index, const Tensor& weight,
                           const EmbeddingOptions& options = {});
/// The same by the padding index alone: a number, an optional one or nullopt. What stands in braces
/// is options, whose first member it is.
template <std::convertible_to<std::optional<std::int64_t>> PaddingIndex>
Tensor embedding(const Tensor& index, const Tensor& weight, PaddingIndex padding_index) {
  return embedding(index, weight, EmbeddingOptions{.padding_index = padding_index});
}

enum class BagMode { Sum, Mean, Max };
struct EmbeddingBagOptions {
  std::optional<std::int64_t> padding_index{};  ///< to norm_type: as EmbeddingOptions
  std::optional<double> max_norm{};
  double norm_type = 2;
  bool scale_grad_by_freq = false;  ///< as EmbeddingOptions
  BagMode mode = BagMode::Mean;
  /// int64 or int32 [bags], growing from 0: where each bag begins in an index that is a vector.
  Tensor offsets{};
  /// The last offset begins no bag, but ends the last one: what stands from there on lies in none
  /// (for PyTorch, in the last bag's mean and maximum, but not in its sum).
  bool include_last_offset = false;
  Tensor per_sample_weights{};  ///< of the index's shape: a factor of each row; sums only
};
/// The sum, mean or maximum of the rows of each bag: index [bags, length], or a vector with
/// offsets, to [bags, features]. Entries at the padding index do not count; a bag of none gives
/// zeros. Throws ShapeError or ValueError; an index outside, and offsets that do not grow from 0 to
/// the index's end at most, are a ValueError at run time.
TENON_API Tensor embedding_bag(const Tensor& index, const Tensor& weight,
                               const EmbeddingBagOptions& options = {});

// ---- Convolutions and images
struct Conv1dOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
/// x [N, C, L] or [C, L], weight [K, C / groups, R].
TENON_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Conv1dOptions& options = {});
struct Conv3dOptions {
  std::array<std::int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  std::int64_t groups = 1;
};
/// x [N, C, D, H, W] or [C, D, H, W], weight [K, C / groups, T, R, S].
TENON_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Conv3dOptions& options = {});
/// Transposed: what a convolution's gradient does to its output. `output_padding` adds to the end
/// of the result and lies below the stride or the dilation.
struct ConvTranspose2dOptions {
  std::pair<std::int64_t, std::int64_t> stride{1, 1}, padding{0, 0}, output_padding{0, 0};
  std::pair<std::int64_t, std::int64_t> dilation{1, 1};
  std::int64_t groups = 1;
};
/// x [N, C, H, W] or [C, H, W], weight [C, K / groups, R, S]; of one axis and three likewise.
TENON_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose2dOptions& options = {});
struct ConvTranspose1dOptions {
  std::int64_t stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
};
TENON_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose1dOptions& options = {});
struct ConvTranspose3dOptions {
  std::array<std::int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, output_padding{0, 0, 0};
  std::array<std::int64_t, 3> dilation{1, 1, 1};
  std::int64_t groups = 1;
};
TENON_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose3dOptions& options = {});
/// x [N, C, …] at other sizes of the axes behind the channels. Linear is PyTorch's "linear",
/// "bilinear" or "trilinear", by the number of axes.
enum class Interpolation { Nearest, Linear };
TENON_API Tensor interpolate(const Tensor& x, const Ints& sizes,
                             Interpolation mode = Interpolation::Nearest,
                             bool align_corners = false);

// ---- Normalisation
/// Each channel of each sample of x [N, C, …] normalised by itself; weight and bias [C] may be
/// undefined. Throws ShapeError, or ValueError where a channel has one value.
TENON_API Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                               double eps = 1e-5);
struct LocalContrastNormOptions {
  std::int64_t size = 5;  ///< of a side of the window
  double alpha = 1, beta = 0.5, k = 1;
  Tensor means = {};  ///< like x, or broadcasting to it: what deviations are measured from; zeros
};
/// x / (k + alpha · v)^beta, where v is the mean of (x - means)² over the size × size neighbours of
/// each place of x [N, C, H, W] in its own channel, zeros beyond the edges: the divisive
/// normalisation of Jarrett et al. (2009), as cuDNN's cudnnDivisiveNormalizationForward. Of an even
/// size one neighbour more lies behind. Gradients flow into x and the means; differences of 16-bit
/// values are float32. Throws ShapeError, ValueError or DTypeError.
TENON_API Tensor local_contrast_norm(const Tensor& x, const LocalContrastNormOptions& options = {});

// ---- Losses
struct ClassLossOptions {
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;  ///< cross_entropy only
  Tensor weight = {};          ///< [C]: of each class; means are weighted by it
  std::optional<std::int64_t> ignore_index =
      {};  ///< targets that count for nothing (PyTorch's -100)
};
TENON_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                               const ClassLossOptions& options);
TENON_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target,
                          const ClassLossOptions& options);
/// target (log target - input) for log-probabilities `input`; the target is probabilities, or
/// their logarithms too.
TENON_API Tensor kl_div(const Tensor& input, const Tensor& target,
                        Reduction reduction = Reduction::Mean, bool log_target = false);
struct BinaryLossOptions {
  Reduction reduction = Reduction::Mean;
  Tensor weight = {};      ///< of each element; broadcasts
  Tensor pos_weight = {};  ///< of positive targets; with logits only
};
TENON_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                                  const BinaryLossOptions& options);
/// Of probabilities.
TENON_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                      const BinaryLossOptions& options = {});

}  // namespace tenon
