// Sharded weights: several files, and the index that says which tensor is in which file: Hugging
// Face's model.safetensors.index.json and pytorch_model.bin.index.json.

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/file.h"
#include "io/tensors/weight_table.h"
#include "io/text/json.h"

namespace tenon::io {
namespace {

constexpr std::size_t kMostIndex = std::size_t{64} << 20;
constexpr std::size_t kMostPartFiles = 4096;

std::string_view shown_name_of_part(const std::string& text) {
  return std::string_view(text).substr(0, 120);
}

// A file name without a folder, so that a file outside the index's folder cannot be named.
bool is_plain_name(const std::string& part) {
  return !part.empty() && part != "." && part != ".." &&
         part.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

// The tensor names that the index expects in each file.
std::map<std::string, std::vector<std::string>> parse_index(std::string_view bytes,
                                                            const std::string& name) {
  if (bytes.size() > kMostIndex)
    throw make_error<FormatError>(FileName{name}, ": an index of ", bytes.size(),
                                  " bytes is too large");
  const auto index = parse_json_or_discard(bytes);
  const auto damaged = [&](std::string_view what) {
    return make_error<FormatError>(FileName{name}, ": ", what, ": not an index of weight files");
  };
  if (index.is_discarded() || !index.is_object()) throw damaged("not a JSON object");
  const Json* map = index.find("weight_map");
  if (map == nullptr || !map->is_object()) throw damaged("has no object 'weight_map'");
  std::map<std::string, std::vector<std::string>> parts;
  for (const auto& [tensor, part] : map->members()) {
    if (!part.is_string()) throw damaged(cat("'", shown_name_of_part(tensor), "' has no file"));
    const std::string& file = part.text();
    if (!is_plain_name(file))
      throw make_error<FormatError>(
          FileName{name}, ": '", shown_name_of_part(tensor), "' is listed in '",
          shown_name_of_part(file),
          "', which must be the name of a file in the index's folder, without a path");
    parts[file].push_back(tensor);
  }
  if (parts.size() > kMostPartFiles) throw damaged(cat("names ", parts.size(), " files"));
  return parts;
}

}  // namespace

WeightTable read_weight_parts(std::string_view bytes, const std::string& name,
                              const WeightReader& read) {
  WeightTable table;
  const std::size_t slash = name.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : name.substr(0, slash + 1);
  for (const auto& [part, expected] : parse_index(bytes, name)) {
    const std::string path = folder + part;
    auto file = std::make_shared<const MappedFile>(path);
    WeightTable of_part = read(file->bytes(), path);
    std::unordered_map<std::string, bool> found;
    for (const StoredTensor& tensor : of_part.tensors) found.emplace(tensor.name, true);
    for (const Unread& one : of_part.unread) found.emplace(one.name, true);
    for (const std::string& tensor : expected)
      if (!found.contains(tensor))
        throw make_error<FormatError>(FileName{name}, ": '", shown_name_of_part(tensor),
                                      "' should be in ", part,
                                      ", which does not contain it: fetch the files again");
    if (found.size() != expected.size())
      throw make_error<FormatError>(FileName{name}, ": ", part, " contains ", found.size(),
                                    " tensors, expected ", expected.size(),
                                    ": the files belong to different models");
    const std::size_t before = table.values.size();
    for (StoredTensor& tensor : of_part.tensors) {
      tensor.value += before;
      table.tensors.push_back(std::move(tensor));
    }
    file->require_whole();
    for (auto& value : of_part.values)
      table.values.emplace_back([file, read_value = std::move(value)] {
        Tensor read_now = read_value();
        file->require_whole();
        return read_now;
      });
    table.metadata.merge(of_part.metadata);
    std::move(of_part.unread.begin(), of_part.unread.end(), std::back_inserter(table.unread));
    table.format = of_part.format + " in parts";
    table.parts.push_back(std::move(file));
  }
  if (table.parts.empty())
    throw make_error<FormatError>(FileName{name}, ": the index names no tensors");
  return table;
}

}  // namespace tenon::io
