// Class names: they map the classes of other data to those of a trained model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::train {

/// The names, where they are more than the classes' numbers; else none.
std::vector<std::string> class_words(std::vector<std::string> names);

/// The set, named `data`, with its classes numbered as those of a model, which are `known` (numbers
/// where nobody named them). Classes that have no names on one side are taken by number. Throws
/// FormatError for a class that the model does not know, ShapeError for more classes than it has.
std::shared_ptr<data::Dataset> numbered_as(std::shared_ptr<data::Dataset> set,
                                           const std::vector<std::string>& known,
                                           const std::string& data);

/// Throws ValueError where the run in this folder has named its classes and the set that it is
/// resumed with names others, or in another order.
void require_classes_of_run(const std::string& run_dir, const data::Dataset& set,
                            const std::string& data);

}  // namespace tenon::train
