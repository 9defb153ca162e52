// Text datasets with a tokenizer: lines of a class and one text or two.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <span>

#include <tenon/error.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/split.h"
#include "data/tables/line_reader.h"
#include "data/text/text_parts.h"
#include "data/text/text_readers.h"
#include "data/tokens/narrow_tokens.h"

namespace tenon::data {
namespace {

using TokenRow = std::vector<std::int64_t>;

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
    throw make_error<ValueError>(FileName{options.test_file}, ": has lines of ",
                                 out.pairs ? "two texts, " : "one text, ", file, " of ",
                                 own.pairs ? "two" : "one");
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
    throw make_error<ValueError>(
        FileName{options.test_file}, ": line ", LineNumber{first->line}, ": the class '",
        out.names[at(first->name)], "' is not among those of training, in ", unknown, " of ",
        out.lines.size(), " lines: correct these classes, or leave the lines out");
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
