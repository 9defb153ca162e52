// The text of a contraction's kernel: the headers, the epilogue, the configuration as constants.
#pragma once

#include "cuda/engines/contraction_config.h"
#include "cuda/jit/jit.h"

namespace tenon::cuda {

/// Counters for splitting in one module; a launch uses one a tile.
inline constexpr int kGemmTickets = 16384;

/// `epilogue` is the code of print_epilogue().
Source gemm_source(const ContractionForm& form, const GemmConfig& config,
                   const std::string& epilogue);
/// The kernel with one thread a result; also takes the number of results.
Source plain_source(const Contraction& c, const ContractionForm& form, const std::string& epilogue);

}  // namespace tenon::cuda
