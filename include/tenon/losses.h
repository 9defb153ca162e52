// More losses: of margins, pairs and triplets, of distributions, of several labels, of sequences
// and of images. Conventions, dtypes and errors are those of ops.h; tensors that are compared must
// have the same shape, unless a loss says otherwise. All can be differentiated more than once.
#pragma once

#include <cstdint>
#include <functional>

#include <tenon/ops.h>

namespace tenon {

// ---- Margins
/// max(0, margin - y · (a - b)): y = 1 if a should be larger, y = -1 if b should be larger.
TENON_API Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& y,
                                     double margin = 0, Reduction reduction = Reduction::Mean);
/// x for y = 1, max(0, margin - x) for y = -1.
TENON_API Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin = 1,
                                      Reduction reduction = Reduction::Mean);
/// log(1 + e^(-y · x)) for y = 1 or y = -1.
TENON_API Tensor soft_margin_loss(const Tensor& x, const Tensor& y,
                                  Reduction reduction = Reduction::Mean);
/// For x [N, C] or [C] and class indices [N] or []: the sum over other classes k of
/// max(0, margin - x[target] + x[k])^p, divided by C. p is 1 or 2.
TENON_API Tensor multi_margin_loss(const Tensor& x, const Tensor& target, int p = 1,
                                   double margin = 1, Reduction reduction = Reduction::Mean);

// ---- Pairs and triplets of embeddings
/// 1 - cos(a, b) for y = 1, max(0, cos(a, b) - margin) for y = -1; a, b [N, D] or [D], y [N] or [].
TENON_API Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& y,
                                       double margin = 0, Reduction reduction = Reduction::Mean);
/// Options of triplet_margin_loss(), PyTorch's.
struct TripletOptions {
  double margin = 1;  ///< how much closer the positive must be
  double p = 2;       ///< exponent of the norm
  double eps = 1e-6;  ///< added to the differences
  /// Uses the smaller of |anchor - negative| and |positive - negative|.
  bool swap = false;
  Reduction reduction = Reduction::Mean;  ///< how the losses are combined
};
/// max(0, |anchor - positive| - |anchor - negative| + margin) by p-norms over the last axis
/// (Schroff et al., 2015).
TENON_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                     const Tensor& negative, const TripletOptions& options = {});
/// Options of triplet_margin_with_distance_loss(), PyTorch's.
struct TripletDistanceOptions {
  /// Distance of the rows of two tensors; by default pairwise_distance().
  std::function<Tensor(const Tensor&, const Tensor&)> distance = {};
  double margin = 1;                      ///< how much closer the positive must be
  bool swap = false;                      ///< as in TripletOptions
  Reduction reduction = Reduction::Mean;  ///< how the losses are combined
};
/// triplet_margin_loss() with another distance.
TENON_API Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                                   const Tensor& negative,
                                                   const TripletDistanceOptions& options = {});
/// Contrastive loss of pairs of rows (InfoNCE, van den Oord et al., 2018): cross entropy of the
/// cosines of a [N, D] with all rows of b [N, D], divided by the temperature, where row n of b
/// belongs to row n of a. Taken in both directions and averaged (Radford et al., 2021).
TENON_API Tensor info_nce_loss(const Tensor& a, const Tensor& b, double temperature = 0.07,
                               Reduction reduction = Reduction::Mean);

// ---- Distributions
/// e^input - target · input for log-rates, or input - target · log(input + eps) if `log_input` is
/// false. `full` adds Stirling's approximation of log(target!) for targets above 1.
TENON_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input = true,
                                  bool full = false, double eps = 1e-8,
                                  Reduction reduction = Reduction::Mean);
/// (log(var) + (input - target)² / var) / 2, with the variance not below eps; `full` adds
/// log(2 π) / 2. The variance has the input's shape, or 1 as the size of its last axis. The
/// gradient ignores the limit: it is that of the limited variance, also below eps (as in PyTorch).
TENON_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                   bool full = false, double eps = 1e-6,
                                   Reduction reduction = Reduction::Mean);

// ---- Several labels, imbalanced classes, masks
/// Binary cross entropy of logits [.., C], averaged over the classes; `weight` [C] or undefined.
TENON_API Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                             const Tensor& weight = {},
                                             Reduction reduction = Reduction::Mean);
/// For x [N, C] or [C] and label indices of the same shape, ended by the first -1: the sum over
/// labels j and other classes k of max(0, 1 - x[j] + x[k]), divided by C.
TENON_API Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target,
                                        Reduction reduction = Reduction::Mean);
/// Binary cross entropy of logits times (1 - p)^gamma, where p is the probability that the network
/// gives the correct answer. Positive targets are weighted by alpha, negative ones by 1 - alpha; a
/// negative alpha switches this weighting off (Lin et al., 2017).
TENON_API Tensor focal_loss(const Tensor& logits, const Tensor& target, double alpha = 0.25,
                            double gamma = 2, Reduction reduction = Reduction::Mean);
/// 1 - (2 · sum(p · t) + eps) / (sum(p) + sum(t) + eps) for probabilities p and targets t, with
/// sums over all axes but the first (Milletari et al., 2016); [N] before the reduction.
TENON_API Tensor dice_loss(const Tensor& probabilities, const Tensor& target, double eps = 1,
                           Reduction reduction = Reduction::Mean);

// ---- Sequences
/// Options of ctc_loss(), PyTorch's.
struct CtcOptions {
  std::int64_t blank = 0;  ///< class of the blank
  /// How the losses are combined; a mean divides each by the length of its target first.
  Reduction reduction = Reduction::Mean;
  bool zero_infinity = false;  ///< losses of targets that do not fit are 0, with gradient 0
};
/// Connectionist temporal classification (Graves et al., 2006): -log of the probability of all
/// alignments of a target with the input.
/// @param log_probabilities  [T, N, C], as log_softmax() gives them
/// @param targets            int64 or int32 [N, S], without blanks (not checked); entries after
///                           target_lengths[n] are ignored
/// @param input_lengths      int64 or int32 [N], at most T
/// @param target_lengths     int64 or int32 [N], at most S
/// @param options            the blank's class, the reduction, and what infinite losses count
TENON_API Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets,
                          const Tensor& input_lengths, const Tensor& target_lengths,
                          const CtcOptions& options = {});

}  // namespace tenon
