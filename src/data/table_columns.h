// Columns of a table as inputs of a network: what is learnt from the training part, and how fields
// become numbers by it.
//
// A column of numbers is one input; a missing one is the mean of the training part. A column of
// words is one input for each word of the training part, 1 where it stands; a word that is missing
// or not known leaves all of them 0.
#pragma once

#include <string>
#include <vector>

#include <tenon/data.h>

#include "data/table.h"

namespace tenon::data {

/// What the rows that are not for testing say of a column. Throws FormatError that names file and
/// column when nearly every row has a word of its own.
TableColumn fit_column(const RawColumn& raw, const std::string& column_name, bool words,
                       const std::vector<bool>& test, const std::string& file);

/// The rows' inputs one after another, `raw[k]` read as columns[k] says.
std::vector<float> encode_rows(const std::vector<TableColumn>& columns,
                               const std::vector<const RawColumn*>& raw,
                               const std::vector<std::int64_t>& rows);

}  // namespace tenon::data
