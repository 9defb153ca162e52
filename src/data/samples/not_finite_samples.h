// Samples whose values are NaN or infinite: training on them makes every weight NaN.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/data.h>

namespace tenon::data {

struct NotFiniteSamples {
  std::int64_t inputs = 0;     ///< samples with such an input
  std::int64_t targets = 0;    ///< samples with such a target
  std::string first_input{};   ///< name of the first of the former
  std::string first_target{};  ///< and of the latter

  bool any() const { return inputs > 0 || targets > 0; }
  /// "the inputs of 3 samples (the first: x.npy, row 7) are NaN or infinite"
  std::string text() const;
};

/// Reads all samples.
NotFiniteSamples not_finite_samples(const Dataset& set);
/// Throws FormatError about a part of a data source.
[[noreturn]] void refuse_not_finite(const NotFiniteSamples& found, Split part,
                                    const std::string& data);

}  // namespace tenon::data
