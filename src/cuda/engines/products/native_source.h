// The source of a contraction's kernel: headers, epilogue, configuration as constants.
#pragma once

#include "cuda/engines/products/native_config.h"
#include "cuda/jit/jit.h"

namespace tenon::cuda {

/// Names of the structs of print_prologue().
inline constexpr char kPrologueA[] = "PrologueA", kPrologueB[] = "PrologueB";

/// `parts` is the code of print_epilogue() and of print_prologue() for operands that have one. Both
/// kernels take the problem, operands A and B, the epilogue, and the prologues if there are any.
Source gemm_source(const ContractionForm& form, const GemmConfig& config, const std::string& parts);
/// The kernel with one thread per result; it also takes the number of results, before the
/// prologues.
Source plain_source(const Contraction& c, const ContractionForm& form, const std::string& parts);

}  // namespace tenon::cuda
