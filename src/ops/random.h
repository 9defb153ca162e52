// Random words, for number formats other than those of rand() and randint().
#pragma once

#include <tenon/ops.h>

namespace tenon {

/// Random integers in [0, 2^32), int64.
Tensor random_words(const Shape& shape, const OptionalGenerator& generator);

}  // namespace tenon
