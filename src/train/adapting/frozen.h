// Pretrained weights: loads the tensors of a file that fit a network, and freezes layers.
//
// The outputs of the frozen part are found in the graph: values that depend on the input, on no
// trainable parameter and on no random number, and that a trainable operation reads. The remaining
// network is the same graph with these values as its input.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tenon/nn.h>

#include "base/digest.h"

namespace tenon::train {

/// Loads the tensors of a file (<tenon/weights.h>) that fit the network, renamed if their family is
/// known. Returns a sentence that lists what was loaded, what was converted and what does not fit.
/// Throws what reading throws, and ValueError if no tensor fits.
std::string take_fitting_weights(const nn::AnyModule& net, const std::string& file);
struct TakenWeights {
  std::string note;       ///< what was loaded
  std::string normalize;  ///< what their family scales images by
                          ///< (models/weights/weight_families.h), or empty
};
/// The same, but all tensors must fit; otherwise throws ValueError with what does not fit this
/// `model`.
TakenWeights take_all_weights(const nn::AnyModule& net, const std::string& model,
                              const std::string& file);

/// "features,fc.0" as names. Throws ValueError for an empty one.
std::vector<std::string> parse_parts(const std::string& text);

/// Frozen-layer outputs of one sample, stored one after another in float32.
struct FrozenValues {
  struct One {
    Shape shape;  // of one sample
    DType dtype;
  };
  std::vector<One> values;
  /// Number of values of one sample.
  std::int64_t count() const;
  /// A single output keeps its shape; several outputs are concatenated in a row.
  Shape shape() const;
  /// What they are computed by: the graph, and the values of all that it reads.
  Digest computed_by;
};

/// A network with parts frozen: their parameters do not learn, and their layers compute as in
/// evaluation, so that running statistics stay and nothing is dropped. Its tensors have the names
/// that they had.
class FrozenNet : public nn::Module {
 public:
  /// Throws ValueError for a part that is not there.
  FrozenNet(const nn::AnyModule& net, const std::vector<std::string>& parts);
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override { return net_.describe(); }

  /// What the frozen parts give of a sample of this shape and type, when that is the same in
  /// training and evaluation; otherwise nothing, and `why` says why.
  std::optional<FrozenValues> values(const Shape& example, DType dtype, std::string& why) const;
  /// The numbers of a batch, float32 [N, count()], and the largest whole number among them.
  std::vector<Tensor> numbers(const Tensor& batch) const;
  /// The network that takes FrozenValues [N, …] of such samples in the place of samples.
  nn::AnyModule behind(const Shape& example, DType dtype) const;
  /// The network without frozen parts: what would have learnt without them learns.
  nn::AnyModule released() const;
  /// Parameters that begin to learn when released() is asked for.
  std::vector<std::string> names_of_frozen() const { return would_learn_; }

 private:
  void rest() const;

  nn::AnyModule net_;
  std::vector<nn::AnyModule> parts_;
  std::vector<std::string> would_learn_;
  std::optional<FrozenValues::One> example_;  // whose frozen values are what forward() takes
};

}  // namespace tenon::train
