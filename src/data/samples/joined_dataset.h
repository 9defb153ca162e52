// Concatenation of datasets: all samples of a source whose parts are separate datasets.
#pragma once

#include <memory>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// Concatenates datasets. Null datasets are skipped. Throws ShapeError if sample shapes or types
/// differ, ValueError if no dataset is given.
std::shared_ptr<Dataset> joined_dataset(std::vector<std::shared_ptr<Dataset>> sets);

}  // namespace tenon::data
