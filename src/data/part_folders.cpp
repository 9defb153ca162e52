// Which folders are parts is told by their names alone: what they hold is gathered elsewhere.
#include "data/part_folders.h"

#include <filesystem>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::data {

std::optional<Split> part_named(const std::string& folder_name) {
  std::string small = folder_name;
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const char* known : {"train", "training"})
    if (small == known) return Split::Train;
  for (const char* known : {"val", "valid", "validation", "dev"})
    if (small == known) return Split::Validation;
  for (const char* known : {"test", "testing"})
    if (small == known) return Split::Test;
  return {};
}

PartFolders part_folders(const std::string& folder, const std::vector<std::string>& sub_folders) {
  PartFolders out;
  std::string named;  // the first that is called as a part is
  for (const std::string& name : sub_folders) {
    const std::optional<Split> part = part_named(name);
    if (!part) {
      out.beside.push_back(name);
      continue;
    }
    if (named.empty()) named = name;
    std::string& place = *part == Split::Train        ? out.train
                         : *part == Split::Validation ? out.validation
                                                      : out.test;
    if (!place.empty())
      throw FormatError(cat(folder, ": holds both ", place, " and ", name, ", which are both the ",
                            data::name(*part), " part: move one of them elsewhere"));
    place = name;
  }
  if (named.empty() || (!out.train.empty() && !(out.validation.empty() && out.test.empty())))
    return out;
  throw FormatError(
      cat(folder, ": its sub-folders are the classes, and one would be called '", named,
          "'. Parts are a folder train beside val or test; else name the folder that holds the "
          "classes, as in ",
          (std::filesystem::path(folder) / named).string(), ". Where '", named,
          "' is a class, say so: parts=no"));
}

std::string name_prefix(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  const std::size_t cut = stem.find_last_of("_-. ");
  return cut == std::string::npos || cut == 0 ? stem : stem.substr(0, cut);
}

std::string group_by_rule(const std::string& path, const std::string& folder,
                          const std::string& rule) {
  return rule == "prefix" ? name_prefix(path) : folder.empty() ? path : folder;
}

void check_group_rule(const std::string& rule, const std::string& what) {
  if (!rule.empty() && rule != "prefix" && rule != "folder")
    throw ValueError(cat(what, ": group=", rule,
                         ": images are grouped by 'prefix', their names up to the last '_' or '-', "
                         "or by 'folder'"));
}

}  // namespace tenon::data
