// Folder names alone decide which folders are parts; their content is gathered elsewhere.
#include "data/samples/part_folders.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"

namespace tenon::data {

namespace {

using NameWords = std::vector<std::string>;

struct PartWord {
  const char* word;
  Split part;
};
constexpr PartWord kPartWords[] = {{"training", Split::Train},        {"train", Split::Train},
                                   {"validation", Split::Validation}, {"valid", Split::Validation},
                                   {"val", Split::Validation},        {"dev", Split::Validation},
                                   {"testing", Split::Test},          {"test", Split::Test}};
// Words for the content of any part.
constexpr const char* kPlainWords[] = {
    "images", "image",    "imgs",   "img",     "images",  "image",  "pics",    "pic",
    "photos", "photo",    "frames", "dataset", "data",    "subset", "set",     "samples",
    "sample", "examples", "split",  "part",    "classes", "files",  "folders", "folder"};

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

// Splits a name into words of letters, in lower case: "TrainImages_2017" gives "train" and
// "images". Non-ASCII bytes count as letters.
NameWords words_in(const std::string& name) {
  NameWords out;
  bool within = false;
  char before = 0;
  for (const char c : name) {
    const bool letter = is_upper(c) || is_lower(c) || static_cast<unsigned char>(c) >= 0x80;
    if (letter && (!within || (is_upper(c) && is_lower(before)))) out.emplace_back();
    if (letter) out.back() += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
    within = letter, before = c;
  }
  return out;
}

// The part that a name means, and the other words of the name.
struct NamedPart {
  std::optional<Split> part{};
  bool contradicts = false;  // it names two parts
  NameWords others{};
};

void add_part(NamedPart& out, Split part) {
  // "trainval" counts as training, and is split like training files.
  const auto is_test = [](Split p) { return p == Split::Test; };
  if (out.part && *out.part != part && (is_test(*out.part) || is_test(part)))
    out.contradicts = true;
  else if (!out.part || part == Split::Train)
    out.part = part;
}

// Splits a word that consists of known words, such as "trainset"; false if it does not.
bool read_word(std::string_view word, NamedPart& out) {
  if (word.empty()) return true;
  for (const PartWord& known : kPartWords)
    if (word.starts_with(known.word)) {
      NamedPart longer = out;
      add_part(longer, known.part);
      if (!read_word(word.substr(std::string_view(known.word).size()), longer)) continue;
      out = std::move(longer);
      return true;
    }
  for (const char* known : kPlainWords)
    if (word.starts_with(known) && read_word(word.substr(std::string_view(known).size()), out))
      return true;
  return false;
}

NamedPart read_name(const std::string& name) {
  NamedPart out;
  for (const std::string& word : words_in(name))
    if (word.size() > 1 && !read_word(word, out)) out.others.push_back(word);
  if (out.contradicts) out.part.reset();
  return out;
}

bool is_part_word(const std::string& name) {
  const NameWords words = words_in(name);
  return words.size() == 1 && words[0].size() == name.size() &&
         std::any_of(std::begin(kPartWords), std::end(kPartWords),
                     [&](const PartWord& known) { return words[0] == known.word; });
}

// Names that contain other words and still mean parts: a name for training and a name for another
// part contain the same other words, as mnist_train and mnist_test do.
std::set<std::string> named_in_pairs(const NameWords& sub_folders) {
  std::map<NameWords, std::vector<std::pair<std::string, Split>>> alike;
  for (const std::string& name : sub_folders)
    if (const NamedPart read = read_name(name); read.part && !read.others.empty())
      alike[read.others].emplace_back(name, *read.part);
  std::set<std::string> out;
  for (const auto& [words, named] : alike) {
    const auto trains = std::count_if(named.begin(), named.end(),
                                      [](const auto& n) { return n.second == Split::Train; });
    if (trains == 0 || trains == std::ssize(named)) continue;
    for (const auto& [name, part] : named) out.insert(name);
  }
  return out;
}

}  // namespace

std::optional<Split> part_named(const std::string& folder_name) {
  const NamedPart read = read_name(folder_name);
  return read.others.empty() ? read.part : std::nullopt;
}

std::string PartFolders::text() const {
  std::string out;
  const auto add = [&](const std::string& folder, Split part) {
    if (!folder.empty()) out += cat(out.empty() ? "" : ", ", folder, " (", name(part), ")");
  };
  add(train, Split::Train), add(validation, Split::Validation), add(test, Split::Test);
  return out;
}

PartFolders part_folders(const std::string& folder, const std::vector<std::string>& sub_folders) {
  PartFolders out;
  const std::set<std::string> pairs = named_in_pairs(sub_folders);
  std::string named;  // the first sub-folder that is named like a part
  for (const std::string& name : sub_folders) {
    const std::optional<Split> part =
        pairs.contains(name) ? read_name(name).part : part_named(name);
    if (!part) {
      out.beside.push_back(name);
      continue;
    }
    if (named.empty()) named = name;
    out.by_words = out.by_words || !is_part_word(name);
    std::string& place = *part == Split::Train        ? out.train
                         : *part == Split::Validation ? out.validation
                                                      : out.test;
    if (!place.empty())
      throw make_error<FormatError>(
          FileName{folder}, ": contains both ", place, " and ", name, ", which are both the ",
          data::name(*part),
          " part by their names: move one of them elsewhere. Where they are "
          "classes, say so: parts=no");
    place = name;
  }
  if (named.empty() || (!out.train.empty() && !(out.validation.empty() && out.test.empty())))
    return out;
  throw make_error<FormatError>(
      FileName{folder}, ": its sub-folders are the classes, and one would be called '", named,
      "'. Parts are a folder train beside val or test; else name the folder that contains the "
      "classes, as in ",
      (std::filesystem::path(folder) / named).string(), ". Where '", named,
      "' is a class, say so: parts=no");
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
    throw make_error<ValueError>(
        FileName{what}, ": group=", rule,
        ": images are grouped by 'prefix', their names up to the last '_' or '-', "
        "or by 'folder'");
}

}  // namespace tenon::data
