// Host computations: random operands, the float64 reference, and the one-core baseline.
#pragma once

#include <cstdint>
#include <vector>

namespace lab {

/// Fills with uniform numbers in [-1, 1); the same seed gives the same numbers.
void fill_random(std::vector<float>& values, std::uint64_t seed);
std::vector<std::uint16_t> to_bf16(const std::vector<float>& values);
std::vector<float> from_bf16(const std::vector<std::uint16_t>& values);

/// rows.size() x n: the given rows of A[·, k] · B[k, n], in float64, on all cores.
std::vector<double> reference_rows(const std::vector<int>& rows, const float* a, const float* b,
                                   int n, int k);

/// C[m, n] = A[m, k] · B[k, n] in float32 on one core: cache-sized blocks, vector multiply-adds,
/// twelve rows by two vectors in registers.
void multiply_on_one_core(const float* a, const float* b, float* c, int m, int n, int k);

}  // namespace lab
