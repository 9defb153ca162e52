// Batches of products that have few register tiles each, as in the attention of short sequences.
// The loops over blocks and chunks (gemm.cpp) would take longer than such a product.
#pragma once

#include "cpu/kernels/gemm/gemm_plan.h"

namespace tenon::cpu {

/// True if each product is one column of register tiles.
bool is_few_tiles(const GemmPlan& plan);
/// As gemm(), for such a plan. `memory` holds packed_a(), packed_b() and scratch() floats for every
/// worker.
void gemm_few_tiles(const Gemm& product, const GemmPlan& plan, const KernelSet& kernels,
                    float* memory);

}  // namespace tenon::cpu
