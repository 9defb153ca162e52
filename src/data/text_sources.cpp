// Parses the options of text sources.
#include "data/text_sources.h"

#include <cstdint>
#include <vector>

#include <tenon/error.h>
#include <tenon/text.h>

#include "base/str.h"
#include "data/samples/source_parts.h"
#include "data/samples/split_spec.h"
#include "data/tables/row_options.h"
#include "data/text/text_readers.h"

namespace tenon::data {
namespace {

constexpr const char* kTextSplitOptions = "validation split test fold chronological";
constexpr const char* kTextIsWhole =
    "parts of a text are stretches of it, neither shuffled nor grouped";

// Parses the split options of a text source; read_own() takes the source's other options.
template <class ReadOwn>
SplitSpec read_options(const std::vector<std::string>& parts, const std::string& spec,
                       const std::string& own, const ReadOwn& read_own) {
  SplitSpec split;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string key = parts[i].substr(0, equals),
                      value = equals == std::string::npos ? "" : parts[i].substr(equals + 1);
    if ((value.empty() || !read_own(key, value)) && !read_split_option(parts[i], spec, split))
      refuse_part(spec, parts, i, cat(own, ", ", kSplitOptions));
  }
  check_split_spec(split, spec, parts[0]);
  return split;
}

PartReader read_token_text_spec(const std::string& rest, const std::string& spec,
                                const SourceOptions& source) {
  const std::vector<std::string> parts = source_parts(rest);
  TokenTextOptions options{.hide_words = source.hide_words};
  const SplitSpec divided =
      read_options(parts, spec, "length=N (what its tokens are, the tokenizer says)",
                   [&](const std::string& key, const std::string& value) {
                     if (key == "length") options.length = spec_number(value, spec);
                     return key == "length";
                   });
  allow_split_options(divided, kTextSplitOptions, spec, kTextIsWhole);
  options.split = divided.options, options.test_file = divided.test;
  return read_token_text(parts[0], source.tokenizer, options);
}

void require_tokenizer(const std::string& spec, const SourceOptions& source) {
  if (source.tokenizer == nullptr)
    throw ValueError(cat("data '", spec,
                         "' is text for a tokenizer: name one, as with --tokenizer "
                         "vocab.txt"));
}

PartReader read_lines_spec(const std::string& rest, const std::string& spec,
                           const SourceOptions& source) {
  require_tokenizer(spec, source);
  const std::vector<std::string> parts = source_parts(rest);
  ClassLineOptions options;
  const SplitSpec divided = read_options(
      parts, spec, cat("length=N, class=first|last, ", kRowOptions),
      [&](const std::string& key, const std::string& value) {
        if (set_row_option(options.rows, cat(key, "=", value))) return true;
        if (key == "length") options.length = spec_number(value, spec);
        if (key == "class") options.class_last = value == "last";
        return key == "length" || (key == "class" && (value == "first" || value == "last"));
      });
  options.split = divided.options, options.test_file = divided.test;
  return read_class_lines(parts[0], source.tokenizer, options);
}

PartReader read_spans_spec(const std::string& rest, const std::string& spec,
                           const SourceOptions& source) {
  require_tokenizer(spec, source);
  const std::vector<std::string> parts = source_parts(rest);
  SpanOptions options;
  const SplitSpec divided = read_options(parts, spec, "length=N, stride=N, question=N",
                                         [&](const std::string& key, const std::string& value) {
                                           std::int64_t* const number =
                                               key == "length"     ? &options.length
                                               : key == "stride"   ? &options.stride
                                               : key == "question" ? &options.question
                                                                   : nullptr;
                                           if (number != nullptr)
                                             *number = spec_number(value, spec);
                                           return number != nullptr;
                                         });
  allow_split_options(divided, "validation split test fold seed chronological", spec,
                      "questions about one text stay together, and have no classes");
  options.split = divided.options, options.test_file = divided.test;
  return read_spans(parts[0], source.tokenizer, options);
}

PartReader read_text_spec(const std::string& rest, const std::string& spec,
                          const SourceOptions& source) {
  const std::vector<std::string> parts = source_parts(rest);
  TextOptions options{.vocabulary = source.vocabulary};
  const SplitSpec divided = read_options(
      parts, spec, "by=UNIT, length=N, words=N",
      [&](const std::string& key, const std::string& value) {
        if (key == "by") {
          options.unit = text_unit(value);
          if (source.vocabulary != nullptr && options.unit != source.vocabulary->unit())
            throw ValueError(cat("data '", spec, "': the model reads text by ",
                                 name(source.vocabulary->unit()), ": leave out by=", value));
        }
        if (key == "length") options.length = spec_number(value, spec);
        if (key == "words") options.words = spec_number(value, spec);
        return key == "by" || key == "length" || key == "words";
      });
  allow_split_options(divided, kTextSplitOptions, spec, kTextIsWhole);
  options.split = divided.options, options.test_file = divided.test;
  return read_text(parts[0], options);
}

PartReader read_pairs_spec(const std::string& rest, const std::string& spec,
                           const SourceOptions& source) {
  const std::vector<std::string> parts = source_parts(rest);
  PairOptions options{.vocabulary = source.vocabulary};
  const SplitSpec divided = read_options(parts, spec, cat("pieces=N, length=N, ", kRowOptions),
                                         [&](const std::string& key, const std::string& value) {
                                           if (set_row_option(options.rows, cat(key, "=", value)))
                                             return true;
                                           if (key == "pieces")
                                             options.pieces = spec_number(value, spec);
                                           if (key == "length")
                                             options.length = spec_number(value, spec);
                                           return key == "pieces" || key == "length";
                                         });
  allow_split_options(divided, "validation split test fold seed group chronological", spec,
                      "translations have no classes");
  options.split = divided.options, options.test_file = divided.test;
  return read_pairs(parts[0], options);
}

}  // namespace

PartReader read_text_source(const std::string& kind, const std::string& rest,
                            const std::string& spec, const SourceOptions& source) {
  if (kind == "text" && source.tokenizer != nullptr)
    return read_token_text_spec(rest, spec, source);
  if (kind == "text") return read_text_spec(rest, spec, source);
  if (kind == "lines") return read_lines_spec(rest, spec, source);
  if (kind == "pairs") return read_pairs_spec(rest, spec, source);
  if (kind == "spans") return read_spans_spec(rest, spec, source);
  return nullptr;
}

}  // namespace tenon::data
