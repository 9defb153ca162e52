// Description of a model in the metadata of its weight file: a small JSON object, sufficient to
// build the network, to preprocess its inputs and to name its classes.
//
// It contains nothing about the machine that trained the model: no path, no number of threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/train.h>

namespace tenon::train {

/// Metadata key of the description.
inline constexpr char kModelKey[] = "tenon.model";

/// Metadata key of the tokenizer, in the format of tokenizer.json.
inline constexpr char kTokenizerKey[] = "tenon.tokenizer";
/// data_digest() of the training samples.
inline constexpr char kDataKey[] = "tenon.data";

struct ModelDescription {
  Settings settings;  ///< settings that a model needs; `data` is "" if it was a path
  std::vector<std::string> class_names;               ///< empty if classes are numbers
  std::string text_unit;                              ///< Dataset::text_unit()
  std::shared_ptr<const data::TableColumns> table{};  ///< Dataset::table()
};

std::string to_json(const ModelDescription& model);
/// Throws FormatError naming `source` if the text was not written by to_json().
ModelDescription model_from_json(const std::string& text, const std::string& source);

}  // namespace tenon::train
