// Concatenation of datasets: all samples of a source whose parts are separate datasets.
#pragma once

#include <memory>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// The samples of the first set, then those of the next. Sets that are null are left out. Throws
/// ShapeError where their samples are of different shapes or types, ValueError where none is given.
std::shared_ptr<Dataset> joined_dataset(std::vector<std::shared_ptr<Dataset>> sets);

}  // namespace tenon::data
