// Weights that others published: which network they belong to, and how their tensors fit it.
//
// Tables map the tensor names of torchvision, timm, Hugging Face and llama.cpp, and the config.json
// of Hugging Face and timm, to the networks of <tenon/models.h>.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/notes.h>
#include <tenon/weights.h>

namespace tenon::models {

/// How the tensors of a file fit a network. fit_weights() returns it.
struct TENON_API WeightFit {
  /// The family of networks whose tensor names the file has: "Hugging Face GPT-2"; "": unknown.
  std::string family;
  /// How networks of that family scale images, a value of the setting `normalize`; "": unknown.
  std::string normalize;
  /// What was converted, in words: "148 renamed, as 'wte.weight' to 'transformer…'".
  std::vector<std::string> done;
  io::TensorMap tensors;  ///< the tensors by the network's names, in the network's shapes
  /// Names of the network's tensors that the file lacks. The batch counters of batch normalization
  /// (num_batches_tracked), which older files lack, are not counted.
  std::vector<std::string> missing;
  std::vector<std::string> foreign;    ///< names of the file's tensors that the network lacks
  std::vector<std::string> misshapen;  ///< sentences with both shapes, for shapes that differ
  std::vector<std::string> unread;     ///< for names in `missing`: the file's unread entry
  /// Why Tenon has no network of `family`, as the end of a sentence; "": it has one, or the family
  /// is unknown.
  std::string unsupported;

  /// "missing: 'fc.bias'; of another shape: …"; "" if no tensor is missing or of another shape.
  std::string differences() const;
};

/// Finds a network's tensors in a file.
///
/// The names in the file are adapted: prefixes that frameworks put before all names ("module.",
/// "state_dict.") or into paths ("_orig_mod.", "_fsdp_wrapped_module.") are removed, weights that
/// weight normalization stores as two tensors are combined, and names of a known family become the
/// network's names. Known are the networks of torchvision and Hugging Face, timm's
/// Inception-ResNet-v2, llama.cpp's GPT-2, and GPT-2 with nn.Linear, whose matrices are transposed.
///
/// Throws ValueError for two tensors with the same resulting name and for tied tensors that differ,
/// NotSupported for another parametrization of a weight.
///
/// @param file    the file
/// @param wanted  the network's tensors by name, for their shapes and data types
TENON_API WeightFit fit_weights(const io::WeightFile& file, const io::TensorMap& wanted);

/// The family of a file (WeightFit::family); "" if it is unknown.
TENON_API std::string weight_family(const io::WeightFile& file);

/// The network that published weights belong to, by the config.json of Hugging Face or timm in
/// their folder or beside their file.
struct PublishedNetwork {
  std::string model;         ///< a name for create(), with all sizes that the config gives
  std::int64_t classes = 0;  ///< number of outputs; 0: no config was read and `model` is unchanged
  std::string config{};      ///< path of the config; "": none was read
  Notes notes{};             ///< entries of the config that are ignored, and why
};
/// Reads the config beside `weights` and completes the name `model`. Throws FormatError for a
/// damaged config, ValueError if the config contradicts `model`, NotSupported if it describes a
/// network that Tenon lacks.
TENON_API PublishedNetwork published_network(const std::string& weights, const std::string& model);

}  // namespace tenon::models
