// The order of class names, which defines the class numbers.
#pragma once

#include <string>
#include <vector>

#include <tenon/images.h>

namespace tenon::data {

/// Natural order: digits within words compare as numbers, "class2" before "class10".
bool natural_less(const std::string& a, const std::string& b);

/// Sorts names in the requested order. `from_folders`: they are folder names, not labels.
std::vector<std::string> ordered_classes(std::vector<std::string> names, ClassOrder order,
                                         bool from_folders);

}  // namespace tenon::data
