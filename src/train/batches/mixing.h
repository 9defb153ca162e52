// mixup and cutmix inside the training step. The random numbers of a batch are an input of the
// step, so every batch runs the same program.
#pragma once

#include <tenon/data.h>
#include <tenon/nn.h>
#include <tenon/tensor.h>

namespace tenon::train {

/// Length of the row that encodes the random parameters of a batch: [kMixNumbers], float32.
constexpr std::int64_t kMixNumbers = 8;
/// The rows for `steps` batches starting at batch `first` of an epoch: [steps, kMixNumbers].
/// `image` is the shape of a sample.
Tensor mix_rows(const data::Mixing& mixing, const Shape& image, const data::LoaderState& epoch,
                std::int64_t first, std::int64_t steps);

/// Graph nodes that mix a batch according to a row.
class Mixed {
 public:
  explicit Mixed(Tensor row) : row_(std::move(row)) {}
  /// Mixes floating-point inputs [N, …]; cutmix needs [N, …, H, W].
  Tensor input(const Tensor& input) const;
  /// Weighted sum of `loss` for the own labels and for the partners' labels; for cross entropy it
  /// equals the loss for the mixed label.
  Tensor loss(const nn::Loss& loss, const Tensor& scores, const Tensor& target) const;
  /// The label with the larger weight.
  Tensor main_target(const Tensor& target) const;

 private:
  Tensor number(std::int64_t which) const;
  Tensor row_;
};

}  // namespace tenon::train
