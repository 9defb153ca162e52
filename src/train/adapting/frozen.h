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
#include <tenon/notes.h>

#include "base/digest.h"

namespace tenon::train {

struct TakenWeights {
  std::string note;       ///< a sentence: what was loaded, what was converted, what does not fit
  Notes notes;            ///< what the reader of the file skipped or converted
  std::string normalize;  ///< the scaling of images that this family of weights expects
                          ///< (models/weights/weight_families.h), or empty
};
/// Loads the tensors of a file (<tenon/weights.h>) that fit the network, renamed if their family is
/// known. Throws what reading throws, and ValueError if no tensor fits.
TakenWeights take_fitting_weights(nn::AnyModule net, const std::string& file);
/// The same, but all tensors must fit; otherwise throws ValueError with what does not fit this
/// `model`.
TakenWeights take_all_weights(nn::AnyModule net, const std::string& model, const std::string& file);

/// "features,fc.0" as names. Throws ValueError for an empty one.
std::vector<std::string> parse_parts(const std::string& text);

/// Frozen-layer outputs of one sample, stored one after another in float32.
struct FrozenValues {
  struct One {
    Shape shape;  // shape of one sample's output
    DType dtype;
  };
  std::vector<One> values;
  /// Number of values of one sample.
  std::int64_t count() const;
  /// A single output keeps its shape; several outputs are concatenated in a row.
  Shape shape() const;
  /// Digest of the graph that computes the values, and of all values that it reads.
  Digest computed_by;
};

/// A network with frozen parts: their parameters are not trained, and their layers run in
/// evaluation mode, so that running statistics do not change and dropout has no effect. Its tensors
/// keep their names.
class FrozenNet : public nn::Module {
 public:
  /// Throws ValueError for a part that the network does not have.
  FrozenNet(const nn::AnyModule& net, const std::vector<std::string>& parts);
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override { return net_.describe(); }

  /// The outputs of the frozen parts for a sample of this shape and type, if they are the same in
  /// training and evaluation; otherwise nullopt, and `why` gives the reason.
  std::optional<FrozenValues> values(const Shape& example, DType dtype, std::string& why);
  /// The outputs of the frozen parts for a batch, float32 [N, count()], and the largest integer
  /// among them.
  std::vector<Tensor> numbers(const Tensor& batch);
  /// The network after the frozen parts: takes FrozenValues [N, …] of such samples instead of
  /// samples.
  nn::AnyModule behind(const Shape& example, DType dtype) const;
  /// The network with the frozen parts trainable again.
  nn::AnyModule released();
  /// Parameters that become trainable by released().
  std::vector<std::string> names_of_frozen() const { return would_learn_; }

 private:
  void set_parts_to_evaluation() const;

  nn::AnyModule net_;
  std::vector<nn::AnyModule> parts_;
  std::vector<std::string> would_learn_;
  std::optional<FrozenValues::One> example_;  // set if forward() takes frozen values
};

}  // namespace tenon::train
