// Losses as objects for the functions of losses.h: margins, pairs, triplets, distributions, labels,
// masks, sequences. Names and defaults of members are PyTorch's. Those that take an output and a
// target convert to nn::Loss.
#pragma once

#include <cstdint>

#include <tenon/losses.h>

namespace tenon::nn {

// ---- Of an output and a target
/// hinge_embedding_loss() as an object.
struct HingeEmbeddingLoss {
  double margin = 1;                      ///< Distance beyond which y = -1 costs nothing.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of distances x for y = 1 or -1.
  Tensor operator()(const Tensor& x, const Tensor& y) const {
    return hinge_embedding_loss(x, y, margin, reduction);
  }
};
/// soft_margin_loss() as an object.
struct SoftMarginLoss {
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of an output for targets 1 or -1.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return soft_margin_loss(output, target, reduction);
  }
};
/// multi_margin_loss() as an object.
struct MultiMarginLoss {
  int p = 1;                              ///< Exponent, 1 or 2.
  double margin = 1;                      ///< Margin between the scores.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of scores [N, C] for classes [N].
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return multi_margin_loss(output, target, p, margin, reduction);
  }
};
/// multilabel_margin_loss() as an object.
struct MultiLabelMarginLoss {
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of scores [N, C] for lists of labels [N, C] that end with -1.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return multilabel_margin_loss(output, target, reduction);
  }
};
/// multilabel_soft_margin_loss() as an object.
struct MultiLabelSoftMarginLoss {
  Tensor weight{};                        ///< Weight of each class [C].
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of logits [.., C] for targets 0 or 1.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return multilabel_soft_margin_loss(output, target, weight, reduction);
  }
};
/// poisson_nll_loss() as an object.
struct PoissonNLLLoss {
  bool log_input = true;                  ///< The output is the logarithm of the rate.
  bool full = false;                      ///< Add Stirling's approximation of log(target!).
  double eps = 1e-8;                      ///< Added under the logarithm of a rate.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of an output.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return poisson_nll_loss(output, target, log_input, full, eps, reduction);
  }
};
/// focal_loss() as an object; torchvision has the function.
struct FocalLoss {
  double alpha = 0.25;                    ///< Weight of positive targets; negative: none.
  double gamma = 2;                       ///< Exponent that lowers the loss of easy targets.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of logits for targets 0 or 1.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return focal_loss(output, target, alpha, gamma, reduction);
  }
};
/// dice_loss() as an object. PyTorch has no counterpart.
struct DiceLoss {
  double eps = 1;                         ///< Added to numerator and denominator.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of probabilities [N, …] for targets 0 or 1.
  Tensor operator()(const Tensor& output, const Tensor& target) const {
    return dice_loss(output, target, eps, reduction);
  }
};
/// info_nce_loss() as an object. PyTorch has no counterpart.
struct InfoNCELoss {
  double temperature = 0.07;              ///< Divides the cosines.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of two lists of embeddings [N, D] whose rows belong together.
  Tensor operator()(const Tensor& a, const Tensor& b) const {
    return info_nce_loss(a, b, temperature, reduction);
  }
};

// ---- Of more tensors
/// margin_ranking_loss() as an object.
struct MarginRankingLoss {
  double margin = 0;                      ///< How far apart the two should be.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of two outputs; y = 1 if `a` should be larger, -1 if `b` should be.
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& y) const {
    return margin_ranking_loss(a, b, y, margin, reduction);
  }
};
/// cosine_embedding_loss() as an object.
struct CosineEmbeddingLoss {
  double margin = 0;                      ///< Cosine below which y = -1 costs nothing.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of two embeddings [N, D] for y = 1 or -1.
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& y) const {
    return cosine_embedding_loss(a, b, y, margin, reduction);
  }
};
/// triplet_margin_loss() as an object.
struct TripletMarginLoss : TripletOptions {
  /// The loss of embeddings [N, D].
  Tensor operator()(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const {
    return triplet_margin_loss(anchor, positive, negative, *this);
  }
};
/// gaussian_nll_loss() as an object.
struct GaussianNLLLoss {
  bool full = false;                      ///< Add log(2 π) / 2.
  double eps = 1e-6;                      ///< Smallest variance.
  Reduction reduction = Reduction::Mean;  ///< How the losses are combined.
  /// The loss of means and variances.
  Tensor operator()(const Tensor& input, const Tensor& target, const Tensor& var) const {
    return gaussian_nll_loss(input, target, var, full, eps, reduction);
  }
};
/// ctc_loss() as an object.
struct CTCLoss : CtcOptions {
  /// The loss of log-probabilities [T, N, C] for targets [N, S]; see ctc_loss().
  Tensor operator()(const Tensor& log_probabilities, const Tensor& targets,
                    const Tensor& input_lengths, const Tensor& target_lengths) const {
    return ctc_loss(log_probabilities, targets, input_lengths, target_lengths, *this);
  }
};

}  // namespace tenon::nn
