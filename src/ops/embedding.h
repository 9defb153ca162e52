// Shared by embeddings with and without options.
#pragma once

#include <cstdint>

#include <tenon/tensor.h>

namespace tenon {

/// The row of weight that `padding_index` names, counted from the front. Throws ValueError if it is
/// out of range.
std::int64_t padding_row(std::int64_t padding_index, const Tensor& weight);

/// The bag of each of `places` positions; offsets [bags] say where each bag begins. Offsets that do
/// not increase from 0 to at most `places` are refused at run time.
Tensor bags_of(std::int64_t places, const Tensor& offsets);

}  // namespace tenon
