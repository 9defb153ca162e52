// What embeddings with options share with those without.
#pragma once

#include <cstdint>

#include <tenon/tensor.h>

namespace tenon {

/// The row of weight that padding names, counted from the front. Throws ValueError outside.
std::int64_t padding_row(std::int64_t padding_index, const Tensor& weight);

}  // namespace tenon
