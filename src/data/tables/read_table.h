// The result of reading a table: the tensors of all rows, and the facts by which rows are divided
// into parts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/samples/split.h"
#include "data/samples/tensor_dataset.h"

namespace tenon::data {

/// Words of a column that the model or the training part does not have.
struct UnknownWords {
  std::string column{};
  std::vector<std::int64_t> rows{};    ///< ascending
  std::vector<std::int32_t> places{};  ///< index of each row's word in `texts`
  std::vector<std::string> texts{};
};

/// The rows of a file, with an encoding fitted on the training rows.
struct ReadTable {
  TensorDatasetParts all{};  ///< without a description; `numbers` are the rows' lines
  std::string name{};
  std::int64_t count = 0;                      ///< rows
  std::shared_ptr<const Division> division{};  ///< null unless the table is divided
  std::vector<std::int32_t> missing{};         ///< fields of each row; empty: none
  std::vector<UnknownWords> unknown{};
};

}  // namespace tenon::data
