// The order of class names, which defines the class numbers.
#pragma once

#include <string>
#include <vector>

#include <tenon/images.h>

namespace tenon::data {

/// Whether digits within the words, compared as numbers, put `a` before `b`: "class2" before
/// "class10".
bool natural_less(const std::string& a, const std::string& b);

/// Names in the order that is asked for. `from_folders`: they are folders' names, not labels.
std::vector<std::string> ordered_classes(std::vector<std::string> names, ClassOrder order,
                                         bool from_folders);

}  // namespace tenon::data
