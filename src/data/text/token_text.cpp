// Text datasets with a tokenizer: windows for language modelling, windows with masked words, and
// lines with a class.
#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <span>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/philox.h"
#include "base/str.h"
#include "data/samples/joined_dataset.h"
#include "data/samples/split.h"
#include "data/tables/line_reader.h"
#include "data/text/text_parts.h"
#include "data/text/text_readers.h"
#include "data/tokens/narrow_tokens.h"
#include "io/text/encoding.h"

namespace tenon::data {
namespace {

using TokenRow = std::vector<std::int64_t>;

std::int64_t token_of(const Tokenizer& tokenizer, const char* token) {
  const std::int64_t number = tokenizer.number(token);
  if (number < 0)
    throw ValueError(
        cat("its tokenizer has no ", token, ": this takes one of BERT's kind (WordPiece)"));
  return number;
}

// Counts what one text lost in encoding, if `losses` is given.
void count_losses(TextLosses* losses, const Tokenizer& tokenizer, bool cut, std::int64_t unknown,
                  std::string_view where) {
  if (losses == nullptr) return;
  if (tokenizer.unknown() < 0) losses->leave_out_unknown();
  losses->add(cut, unknown, where);
}

// The tokens of a part of a text, the starts of its windows, and notes on unknown words.
struct WindowText {
  std::string file;
  Split part;
  NarrowTokens tokens;
  TokenRow begins;
  Notes notes;
};

class TokenWindows : public DatasetWith<Provenance> {
 public:
  TokenWindows(WindowText text, std::int64_t vocabulary, std::int64_t length, std::string about)
      : DatasetWith({.input_shape = {length},
                     .input_dtype = DType::Int64,
                     .target_shape = {length},
                     .classes = vocabulary,
                     .description = std::move(about),
                     .in_memory = true}),
        text_(std::move(text)),
        length_(length) {}

  std::int64_t size() const override { return std::ssize(text_.begins); }
  std::string sample_name(std::int64_t index) const override {
    return window_name(text_.file, text_.part, index);
  }
  Notes notes() const override { return text_.notes; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto *input = static_cast<std::int64_t*>(inputs), *target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      const std::int64_t begin = text_.begins[at(index)];
      input = text_.tokens.copy(begin, length_, input);
      target = text_.tokens.copy(begin + 1, length_, target);
    }
  }

 private:
  WindowText text_;
  std::int64_t length_;
};

// Windows between [CLS] and [SEP]. In each, 15 % of the tokens are predicted (Devlin et al., 2019):
// 80 % of them are replaced by [MASK], 10 % by any token, and 10 % are kept.
class HiddenWords : public DatasetWith<Provenance, AugmentedSamples> {
 public:
  HiddenWords(WindowText text, const Tokenizer& tokenizer, std::int64_t length, std::string about)
      : DatasetWith({.input_shape = {length},
                     .input_dtype = DType::Int64,
                     .target_shape = {length},
                     .classes = tokenizer.size(),
                     .counted_targets = static_cast<double>(hidden_of(length)),
                     .description = std::move(about)}),
        text_(std::move(text)),
        vocabulary_(tokenizer.size()),
        length_(length),
        begin_(token_of(tokenizer, "[CLS]")),
        end_(token_of(tokenizer, "[SEP]")),
        mask_(token_of(tokenizer, "[MASK]")),
        testing_(text_.part != Split::Train) {}

  std::int64_t size() const override { return std::ssize(text_.begins); }
  std::string sample_name(std::int64_t index) const override {
    return window_name(text_.file, text_.part, index);
  }
  Notes notes() const override { return text_.notes; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    fill(0, 0, indices, static_cast<std::int64_t*>(inputs), static_cast<std::int64_t*>(targets));
  }
  void get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch,
                     void* inputs, void* targets) const override {
    fill(seed, epoch, indices, static_cast<std::int64_t*>(inputs),
         static_cast<std::int64_t*>(targets));
  }

 private:
  static constexpr std::uint64_t kHiddenKey = 0x4d41'534b'0000'0000ull;
  static constexpr double kHiddenShare = 0.15;
  static std::int64_t hidden_of(std::int64_t length) {
    return std::max<std::int64_t>(1, std::llround(kHiddenShare * static_cast<double>(length - 2)));
  }
  std::int64_t words() const { return length_ - 2; }
  std::int64_t hidden() const { return hidden_of(length_); }
  void capabilities(Capabilities& offered) const override {
    offered.add<Provenance>(this);
    if (!testing_) offered.add<AugmentedSamples>(this);
  }

  void fill(std::uint64_t seed, std::int64_t epoch, std::span<const std::int64_t> indices,
            std::int64_t* input, std::int64_t* target) const {
    TokenRow places(at(words()));
    for (const std::int64_t index : indices) {
      input[0] = begin_, input[length_ - 1] = end_;
      text_.tokens.copy(text_.begins[at(index)], words(), input + 1);
      std::fill(target, target + length_, kIgnoredTarget);
      for (std::int64_t k = 0; k < words(); ++k) places[at(k)] = k + 1;
      for (std::int64_t k = 0; k < hidden(); ++k) {
        const Philox4 drawn =
            philox(seed ^ kHiddenKey, static_cast<std::uint64_t>(index),
                   (static_cast<std::uint64_t>(epoch) << 32) + static_cast<std::uint64_t>(k));
        const std::int64_t left = words() - k;
        std::swap(places[at(k)], places[at(k + drawn.v[0] % left)]);
        const std::int64_t place = places[at(k)];
        target[place] = input[place];
        const float share = uniform01(drawn.v[1]);
        if (share < 0.8F)
          input[place] = mask_;
        else if (share < 0.9F)
          input[place] = drawn.v[2] % vocabulary_;
      }
      input += length_, target += length_;
    }
  }

  WindowText text_;
  std::int64_t vocabulary_, length_, begin_, end_, mask_;
  bool testing_;
};

// Texts are views of the file's text: a copy of each line takes several times the file's size.
struct ClassLine {
  std::string_view text, second;
  std::int64_t line = 0;
  std::int32_t name = 0;  // index in ClassLineSet::names
  bool of_test_file = false;
};

// Lines with a class and one text or two, as in the first line.
struct ClassLineSet {
  std::shared_ptr<const LineReader> file;  // owns the text
  std::deque<ClassLine> lines;             // grows without a copy
  std::vector<std::string_view> groups;    // of each line; empty without groups
  std::vector<std::string> names;          // of the classes
  bool pairs = false;
  Notes notes;
};

// Lines of a ClassLineSet.
using LinesOfPart = std::vector<const ClassLine*>;

// The columns of the class and the texts of a line.
struct ClassLineColumns {
  std::size_t name = 0;
  std::vector<std::size_t> texts;
};

// Finds the columns by the names in a header, and notes columns that are neither text nor class.
ClassLineColumns named_columns(const LineReader& lines, bool class_last, Notes& notes) {
  const ColumnNames& header = lines.header();
  const std::size_t count = lines.columns();
  ClassLineColumns out;
  out.name = kNone;
  for (std::size_t c = 0; c < count; ++c)
    if (out.name == kNone && is_label_name(header[c])) out.name = c;
  if (out.name == kNone) out.name = class_last ? count - 1 : 0;
  std::vector<std::size_t> others;
  for (std::size_t c = 0; c < count; ++c) {
    if (c == out.name) continue;
    (is_text_name(header[c]) ? out.texts : others).push_back(c);
  }
  if (out.texts.empty()) out.texts.swap(others);
  if (out.texts.empty() || out.texts.size() > 2)
    throw FormatError(cat("has ", out.texts.size(),
                          " columns of text besides the class, must have 1 or 2: name them text, "
                          "or sentence1 and sentence2"));
  if (!others.empty())
    notes.push_back({cat(others.size(), others.size() == 1 ? " column is" : " columns are",
                         " not read: '", header[others[0]], "'", others.size() > 1 ? " …" : ""),
                     std::ssize(others), lines.file()});
  return out;
}

// The columns without a header: the class before its texts, or after them.
ClassLineColumns usual_columns(std::size_t count, bool class_last, std::int64_t line) {
  if (count < 2 || count > 3)
    throw make_error<FormatError>("line ", LineNumber{line}, " is not ",
                                  class_last ? "TEXT TAB CLASS, or TEXT TAB TEXT TAB CLASS"
                                             : "CLASS TAB TEXT, or CLASS TAB TEXT TAB TEXT");
  ClassLineColumns out;
  out.name = class_last ? count - 1 : 0;
  for (std::size_t c = 0; c < count; ++c)
    if (c != out.name) out.texts.push_back(c);
  return out;
}

// Classes are numbered in alphabetical order.
void sort_names(ClassLineSet& set) {
  std::vector<std::int32_t> order(set.names.size()), number(order.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return set.names[at(a)] < set.names[at(b)]; });
  std::vector<std::string> sorted(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    number[at(order[k])] = static_cast<std::int32_t>(k);
    sorted[k] = std::move(set.names[at(order[k])]);
  }
  set.names = std::move(sorted);
  for (ClassLine& line : set.lines) line.name = number[at(line.name)];
}

ClassLineSet parse_class_lines(const std::string& file, const ClassLineOptions& options) {
  const auto reader =
      std::make_shared<LineReader>(file, LineForm::ClassLines, options.rows, options.split.group);
  LineReader& lines = *reader;
  ClassLineSet out;
  out.file = reader;
  std::map<std::string, std::int32_t, std::less<>> numbers;
  ClassLineColumns columns;
  const bool named = !lines.header().empty();
  if (named) columns = named_columns(lines, options.class_last, out.notes);
  std::size_t wanted = columns.texts.size();
  std::vector<std::string_view> fields;
  while (lines.next(fields)) {
    if (!named) columns = usual_columns(fields.size(), options.class_last, lines.line());
    const std::size_t count = columns.texts.size();
    if (wanted == 0) wanted = count;
    if (count != wanted)
      throw make_error<FormatError>("line ", LineNumber{lines.line()}, " has ", count,
                                    count == 1 ? " text" : " texts", " where the first line has ",
                                    wanted);
    const std::string_view name = lines.label(fields[columns.name]);
    if (name.empty())
      throw make_error<FormatError>("line ", LineNumber{lines.line()}, " has no class");
    auto known = numbers.find(name);
    if (known == numbers.end()) {
      known = numbers.emplace(name, static_cast<std::int32_t>(out.names.size())).first;
      out.names.emplace_back(name);
    }
    out.lines.push_back({lines.kept(fields[columns.texts[0]]),
                         count == 2 ? lines.kept(fields[columns.texts[1]]) : std::string_view(),
                         lines.line(), known->second});
    if (!options.split.group.empty()) out.groups.push_back(lines.kept(lines.group()));
  }
  sort_names(out);
  out.pairs = wanted == 2;
  const Notes more = lines.notes();
  out.notes.insert(out.notes.end(), more.begin(), more.end());
  return out;
}

class ClassLines : public DatasetWith<Provenance> {
 public:
  ClassLines(std::vector<std::string> names, const LinesOfPart& lines, bool pairs,
             const Tokenizer& tokenizer, std::int64_t length, Split part_of, std::string file,
             std::string test_file)
      : DatasetWith(DatasetInfo()),
        file_(std::move(file)),
        test_file_(std::move(test_file)),
        pairs_(pairs),
        tokens_(tokenizer.size()) {
    classes_.reserve(lines.size());
    lines_.reserve(lines.size());
    rows_.reserve(lines.size());
    TextLosses losses;
    for (const ClassLine* each : lines) {
      const ClassLine& line = *each;
      const std::string where = cat(line.of_test_file ? test_file_ : file_, ", line ", line.line);
      const TypedTokens row =
          pairs_ ? encode_pair_within(tokenizer, line.text, line.second, length, &losses, where)
                 : TypedTokens{encode_within(tokenizer, line.text, length, &losses, where), {}};
      const std::int64_t count = std::ssize(row.tokens);
      rows_.push_back({tokens_.size(), static_cast<std::int32_t>(count),
                       static_cast<std::int32_t>(
                           std::count(row.types.begin(), row.types.end(), std::int64_t{1}))});
      tokens_.append(row.tokens);
      length_ = std::max(length_, count);
      classes_.push_back(line.name);
      lines_.push_back(line.of_test_file ? -line.line : line.line);
    }
    tokens_.shrink();
    add(losses.notes(length, part_text(pairs_ ? "pairs of texts" : "texts", part_of)));
    std::string about = cat(lines.size(), pairs_ ? " pairs of texts of " : " lines of ",
                            of_files(file_, test_file_, part_of), " in ", names.size(), " classes");
    const std::int64_t classes = std::ssize(names);
    set_info({.input_shape = pairs_ ? Shape{2, length_} : Shape{length_},
              .input_dtype = DType::Int64,
              .classes = classes,
              .class_names = std::move(names),
              .description = std::move(about),
              .in_memory = true});
  }

  std::int64_t size() const override { return std::ssize(classes_); }
  std::string sample_name(std::int64_t index) const override {
    const std::int64_t line = lines_[at(index)];
    return cat(line < 0 ? test_file_ : file_, ", line ", line < 0 ? -line : line);
  }
  Notes notes() const override { return notes_; }
  void add(const Notes& notes) { notes_.insert(notes_.end(), notes.begin(), notes.end()); }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto *input = static_cast<std::int64_t*>(inputs), *target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      const Row& row = rows_[at(index)];
      std::fill(tokens_.copy(row.begin, row.count, input), input + length_, kPad);
      input += length_;
      if (pairs_) {
        std::fill_n(input, length_, 0);
        std::fill_n(input + row.count - row.second, row.second, 1);
        input += length_;
      }
      *target++ = classes_[at(index)];
    }
  }

 private:
  // Tokens of a sample; the last ones are those of its second text.
  struct Row {
    std::int64_t begin;
    std::int32_t count, second;
  };
  std::string file_, test_file_;
  bool pairs_;
  std::int64_t length_ = 1;
  NarrowTokens tokens_;
  std::vector<Row> rows_;
  std::vector<std::int32_t> classes_;
  TokenRow lines_;  // line of each sample; negative: a line of the test file
  Notes notes_;
};

// Chooses the lines of a part.
Chosen chosen_lines(const LinesOfPart& all, const std::vector<std::string>& names,
                    const std::vector<std::string_view>& groups, Split split,
                    const ClassLineOptions& options, const std::string& file) {
  Samples samples{.name = file, .count = std::ssize(all)};
  samples.class_names = names;
  samples.marks.classes.reserve(all.size());
  for (const ClassLine* line : all) {
    samples.marks.classes.push_back(line->name);
    if (line->of_test_file) samples.fixed_parts.resize(all.size());
  }
  for (std::size_t k = 0; k < samples.fixed_parts.size(); ++k)
    if (all[k]->of_test_file) samples.fixed_parts[k] = Split::Test;
  samples.marks.groups = numbers_of_words(groups);
  const bool own_test = !options.test_file.empty();
  return choose_samples(own_test ? without_test(options.split, file) : options.split, split,
                        samples);
}

}  // namespace

void TextLosses::add(bool cut, std::int64_t unknown, std::string_view where) {
  ++texts_;
  if (cut && ++cut_ == 1) first_cut_ = where;
  if (unknown == 0) return;
  unknown_ += unknown;
  if (++with_unknown_ == 1) first_unknown_ = where;
}

Notes TextLosses::notes(std::int64_t length, std::string_view texts) const {
  Notes out;
  if (cut_ > 0)
    out.push_back({cat(cut_, " of ", texts_, " ", texts, cut_ == 1 ? " is" : " are", " cut to ",
                       length, " tokens"),
                   cut_, first_cut_});
  add_unknown_note(out, unknown_, {"word or character", "words or characters"},
                   cat(with_unknown_, " of ", texts_, " ", texts), left_out_, first_unknown_);
  return out;
}

TokenRow encode_within(const Tokenizer& tokenizer, std::string_view text, std::int64_t length,
                       TextLosses* losses, std::string_view where) {
  std::int64_t unknown = 0;
  TokenRow tokens = tokenizer.encode(text, true, &unknown);
  count_losses(losses, tokenizer, std::ssize(tokens) > length, unknown, where);
  if (std::ssize(tokens) <= length) return tokens;
  // The token that ends a text, [SEP], is kept.
  const TokenRow around = tokenizer.encode("");
  const std::int64_t last = tokens.back();
  tokens.resize(at(length));
  if (!around.empty() && around.back() == last && length > 0) tokens.back() = last;
  return tokens;
}

TypedTokens encode_pair_within(const Tokenizer& tokenizer, std::string_view first,
                               std::string_view second, std::int64_t length, TextLosses* losses,
                               std::string_view where) {
  std::int64_t unknown = 0;
  TokenRow a = tokenizer.encode(first, false, &unknown),
           b = tokenizer.encode(second, false, &unknown);
  const std::int64_t begin = token_of(tokenizer, "[CLS]"), end = token_of(tokenizer, "[SEP]");
  const std::int64_t most = std::max<std::int64_t>(0, length - 3);
  count_losses(losses, tokenizer, std::ssize(a) + std::ssize(b) > most, unknown, where);
  if (std::ssize(a) + std::ssize(b) > most) {
    // The longer text is cut; both are cut if neither fits half the length.
    const bool swapped = a.size() > b.size();
    std::int64_t shorter = std::min(std::ssize(a), std::ssize(b));
    std::int64_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
    if (shorter + longer > most) shorter = most / 2, longer = most / 2 + most % 2;
    (swapped ? b : a).resize(at(shorter));
    (swapped ? a : b).resize(at(longer));
  }
  TypedTokens out{{begin}, {}};
  out.tokens.insert(out.tokens.end(), a.begin(), a.end());
  out.tokens.push_back(end);
  out.types.assign(out.tokens.size(), 0);
  out.tokens.insert(out.tokens.end(), b.begin(), b.end());
  out.tokens.push_back(end);
  out.types.resize(out.tokens.size(), 1);
  return out;
}

namespace {

// A text, and the ranges of its parts.
struct OwnText {
  std::string text;
  TextParts parts;
};

// The whole text is checked here, because the tokenizer reads one range at a time and would count
// bytes from its start.
std::string whole_text_of(const std::string& file) {
  std::string text = io::as_text(io::read_file(file), file);
  if (const std::size_t bad = io::not_utf8(text); bad != std::string::npos)
    throw make_error<FormatError>(FileName{file}, ": the text is not UTF-8 at byte ", bad,
                                  ": convert it");
  return text;
}

// The windows of a part; `stretches` are its ranges of the file's text.
WindowText token_windows(const std::string& path, Split part, std::string_view text,
                         const Stretches& stretches, const Tokenizer& tokenizer,
                         const TokenTextOptions& options) {
  const std::int64_t words = options.hide_words ? options.length - 2 : options.length,
                     after = options.hide_words ? 0 : 1;
  WindowText out{path, part, NarrowTokens(tokenizer.size()), {}, {}};
  TokenRow counts;
  std::int64_t unknown = 0;
  for (const auto& [from, to] : stretches) {
    const std::int64_t before = out.tokens.size();
    tokenizer.encode_parts(
        text.substr(from, to - from),
        [&](std::span<const std::int64_t> numbers) { out.tokens.append(numbers); }, false,
        &unknown);
    counts.push_back(out.tokens.size() - before);
  }
  out.tokens.shrink();
  // The last window's targets need one token more than its inputs.
  out.begins = window_begins(counts, words, after);
  add_unknown_note(out.notes, unknown, {"word or character", "words or characters"},
                   part_text("the text", part), tokenizer.unknown() < 0, path);
  return out;
}

// The file that the other parts are of.
OwnText read_text_for_tokens(const std::string& file, const Tokenizer& tokenizer,
                             const TokenTextOptions& options) {
  OwnText out{whole_text_of(file), {}};
  out.parts = text_parts(out.text, options.split, !options.test_file.empty(), true, file);
  if (!out.parts.validation.empty() && !options.split.validation &&
      token_windows(file, Split::Validation, out.text, out.parts.validation, tokenizer, options)
          .begins.empty())
    out.parts = without_validation(out.parts);
  return out;
}

std::shared_ptr<Dataset> windows_dataset(WindowText text, const Tokenizer& tokenizer,
                                         const TokenTextOptions& options) {
  if (text.begins.empty())
    throw ValueError(cat(part_text("the text", text.part), " has ", text.tokens.size(),
                         " tokens, too few for a window of ", options.length,
                         ": give a shorter length"));
  std::string about = cat(text.tokens.size(), " tokens of ", text.file, " in windows of ",
                          options.length, options.hide_words ? ", with hidden words" : "");
  if (options.hide_words)
    return std::make_shared<HiddenWords>(std::move(text), tokenizer, options.length,
                                         std::move(about));
  return std::make_shared<TokenWindows>(std::move(text), tokenizer.size(), options.length,
                                        std::move(about));
}

}  // namespace

PartReader read_token_text(const std::string& file, std::shared_ptr<const Tokenizer> tokenizer,
                           const TokenTextOptions& options) {
  const std::int64_t least = options.hide_words ? 3 : 1;
  if (options.length < least)
    throw make_error<ValueError>(FileName{file}, ": windows of ", options.length, " tokens: give ",
                                 least, " or more");
  const auto own = once([=] {
    return naming_file(file, [&] { return read_text_for_tokens(file, *tokenizer, options); });
  });
  return [=](Split part) -> std::shared_ptr<Dataset> {
    const auto windows = [&](const std::string& path, Split of, std::string_view text,
                             const Stretches& stretches) {
      return naming_file(path, [&] {
        return windows_dataset(token_windows(path, of, text, stretches, *tokenizer, options),
                               *tokenizer, options);
      });
    };
    const auto of_test_file = [&] {
      const std::string text = whole_text_of(options.test_file);
      (void)text_parts(text, options.split, true, true, file);  // checks the options
      return windows(options.test_file, Split::Test, text, {{0, text.size()}});
    };
    const bool own_test = !options.test_file.empty();
    if (own_test && part == Split::Test) return of_test_file();
    const OwnText& read = own();
    if (part == Split::All) {
      auto all = windows(file, part, read.text, {{0, read.text.size()}});
      return own_test ? joined_dataset({std::move(all), of_test_file()}) : all;
    }
    if (read.parts.of(part).empty()) return nullptr;
    return windows(file, part, read.text, read.parts.of(part));
  };
}

std::shared_ptr<Dataset> open_token_text(const std::string& file, Split split,
                                         const Tokenizer& tokenizer,
                                         const TokenTextOptions& options) {
  return read_token_text(file, non_owning(tokenizer), options)(split);
}

namespace {

ClassLineSet lines_of_file(const std::string& file, const ClassLineOptions& options) {
  return naming_file(file, [&] {
    ClassLineSet out = parse_class_lines(file, options);
    if (out.lines.empty()) throw FormatError("contains no lines");
    return out;
  });
}

ClassLineSet own_lines(const std::string& file, const ClassLineOptions& options) {
  ClassLineSet out = lines_of_file(file, options);
  if (out.pairs && options.length < 4)
    throw make_error<ValueError>(FileName{file}, ": two texts of ", options.length,
                                 " tokens: give 4 or more");
  return out;
}

// With the class numbers of the training file.
ClassLineSet test_lines(const ClassLineSet& own, const std::string& file,
                        const ClassLineOptions& options) {
  ClassLineSet out = lines_of_file(options.test_file, options);
  if (out.pairs != own.pairs)
    throw ValueError(cat(options.test_file, ": has lines of ",
                         out.pairs ? "two texts, " : "one text, ", file, " of ",
                         own.pairs ? "two" : "one"));
  std::vector<std::int32_t> numbers;
  for (const std::string& name : out.names) {
    const auto known = std::lower_bound(own.names.begin(), own.names.end(), name);
    const bool is_known = known != own.names.end() && *known == name;
    numbers.push_back(is_known ? static_cast<std::int32_t>(known - own.names.begin()) : -1);
  }
  std::int64_t unknown = 0;
  const ClassLine* first = nullptr;
  for (const ClassLine& line : out.lines)
    if (numbers[at(line.name)] < 0 && unknown++ == 0) first = &line;
  if (first != nullptr)
    throw ValueError(cat(options.test_file, ": line ", first->line, ": the class '",
                         out.names[at(first->name)], "' is not among those of training, in ",
                         unknown, " of ", out.lines.size(),
                         " lines: correct these classes, or leave the lines out"));
  for (ClassLine& line : out.lines) line.name = numbers[at(line.name)], line.of_test_file = true;
  return out;
}

// `test`: lines of the test file if the part contains some, otherwise null.
std::shared_ptr<Dataset> part_of_lines(const ClassLineSet& own, const ClassLineSet* test,
                                       const Tokenizer& tokenizer, const std::string& file,
                                       Split split, const ClassLineOptions& options) {
  LinesOfPart all, part;
  std::vector<std::string_view> groups = own.groups;
  for (const ClassLine& line : own.lines) all.push_back(&line);
  if (test != nullptr) {
    for (const ClassLine& line : test->lines) all.push_back(&line);
    groups.insert(groups.end(), test->groups.begin(), test->groups.end());
  }
  const Chosen chosen = chosen_lines(all, own.names, groups, split, options, file);
  if (chosen.samples.empty()) return nullptr;
  part.reserve(chosen.samples.size());
  for (const std::int64_t i : chosen.samples) part.push_back(all[at(i)]);
  all = {};
  auto set = std::make_shared<ClassLines>(own.names, part, own.pairs, tokenizer, options.length,
                                          split, file, options.test_file);
  set->add(own.notes);
  if (test != nullptr) set->add(test->notes);
  set->add(chosen.notes);
  return set;
}

}  // namespace

PartReader read_class_lines(const std::string& file, std::shared_ptr<const Tokenizer> tokenizer,
                            const ClassLineOptions& options) {
  if (options.length < 1)
    throw make_error<ValueError>(FileName{file}, ": lines of ", options.length,
                                 " tokens: give 1 or more");
  if (tokenizer->number("[PAD]") > 0)
    throw make_error<ValueError>(FileName{file}, ": its tokenizer's [PAD] is ",
                                 tokenizer->number("[PAD]"), ", must be 0: BERT's");
  const auto own = once([=] { return own_lines(file, options); });
  const auto test = once([=] { return test_lines(own(), file, options); });
  return [=](Split part) {
    const bool tests = !options.test_file.empty() && (part == Split::Test || part == Split::All);
    const ClassLineSet& lines = own();
    const ClassLineSet* of_test_file = tests ? &test() : nullptr;
    return naming_file(
        file, [&] { return part_of_lines(lines, of_test_file, *tokenizer, file, part, options); });
  };
}

std::shared_ptr<Dataset> open_class_lines(const std::string& file, Split split,
                                          const Tokenizer& tokenizer,
                                          const ClassLineOptions& options) {
  return read_class_lines(file, non_owning(tokenizer), options)(split);
}

}  // namespace tenon::data
