// Images listed in the rows of a file, each with its class.
#include <filesystem>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/images/image_items.h"
#include "data/samples/part_folders.h"
#include "data/tables/line_reader.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

// The columns of paths and classes in a list; kNone: the class is the last field.
struct ListColumns {
  std::size_t path = 0, word = kNone;
};

ListColumns list_columns(const LineReader& lines) {
  const ColumnNames& header = lines.header();
  if (header.empty()) return {};
  ListColumns out{kNone, kNone};
  for (const std::string& name : path_names())
    if (out.path == kNone) out.path = header.find(name, lines.file());
  for (std::size_t c = 0; c < lines.columns(); ++c)
    if (out.word == kNone && c != out.path && is_label_name(header[c])) out.word = c;
  if (lines.columns() == 2) {
    if (out.path == kNone) out.path = out.word == 0 ? 1 : 0;
    if (out.word == kNone) out.word = 1 - out.path;
  }
  if (out.path == kNone || out.word == kNone)
    throw make_error<FormatError>(FileName{lines.file()}, ": none of its ", lines.columns(),
                                  " columns is named ",
                                  out.path == kNone ? "filename, path or image" : "label or class",
                                  ": rename the column in the header");
  return out;
}

// The path of a row; without a header it may contain the separator.
std::string_view listed_path(const LineReader& lines, const std::vector<std::string_view>& fields,
                             const ListColumns& columns) {
  if (fields.size() < 2)
    throw make_error<FormatError>(
        FileName{lines.file()}, ", line ", LineNumber{lines.line()}, ": '", fields[0].substr(0, 60),
        "' has no class: write the path and the class, as in cats/1.jpg,cat, "
        "with the same separator in all lines (separator=CHAR sets it)");
  if (!lines.header().empty() || fields.size() == 2) return trimmed(fields[columns.path]);
  const std::string_view path = lines.between(fields[0], fields[fields.size() - 2]);
  if (path.empty())
    throw make_error<FormatError>(FileName{lines.file()}, ", line ", LineNumber{lines.line()},
                                  ": has ", fields.size(), " fields, must have a path and a class");
  return trimmed(path);
}

// Joins folder and path without parsing them, because a list may have millions of lines.
std::string in_folder(const std::string& folder, const std::string& path) {
  if (folder.empty() || path.starts_with('/')) return path;
  return cat(folder, folder.ends_with('/') ? "" : "/", path);
}

}  // namespace

std::vector<ImageItem> list_items(const std::string& file, bool videos, const std::string& group,
                                  const RowFormat& rows, Notes& notes) {
  const std::string base = fs::path(file).parent_path().string();
  const bool by_rule = group == "prefix" || group == "folder";
  LineReader lines(file, LineForm::List, rows, by_rule ? "" : group);
  const ListColumns columns = list_columns(lines);
  std::vector<ImageItem> items;
  Note left_out;
  std::vector<std::string_view> fields;
  while (lines.next(fields)) {
    const std::string path(listed_path(lines, fields, columns));
    const std::string word(
        lines.label(columns.word == kNone ? fields.back() : fields[columns.word]));
    if (path.empty() || word.empty())
      throw make_error<FormatError>(
          FileName{lines.file()}, ", line ", LineNumber{lines.line()},
          ": the path or the class is empty: fill it in, or remove the line");
    if (!videos && io::looks_like_video(path)) {
      if (left_out.count++ == 0) left_out.first = lines.where();
      continue;
    }
    items.push_back({in_folder(base, path), word, false, lines.group()});
    if (by_rule)
      items.back().group = group_by_rule(path, fs::path(path).parent_path().string(), group);
  }
  const Notes more = lines.notes();
  notes.insert(notes.end(), more.begin(), more.end());
  if (left_out.count > 0) {
    left_out.text = cat(left_out.count, left_out.count == 1 ? " video is" : " videos are",
                        " left out, because frames=0");
    notes.push_back(left_out);
  }
  return items;
}

}  // namespace tenon::data
