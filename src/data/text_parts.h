// Ranges of a text that make up a part. Nothing is shuffled, and no byte is in two parts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// Bytes from and to.
using Stretches = std::vector<std::pair<std::size_t, std::size_t>>;

struct TextParts {
  Stretches train{}, validation{}, test{};
  const Stretches& of(Split part) const {
    return part == Split::Test ? test : part == Split::Validation ? validation : train;
  }
};

/// Training comes first, then validation, then test; of a fold the test part is one of `folds`
/// stretches, with training on both sides, or before it alone where options.chronological. Parts
/// are cut between characters, and where `between_words` behind white space. `own_test`: the test
/// part is another file. Throws ValueError that begins with `name`.
TextParts text_parts(std::string_view text, const SplitOptions& options, bool own_test,
                     bool between_words, const std::string& name);

/// The same with validation given to training.
TextParts without_validation(const TextParts& parts);

/// Windows of `length` tokens one behind another in each stretch; `after` tokens more are needed
/// behind a window. Of each where it begins in the stretches' tokens laid end to end.
std::vector<std::int64_t> window_begins(const std::vector<std::int64_t>& stretch_tokens,
                                        std::int64_t length, std::int64_t after);

/// "book.txt, window 3 of the test part".
std::string window_name(const std::string& file, Split part, std::int64_t index);

}  // namespace tenon::data
