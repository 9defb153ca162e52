// Ranges of a text that make up a part. Nothing is shuffled, and no byte is in two parts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// Range of bytes.
using Stretches = std::vector<std::pair<std::size_t, std::size_t>>;

struct TextParts {
  Stretches train{}, validation{}, test{};
  const Stretches& of(Split part) const {
    return part == Split::Test ? test : part == Split::Validation ? validation : train;
  }
};

/// Splits a text in the order training, validation, test. For folds, the test part is one of
/// `folds` stretches, with training on both sides, or only before it if options.chronological.
/// Splits are between characters, and after white space if `between_words`. `own_test`: the test
/// part is another file. Throws ValueError that begins with `name`.
TextParts text_parts(std::string_view text, const SplitOptions& options, bool own_test,
                     bool between_words, const std::string& name);

/// The same with validation added to training.
TextParts without_validation(const TextParts& parts);

/// Start positions of consecutive windows of `length` tokens in each stretch, counted over all
/// stretches; a window needs `after` more tokens after it.
std::vector<std::int64_t> window_begins(const std::vector<std::int64_t>& stretch_tokens,
                                        std::int64_t length, std::int64_t after);

/// "book.txt, window 3 of the test part".
std::string window_name(const std::string& file, Split part, std::int64_t index);
/// "texts of the test part".
std::string part_text(const char* what, Split part);

/// Adds "3 words in the text are not in the vocabulary and were read as the unknown token" (or
/// "were left out"), unless there are none. `what` is one and many of them.
void add_unknown_note(Notes& notes, std::int64_t count,
                      const std::pair<const char*, const char*>& what, const std::string& in,
                      bool left_out, const std::string& where);

}  // namespace tenon::data
