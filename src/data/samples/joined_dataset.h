// Concatenation of datasets.
#pragma once

#include <memory>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// Concatenates at least one dataset, none null. Throws ShapeError if shapes or types of the
/// samples differ.
std::shared_ptr<Dataset> joined_dataset(std::vector<std::shared_ptr<const Dataset>> sets);

/// All samples of a source whose parts are separate datasets; null ones are skipped.
/// Throws ValueError if no dataset is left, else as joined_dataset().
std::shared_ptr<Dataset> joined_parts(std::vector<std::shared_ptr<Dataset>> sets);

}  // namespace tenon::data
