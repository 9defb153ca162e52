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

/// Buffers of a standardized network: the first marks a state dict as standardized; the second
/// exists only for regression.
inline constexpr char kInputMean[] = "input_mean", kTargetMean[] = "target_mean";

/// Whether the dataset has rows of floating-point numbers.
bool is_table(const data::Dataset& set);

/// Wraps the network with the statistics of a dataset. Throws NotSupported for a network with
/// parameters outside its layers.
nn::AnyModule standardized(const nn::AnyModule& net, const data::Dataset& set, bool targets);
/// The same with means 0 and deviations 1 of the given shapes, to load values into.
nn::AnyModule standardized(const nn::AnyModule& net, const Shape& input,
                           const std::optional<Shape>& target);

/// The standard deviations that outputs are scaled by; undefined if there are none.
Tensor target_deviation(const nn::AnyModule& net);

/// Mean squared error in units of `deviation`. Throws ShapeError if output and target differ in
/// their number of values.
struct StandardizedLoss {
  Tensor deviation{};  ///< undefined: 1
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& output, const Tensor& target) const;
};

}  // namespace tenon::train
