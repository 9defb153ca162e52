// Text sources that are read once, whichever parts are opened; open_text(), open_token_text(),
// open_pairs(), open_class_lines() and open_spans() open one part.
#pragma once

#include <memory>
#include <string>

#include <tenon/error.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "data/samples/part_reader.h"
#include "data/samples/split.h"

namespace tenon::data {

PartReader read_text(const std::string& file, const TextOptions& options);
PartReader read_token_text(const std::string& file, std::shared_ptr<const Tokenizer> tokenizer,
                           const TokenTextOptions& options);
PartReader read_pairs(const std::string& file, const PairOptions& options);
/// As number_pairs().
PartReader draw_number_pairs(const NumberPairOptions& options);
PartReader read_class_lines(const std::string& file, std::shared_ptr<const Tokenizer> tokenizer,
                            const ClassLineOptions& options);
PartReader read_spans(const std::string& file, std::shared_ptr<const Tokenizer> tokenizer,
                      const SpanOptions& options);

/// What `f` returns; its errors begin with the file.
template <class F>
auto naming_file(const std::string& file, const F& f) {
  try {
    return f();
  } catch (const FormatError& error) {
    throw FormatError(message_of(file, error.what()));
  } catch (const ValueError& error) {
    throw ValueError(message_of(file, error.what()));
  }
}

/// A tokenizer that somebody else keeps.
inline std::shared_ptr<const Tokenizer> kept_elsewhere(const Tokenizer& tokenizer) {
  return {std::shared_ptr<const void>(), &tokenizer};
}

}  // namespace tenon::data
