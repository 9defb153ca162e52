// Rows of a few fields, read with the table reader.
#include "data/tables/line_reader.h"

#include <algorithm>
#include <functional>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/text/encoding.h"

namespace tenon::data {
namespace {

constexpr std::size_t kLookedAtRows = 64, kLookedAtBytes = 1000;  // of a field

bool is_quoted(std::string_view field) {
  return field.size() > 1 && field.front() == '"' && field.back() == '"';
}

// Whether a path has a file extension, as in "a.jpg".
bool has_ending(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot != std::string_view::npos && dot > 0 && dot + 6 > path.size() && dot + 1 < path.size();
}

// The first non-empty lines, at most kLookedAtRows.
std::vector<std::string_view> first_lines(std::string_view text, bool comments) {
  std::vector<std::string_view> out;
  while (!text.empty() && out.size() < kLookedAtRows) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (trimmed(line).empty() || (comments && line.front() == '#')) continue;
    out.push_back(line);
  }
  return out;
}

}  // namespace

LineReader::LineReader(const std::string& file, LineForm form, const RowFormat& rows,
                       const std::string& group)
    : file_(file),
      text_(io::read_text(file, rows.encoding)),
      form_(form),
      format_(csv_format(rows, file)) {
  choose_format(rows);
  sample();
  find_group(group);
  find_header(rows);
  reader_ = std::make_unique<io::CsvReader>(text_, file_, format_);
  std::vector<std::string_view> fields;
  if (!names_.empty()) (void)reader_->next(fields);
}

void LineReader::choose_format(const RowFormat& rows) {
  const bool list = form_ == LineForm::List;
  comments_noted_ = rows.comment.size() == 1;
  // A text may begin with '#'; a path rarely does.
  if (rows.comment.empty() && !list) format_.comments = false;
  if (format_.separator == 0) {
    // A character that all of the first lines contain. For a list also a space, if the lines
    // contain no other separator.
    const std::vector<std::string_view> lines =
        first_lines(text_, list && format_.comments && format_.comment == 0);
    const auto in_all = [&](char separator) {
      return !lines.empty() && std::all_of(lines.begin(), lines.end(), [&](std::string_view line) {
        return trimmed(line).find(separator) != std::string_view::npos;
      });
    };
    constexpr std::string_view signs = "\t,;|";
    const bool spaced = std::none_of(lines.begin(), lines.end(), [&](std::string_view line) {
      return line.find_first_of(signs) != std::string_view::npos;
    });
    const auto found =
        std::find_if(signs.begin(), signs.end(), [&](char sign) { return in_all(sign); });
    if (found != signs.end())
      format_.separator = *found;
    else if (list && spaced && in_all(' '))
      format_.separator = ' ';
    // Texts contain commas, so a comma separates fields only if a header or the user says so.
    if (format_.separator == 0) format_.separator = list ? ',' : '\t';
    if (!list && format_.separator != '\t') {
      const io::CsvReader told(text_, file_);
      format_.separator = told.separator();
    }
  }
  format_.quotes = rows.quotes.value_or(list || format_.separator != '\t');
  note_quotes_ = !rows.quotes.has_value() && !format_.quotes;
}

void LineReader::sample() {
  io::CsvReader reader(text_, file_, format_);
  std::vector<std::string_view> fields;
  const auto short_fields = [&] {
    std::vector<std::string> out;
    out.reserve(fields.size());
    for (const std::string_view field : fields) {
      std::string_view text = trimmed(field);
      // A name of a header is a name without its quotes too.
      if (note_quotes_ && is_quoted(text)) text = text.substr(1, text.size() - 2);
      out.emplace_back(text.substr(0, kLookedAtBytes));
    }
    return out;
  };
  if (!reader.next(fields)) return;
  first_line_ = reader.line();
  first_ = short_fields();
  while (below_.size() < kLookedAtRows && reader.next(fields)) below_.push_back(short_fields());
}

void LineReader::find_group(const std::string& group) {
  if (group.empty()) return;
  named_group_ = group.find_first_not_of("0123456789") != std::string::npos || group.size() > 8;
  if (named_group_) {
    Notes ignored;
    group_ = ColumnNames(first_, file_, ignored).find(group, file_);
    if (group_ == kNone)
      throw make_error<ValueError>(
          FileName{file_}, ": its first line names no column '", group,
          "': give the group's column by its name there, or by its number from 0");
  } else {
    group_ = std::stoul(group);
  }
  const auto take = [&](std::vector<std::string>& row) {
    if (group_ < row.size()) row.erase(row.begin() + static_cast<std::ptrdiff_t>(group_));
  };
  take(first_);
  for (auto& row : below_) take(row);
}

void LineReader::find_header(const RowFormat& rows) {
  if (first_.empty()) return;
  const bool header = rows.header.has_value() ? *rows.header : named_group_ || looks_like_header();
  const std::string where = cat(file_, ", line ", first_line_);
  if (header) names_ = ColumnNames(first_, where, notes_);
  // Fields between commas may be any text; only a header says which one is the class.
  if (!header && form_ == LineForm::ClassLines && rows.separator.empty() &&
      format_.separator != '\t')
    format_.separator = '\t', format_.quotes = rows.quotes.value_or(false);
}

bool LineReader::looks_like_header() {
  const auto any = [&](const std::function<bool(const std::string&)>& test) {
    return std::any_of(first_.begin(), first_.end(), test);
  };
  // Whether a field of the first row occurs again in its column.
  const auto again = [&](std::size_t c) {
    return std::any_of(below_.begin(), below_.end(),
                       [&](const auto& row) { return c < row.size() && row[c] == first_[c]; });
  };
  const auto plain = [](const std::string& name) {
    return name.starts_with('#') ? std::string(trimmed(std::string_view(name).substr(1))) : name;
  };
  const auto assume = [&] {
    notes_.push_back({cat("the first line ('", first_[0].substr(0, 40),
                          "' …) is read as a header; if it is a row, set header=no"),
                      1, cat(file_, ", line ", first_line_)});
    return true;
  };
  if (first_.size() < 2 || (below_.empty() && form_ != LineForm::List)) return false;
  if (form_ == LineForm::Pairs)
    return is_one_of(first_[0], {"source", "src", "source_text", "input"}) &&
           is_one_of(first_[1], {"target", "tgt", "trg", "translation", "target_text", "output"});
  const bool labelled = any([&](const std::string& name) { return is_label_name(plain(name)); });
  bool repeated = false;
  for (std::size_t c = 0; c < first_.size(); ++c) repeated = repeated || again(c);
  if (form_ == LineForm::ClassLines) {
    const bool texts = any([](const std::string& name) { return is_text_name(name); });
    if (labelled && texts) return true;
    return labelled && !repeated && assume();
  }
  const bool paths = any([&](const std::string& name) { return is_path_name(plain(name)); });
  if (labelled && paths) return true;
  if (repeated || any([](const std::string& name) { return has_ending(name); })) return false;
  if (labelled || paths) return assume();
  const bool files_below =
      !below_.empty() && std::all_of(below_.begin(), below_.end(), [](const auto& row) {
        return !row.empty() && has_ending(row[0]);
      });
  return files_below && assume();
}

bool LineReader::next(std::vector<std::string_view>& fields) {
  if (!reader_->next(fields)) return false;
  const std::size_t columns = first_.size() + (group_ == kNone ? 0 : 1);
  if (!names_.empty() && fields.size() != columns)
    throw make_error<FormatError>(FileName{file_}, ": line ", LineNumber{line()}, " has ",
                                  fields.size(), " columns where the header has ", columns);
  if (group_ != kNone) {
    of_group_ = group_ < fields.size() ? trimmed(fields[group_]) : std::string_view();
    if (of_group_.empty())
      throw make_error<FormatError>(FileName{file_}, ": line ", LineNumber{line()},
                                    " has no group in column ", group_,
                                    " (counted from 0): fill it in, or name another column");
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(group_));
  }
  if (note_quotes_)
    for (const std::string_view field : fields)
      if (is_quoted(field) && quoted_.count++ == 0) quoted_.first = where();
  return true;
}

std::string_view LineReader::label(std::string_view field) {
  const std::string_view text = trimmed(field);
  auto found = labels_.find(text);
  if (found == labels_.end()) found = labels_.emplace(text, LabelCount{}).first;
  ++found->second.rows;
  SpacedWord& spaces = found->second.spaces;
  if (text.size() == field.size())
    spaces.bare = true;
  else if (spaces.count++ == 0)
    spaces.line = line();
  return text;
}

std::string_view LineReader::kept(std::string_view field) {
  const std::less_equal<> before;
  const bool inside = before(text_.data(), field.data()) &&
                      before(field.data() + field.size(), text_.data() + text_.size());
  return inside ? field : std::string_view(kept_.emplace_back(field));
}

std::string LineReader::where() const { return cat(file_, ", line ", line()); }

std::string_view LineReader::between(std::string_view first, std::string_view last) const {
  const char *from = first.data(), *to = last.data() + last.size();
  const std::less_equal<> before;
  const bool inside =
      before(text_.data(), from) && before(from, to) && before(to, text_.data() + text_.size());
  if (!inside) return {};
  const std::string_view out(from, static_cast<std::size_t>(to - from));
  return out.find('"') == std::string_view::npos ? out : std::string_view();
}

Notes LineReader::notes() const {
  Notes out = notes_;
  note_skipped(out, file_, reader_->comments(), reader_->blank(), comments_noted_);
  for (const auto& [text, label] : labels_) {
    if (label.spaces.bare && label.spaces.count > 0)
      out.push_back({cat(label.spaces.count, label.spaces.count == 1 ? " row has" : " rows have",
                         " a class with spaces around it, which is read as the class '",
                         text.substr(0, 60), "'"),
                     label.spaces.count, cat(file_, ", line ", label.spaces.line)});
    if (is_missing(text) && !text.empty())
      out.push_back({cat(label.rows, label.rows == 1 ? " row has" : " rows have", " the class '",
                         text, "': if it means a missing label, remove these rows"),
                     label.rows, file_});
  }
  if (quoted_.count > 0)
    out.push_back(
        {cat(quoted_.count,
             " texts are in double quotes, which are kept as part of the text; quotes=yes "
             "removes them"),
         quoted_.count, quoted_.first});
  return out;
}

}  // namespace tenon::data
