// The library's own form of step 5, as ways of the ladder.
#pragma once

#include "ladder.h"

namespace lab {

/// For any storage of the operands: the form that the library chooses, or with `all` every form.
std::vector<Way> library_ways(const Product& product, bool all);

}  // namespace lab
