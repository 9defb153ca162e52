// Reads lines of text for prediction, in the way the run read its lines, with or without classes.
// Counts unknown tokens and texts that are cut.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/source_parts.h"
#include "data/tables/line_reader.h"
#include "data/tables/row_options.h"
#include "data/tables/table_header.h"
#include "io/text/encoding.h"
#include "train/evaluating/opened.h"
#include "train/runs/run_data.h"
#include "train/runs/sample_record.h"

namespace tenon::train {
namespace {

constexpr char kLines[] = "lines:";
constexpr std::size_t kNowhere = std::string::npos;

struct LineSource {
  std::string file;
  data::RowFormat rows{};
  bool class_last = false;
};

LineSource parse_lines(const DataSource& source) {
  LineSource out{.file = source.has_path() ? source.paths[0] : "", .rows = {}};
  std::vector<std::string> parts;
  for (const DataSource::Part& part : source.parts) parts.push_back(part.text);
  for (std::size_t k = 1; k < parts.size(); ++k) {
    if (data::set_row_option(out.rows, parts[k])) continue;
    if (parts[k] == "class=first" || parts[k] == "class=last")
      out.class_last = parts[k] == "class=last";
    else if (!parts[k].starts_with("length="))  // the model's own length is used
      data::refuse_part(source.text, parts, k, cat("class=first|last, ", data::kRowOptions));
  }
  return out;
}

// A line and its fields.
struct LineFields {
  std::int64_t line = 0;
  std::vector<std::string> fields;
};

// The columns of the class and of the texts according to the header.
struct Columns {
  std::size_t label = kNowhere;
  std::vector<std::size_t> texts;
};

Columns named_columns(const data::LineReader& lines) {
  const data::ColumnNames& header = lines.header();
  Columns out;
  std::vector<std::size_t> others;
  for (std::size_t c = 0; c < lines.columns(); ++c) {
    if (out.label == kNowhere && data::is_label_name(header[c]))
      out.label = c;
    else
      (data::is_text_name(header[c]) ? out.texts : others).push_back(c);
  }
  if (out.texts.empty()) out.texts = others;
  if (out.texts.empty() || out.texts.size() > 2)
    throw make_error<FormatError>(
        FileName{lines.file()}, ": has ", out.texts.size(),
        " columns of text where 1 or 2 are needed: call them text, or sentence1 "
        "and sentence2");
  return out;
}

std::string texts_of(const std::vector<std::string>& fields, std::size_t label) {
  std::string out;
  bool first = true;
  for (std::size_t c = 0; c < fields.size(); ++c) {
    if (c == label) continue;
    if (!first) out += '\t';
    out += fields[c];
    first = false;
  }
  return out;
}

// Each line is one text. For models that read plain text.
TextLines whole_lines(const LineSource& source) {
  const std::string bytes = io::read_text(source.file, source.rows.encoding);
  TextLines out;
  Note empty{};
  std::int64_t line = 0;
  for (std::size_t from = 0; from < bytes.size();) {
    const std::size_t end = std::min(bytes.find_first_of("\r\n", from), bytes.size());
    ++line;
    const std::string place = cat(source.file, ", line ", line);
    if (end > from)
      out.lines.push_back({place, bytes.substr(from, end - from), -1});
    else if (empty.count++ == 0)
      empty.first = place;
    from = end + (bytes.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  if (empty.count > 0) {
    empty.text = cat(empty.count, empty.count == 1 ? " empty line is" : " empty lines are",
                     " without a prediction");
    out.notes.push_back(empty);
  }
  return out;
}

// The lines of a classifier, each with or without a class.
class ClassedLines {
 public:
  ClassedLines(const LineSource& source, const std::vector<std::string>& names)
      : source_(source), names_(names) {}

  TextLines read() {
    data::LineReader lines(source_.file, data::LineForm::ClassLines, source_.rows);
    if (!lines.header().empty()) columns_ = named_columns(lines);
    named_ = !lines.header().empty();
    std::vector<std::string_view> fields;
    while (lines.next(fields)) {
      LineFields row{lines.line(), {}};
      for (const std::string_view field : fields) row.fields.emplace_back(field);
      rows_.push_back(std::move(row));
    }
    const bool labelled = named_ ? columns_.label != kNowhere : holds_classes();
    TextLines out;
    for (LineFields& row : rows_) out.lines.push_back(one(row, labelled));
    out.notes = lines.notes();
    if (labelled && !named_)
      out.notes.push_back({cat("the ", source_.class_last ? "last" : "first",
                               " field of each line is taken as its class"),
                           1, source_.file});
    const auto add = [&](Note note, const std::string& what) {
      if (note.count == 0) return;
      note.text = cat(note.count, note.count == 1 ? " line has " : " lines have ", what);
      out.notes.push_back(std::move(note));
    };
    add(unknown_,
        cat("a class that the model does not know, such as '", unknown_class_, "': no label"));
    add(bare_, "no class");
    return out;
  }

 private:
  std::size_t label_of(const LineFields& row) const {
    if (named_) return columns_.label;
    if (row.fields.size() < 2) return kNowhere;
    return source_.class_last ? row.fields.size() - 1 : 0;
  }
  std::int64_t class_of(const LineFields& row) const {
    const std::size_t label = label_of(row);
    if (label == kNowhere) return -1;
    const auto found = std::find(names_.begin(), names_.end(), data::trimmed(row.fields[label]));
    return found == names_.end() ? -1 : found - names_.begin();
  }
  bool holds_classes() {
    std::int64_t known = 0;
    for (const LineFields& row : rows_) {
      if (class_of(row) < 0) continue;
      ++known;
      usual_ = std::max(usual_, row.fields.size());
    }
    return known > 0 && 2 * known >= std::ssize(rows_);
  }
  TextLine one(const LineFields& row, bool labelled) {
    TextLine out{cat(source_.file, ", line ", row.line), {}, -1};
    std::size_t label = labelled ? label_of(row) : kNowhere;
    out.label = labelled ? class_of(row) : -1;
    // A line with fewer fields than the lines that have a class is text only.
    if (!named_ && out.label < 0 && row.fields.size() < usual_) label = kNowhere;
    if (labelled && label == kNowhere) {
      if (bare_.count++ == 0) bare_.first = out.name;
    } else if (labelled && out.label < 0) {
      if (unknown_.count++ == 0) {
        unknown_.first = out.name;
        unknown_class_ = row.fields[label].substr(0, 60);
      }
    }
    if (!named_) {
      out.text = texts_of(row.fields, label);
    } else {
      for (const std::size_t c : columns_.texts)
        out.text += cat(c == columns_.texts[0] ? "" : "\t", row.fields[c]);
    }
    return out;
  }

  const LineSource& source_;
  const std::vector<std::string>& names_;
  std::vector<LineFields> rows_{};
  Columns columns_{};
  bool named_ = false;
  std::size_t usual_ = 0;  // number of fields in lines that have a class
  Note unknown_{}, bare_{};
  std::string unknown_class_{};
};

}  // namespace

TextLines TrainedModel::read_texts(const std::string& source) const {
  const models::Info& info = this->info();
  const LineSource lines = parse_lines(read_as_run(
      DataSource(source.starts_with(kLines) ? source : kLines + source), opened_->model.data));
  const bool classes = info.takes_tokens() && task_->output_form() == OutputForm::Classes;
  if (classes) return ClassedLines(lines, class_names_).read();
  return whole_lines(lines);
}

Notes TrainedModel::notes_on_texts(const std::vector<TextLine>& texts, bool allow_seen) const {
  const models::Info& info = this->info();
  if (tokenizer_ == nullptr || info.input.rank() == 0) return {};
  const std::int64_t length = text_length(opened_->model);
  data::TextLosses losses;
  std::vector<data::TypedTokens> rows;
  const bool hidden = task_->output_form() == OutputForm::HiddenToken;
  const bool behind = net_.as<models::Decoder>() != nullptr;  // predict the token after the text
  for (const TextLine& one : texts) {
    const std::string& place = one.name.empty() ? one.text : one.name;
    const std::size_t tab = hidden || behind ? std::string::npos : one.text.find('\t');
    if (behind) {
      std::int64_t unknown = 0;
      const std::int64_t tokens = std::ssize(tokenizer_->encode(one.text, false, &unknown));
      if (tokenizer_->unknown() < 0) losses.leave_out_unknown();
      losses.add(tokens > length, unknown, place);
    } else if (tab == std::string::npos) {
      rows.push_back({data::encode_within(*tokenizer_, one.text, length, &losses, place), {}});
    } else {
      const std::string_view first = std::string_view(one.text).substr(0, tab),
                             second = std::string_view(one.text).substr(tab + 1);
      rows.push_back(data::encode_pair_within(*tokenizer_, first, second, length, &losses, place));
    }
  }
  Notes out = losses.notes(length);
  if (record_ == nullptr || rows.empty() || hidden) return out;
  // The layout of samples from "lines:FILE": tokens of one text, or tokens and types of a pair.
  const bool pairs = !rows[0].types.empty();
  std::vector<std::int64_t> inputs;
  for (const data::TypedTokens& row : rows) {
    if (row.types.empty() == pairs) return out;
    for (const auto* part : {&row.tokens, &row.types}) {
      if (part == &row.types && !pairs) continue;
      inputs.insert(inputs.end(), part->begin(), part->end());
      inputs.resize(inputs.size() + at(length) - part->size());
    }
  }
  const std::int64_t count = std::ssize(rows);
  const auto set = data::from_tensors(
      Tensor::from(inputs, pairs ? Shape{count, 2, length} : Shape{count, length}),
      zeros({count}, DType::Int64).compute());
  if (const auto seen = record_->seen(*set, 0, count); seen && seen->seen > 0)
    out.push_back(note_on_seen(*seen, "", allow_seen));
  return out;
}

}  // namespace tenon::train
