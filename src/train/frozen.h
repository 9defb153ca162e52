// Other people's weights: what of a file fits a network, parts of it that do not learn, and what
// those parts give, computed once for all epochs.
//
// Where what frozen parts compute of an input ends is found in the graph: it is the one value that
// depends on the input, on nothing that learns and on no random number, and that something which
// learns reads. The network behind it is the same graph with that value as its input.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/nn.h>

namespace tenon::train {

/// Takes the tensors of a file (<tenon/weights.h>) that fit the network, renamed where its family
/// is known. Returns a sentence on what was taken, what was done to it and what does not fit.
/// Throws what reading throws, and ValueError when nothing fits.
std::string take_fitting_weights(const nn::AnyModule& net, const std::string& file);
struct TakenWeights {
  std::string note;       ///< what was taken
  std::string normalize;  ///< what their family scales pictures by (io/weight_families.h), or empty
};
/// The same where everything must fit; otherwise ValueError says what does not.
TakenWeights take_all_weights(const nn::AnyModule& net, const std::string& file);

/// "features,fc.0" as names. Throws ValueError for an empty one.
std::vector<std::string> parse_parts(const std::string& text);

/// The network with these parts frozen: their parameters do not learn, and their layers compute as
/// in evaluation, so that running statistics stay and nothing is dropped. Its tensors have the
/// names that they had. Throws ValueError for a part that is not there.
nn::AnyModule with_frozen(const nn::AnyModule& net, const std::vector<std::string>& parts);

struct KeptPart {
  nn::AnyModule net = nn::Identity();  ///< takes what is kept; the same tensors by the same names
  std::shared_ptr<const data::Dataset> train, test;  ///< what is kept of the examples
  /// What was done, or why nothing is kept: then there is no `train`.
  std::string how;
};
/// Computes the frozen parts of with_frozen()'s network for all examples, once. `test` may be null.
KeptPart keep_frozen_part(const nn::AnyModule& net, const data::Loader& train,
                          const data::Loader* test);

}  // namespace tenon::train
