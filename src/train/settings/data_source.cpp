// Parses data sources.
#include "train/settings/data_source.h"

#include <utility>

#include <tenon/data.h>
#include <tenon/images.h>

#include "data/samples/source_parts.h"

namespace tenon::train {

DataSource::DataSource(std::string source, const std::filesystem::path& base)
    : text(std::move(source)), known(data::source_kind(text)) {
  const std::size_t end = text.find_first_of(":,");
  kind = text.substr(0, end);
  if (end == std::string::npos || known == nullptr) return;
  const std::string rest = text.substr(end + 1);
  const bool has_paths = !known->generated && text[end] == ':' && !rest.empty();
  if (!has_paths) {  // numbers and options
    for (std::size_t from = 0; from < rest.size();) {
      const std::size_t comma = std::min(rest.find(',', from), rest.size());
      options.push_back(rest.substr(from, comma - from));
      from = comma + 1;
    }
    return;
  }
  std::size_t which = 0;
  for (std::string& part : data::source_parts(rest, kind == "npy", base)) {
    const std::size_t path = data::path_in_part(kind, part, which++);
    take({std::move(part), path});
  }
}

void DataSource::take(Part part) {
  if (part.path == 0)
    paths.push_back(part.text);
  else if (part.path != std::string::npos && part.text.starts_with("test="))
    test = part.text.substr(part.path);
  else
    options.push_back(part.text);
  parts.push_back(std::move(part));
}

DataSource DataSource::with_option(const std::string& option) const {
  DataSource out = *this;
  out.text += "," + option;
  out.options.push_back(option);
  if (has_path()) out.parts.push_back({option});
  return out;
}

DataSource DataSource::with_paths(
    const std::function<std::string(const std::string&)>& change) const {
  DataSource out;
  out.kind = kind;
  out.known = known;
  for (const Part& part : parts) {
    Part changed = part;
    if (part.path != std::string::npos)
      changed.text = part.text.substr(0, part.path) + change(part.text.substr(part.path));
    out.text += (out.text.empty() ? kind + ":" : ",") + changed.text;
    out.take(std::move(changed));
  }
  return out;
}

bool DataSource::has_images() const { return data::is_image_source(text); }

bool DataSource::is_generated() const { return known != nullptr && known->generated; }

bool DataSource::names_test_part() const {
  constexpr std::size_t kArraysWithTest = 4;  // npy: inputs and targets of both parts
  return (known != nullptr && known->published) || !test.empty() ||
         (kind == "npy" && paths.size() == kArraysWithTest);
}

std::optional<std::string> DataSource::option(std::string_view key) const {
  for (auto option = options.rbegin(); option != options.rend(); ++option)
    if (option->size() > key.size() && option->starts_with(key) && (*option)[key.size()] == '=')
      return option->substr(key.size() + 1);
  return std::nullopt;
}

}  // namespace tenon::train
