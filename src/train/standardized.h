// A network for tables: standardizes numeric columns before the network and scales its output back
// to the units of the targets.
//
// Means and deviations are buffers of the network, so they are saved with its weights in
// checkpoints and model files and used in every evaluation. They are computed from the training
// part only.
#pragma once

#include <optional>

#include <tenon/data.h>
#include <tenon/nn.h>

namespace tenon::train {

/// The buffer whose presence in a state says that a network was standardized; the other one only of
/// a regression.
inline constexpr char kInputMean[] = "input_mean", kTargetMean[] = "target_mean";

/// Rows of floating numbers.
bool is_table(const data::Dataset& set);

/// The network with the statistics of a set. Throws NotSupported for one that has parameters of its
/// own beside its parts'.
nn::AnyModule standardized(const nn::AnyModule& net, const data::Dataset& set, bool targets);
/// With means of 0 and deviations of 1, of these shapes, for values to be loaded.
nn::AnyModule standardized(const nn::AnyModule& net, const Shape& input,
                           const std::optional<Shape>& target);

/// The deviations that outputs were scaled by; undefined when there are none.
Tensor target_deviation(const nn::AnyModule& net);

/// The mean squared error in units of `deviation`. Throws ShapeError when the output has not as
/// many numbers as the target.
struct StandardizedLoss {
  Tensor deviation{};  ///< undefined: 1
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& output, const Tensor& target) const;
};

}  // namespace tenon::train
