// The training, validation and test parts of generated samples, which differ in their seeds.
// Samples that exist are divided by split.h.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/data.h>

namespace tenon::data {

/// Seeds of generated samples: training, validation and test use different seeds.
std::uint64_t drawn_seed(std::uint64_t seed, Split part);
/// The inverse, for people: "seed 9", "seed 9, test part".
std::string drawn_seed_text(std::uint64_t drawn);
/// Number of samples generated for validation, given the number for training; 0: none.
std::int64_t drawn_validation(const SplitOptions& options, std::int64_t train,
                              const std::string& name);

}  // namespace tenon::data
