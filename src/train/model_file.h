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

/// The key of the metadata under which it stands.
inline constexpr char kModelKey[] = "tenon.model";

/// And the one under which its tokenizer stands, as tokenizer.json has it.
inline constexpr char kTokenizerKey[] = "tenon.tokenizer";
/// data_digest() of the samples that the run learnt from.
inline constexpr char kDataKey[] = "tenon.data";

struct ModelDescription {
  Settings settings;                     ///< those that a model needs; `data` "" when it was a path
  std::vector<std::string> class_names;  ///< empty when they are numbers
  std::string text_unit;                 ///< Dataset::text_unit()
  std::shared_ptr<const data::TableColumns> table{};  ///< Dataset::table()
};

std::string to_json(const ModelDescription& model);
/// Throws FormatError naming `source` for text that is not what to_json() writes.
ModelDescription model_from_json(const std::string& text, const std::string& source);

}  // namespace tenon::train
