// Text sources that are read once, whichever parts are opened; open_text(), open_token_text(),
// open_pairs(), open_class_lines() and open_spans() open one part.
#pragma once

#include <memory>
#include <string>

#include <tenon/error.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "base/make_error.h"
#include "data/samples/part_reader.h"
#include "data/samples/split.h"

namespace tenon::data {

PartReader read_text(const std::string& file, const TextOptions& options);
PartReader read_token_text(const std::string& file, std::shared_ptr<const Tokenizer> tokenizer,
                           const TokenTextOptions& options);
PartReader read_pairs(const std::string& file, const PairOptions& options);
/// Like number_pairs(), for all parts.
PartReader draw_number_pairs(const NumberPairOptions& options);
PartReader read_class_lines(const std::string& file, std::shared_ptr<const Tokenizer> tokenizer,
                            const ClassLineOptions& options);
PartReader read_spans(const std::string& file, std::shared_ptr<const Tokenizer> tokenizer,
                      const SpanOptions& options);

/// Calls f() and adds the file's name to the messages of its errors.
template <class F>
auto naming_file(const std::string& file, const F& f) {
  try {
    return f();
  } catch (const FormatError& error) {
    throw in_file(file, error);
  } catch (const ValueError& error) {
    throw in_file(file, error);
  }
}

/// A pointer to a tokenizer that the caller keeps alive.
inline std::shared_ptr<const Tokenizer> non_owning(const Tokenizer& tokenizer) {
  return {std::shared_ptr<const void>(), &tokenizer};
}

}  // namespace tenon::data
