// mixup and cutmix inside the training step. The random numbers of a batch are an input of the
// step, so every batch runs the same program.
#pragma once

#include <tenon/data.h>
#include <tenon/nn.h>
#include <tenon/tensor.h>

namespace tenon::train {

/// A row of numbers that says a draw: [kMixNumbers], float32.
constexpr std::int64_t kMixNumbers = 8;
/// The rows of `steps` batches from batch `first` of an epoch on: [steps, kMixNumbers]. `image`
/// is a sample's shape.
Tensor mix_rows(const data::Mixing& mixing, const Shape& image, const data::LoaderState& epoch,
                std::int64_t first, std::int64_t steps);

/// Nodes of a batch that is mixed as a row says.
class Mixed {
 public:
  explicit Mixed(Tensor row) : row_(std::move(row)) {}
  /// Inputs [N, …] of floats; of CutMix [N, …, H, W].
  Tensor input(const Tensor& input) const;
  /// `loss` of the scores for the own labels and for the others, in their shares: of cross entropy
  /// what it is for the mixture of both classes.
  Tensor loss(const nn::Loss& loss, const Tensor& scores, const Tensor& target) const;
  /// The label with the larger share.
  Tensor main_target(const Tensor& target) const;

 private:
  Tensor number(std::int64_t which) const;
  Tensor row_;
};

}  // namespace tenon::train
