// The vector loop of depthwise convolutions over small maps (conv_small_maps.h).
#pragma once

#include <cstdint>

namespace tenon::cpu {

/// sums[i] += a[i] * b[i] where all bits of mask[i] are set. Elsewhere mask[i] and the product are
/// zero, whatever b[i] is.
using MaskedProducts = void (*)(std::int64_t n, float* sums, const float* a, const float* b,
                                const std::uint32_t* mask);

/// The loop of best_isa().
MaskedProducts masked_products();

MaskedProducts base_masked_products();
MaskedProducts avx2_masked_products();
MaskedProducts avx512_masked_products();

}  // namespace tenon::cpu
