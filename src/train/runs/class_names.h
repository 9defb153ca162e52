// Class names: they map the classes of other data to those of a trained model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::train {

/// The class names, or none if they are only the class numbers.
std::vector<std::string> class_words(std::vector<std::string> names);

/// The dataset, named `data`, with its classes renumbered as those of a model, which are `known`
/// (numbers if they have no names). If one side has no class names, classes are matched by number.
/// Throws FormatError for a class that the model does not know, ShapeError if the dataset has more
/// classes than the model.
std::shared_ptr<data::Dataset> numbered_as(std::shared_ptr<data::Dataset> set,
                                           const std::vector<std::string>& known,
                                           const std::string& data);

/// Throws ValueError if the class names of the run in this folder differ from those of the dataset
/// that it is resumed with, or have another order.
void require_classes_of_run(const std::string& run_dir, const data::Dataset& set,
                            const std::string& data);

}  // namespace tenon::train
