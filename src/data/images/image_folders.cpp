// Images in folders: sub-folders are the classes, or the parts that contain the class folders.
#include <algorithm>
#include <filesystem>
#include <set>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/folder_names.h"
#include "data/images/image_items.h"
#include "data/samples/part_folders.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

bool is_folder_there(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<std::string> sub_folders(const fs::path& folder) {
  std::vector<std::string> out;
  for (const fs::path& path : folder_entries(folder))
    if (is_folder_there(path)) out.push_back(path.filename().string());
  return out;
}

std::string joined_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 5;
  std::string out;
  for (std::size_t k = 0; k < std::min(names.size(), kMostNamed); ++k)
    out += cat(k == 0 ? "" : ", ", names[k]);
  return names.size() > kMostNamed ? out + ", …" : out;
}

std::string group_below(const fs::path& folder, const ImageItem& item, const std::string& rule) {
  const fs::path below = fs::path(item.name).lexically_relative(folder / item.word);
  const bool nested = std::distance(below.begin(), below.end()) > 1;
  return group_by_rule(item.name, nested ? below.begin()->string() : "", rule);
}

void gather(const fs::path& folder, const std::string& word, bool videos, int depth,
            std::vector<ImageItem>& items, LeftOut& left_out) {
  constexpr int kMostDepth = 8;
  for (const fs::path& path : folder_entries(folder)) {
    if (is_folder_there(path)) {
      if (depth < kMostDepth)
        gather(path, word, videos, depth + 1, items, left_out);
      else
        left_out.too_deep.add(path.string());
    } else if (io::looks_like_video(path.string())) {
      if (videos) items.push_back({path.string(), word, true});
    } else if (looks_like_image(path.string())) {
      items.push_back({path.string(), word, true});
    } else {
      left_out.not_images.add(path.string());
    }
  }
}

std::vector<ImageItem> classes_in(const fs::path& folder, bool videos,
                                  const std::string& group_rule, Notes& notes) {
  std::vector<ImageItem> items;
  LeftOut left_out;
  std::string beside;  // an image outside of class folders
  for (const fs::path& path : folder_entries(folder)) {
    const std::string name = path.filename().string();
    if (is_folder_there(path)) {
      const std::size_t before = items.size();
      gather(path, name, videos, 0, items, left_out);
      if (items.size() == before) left_out.empty_classes.add(folder.string(), name);
    } else if (looks_like_image(path.string())) {
      left_out.beside_classes.add(path.string());
      if (beside.empty()) beside = name;
    }
  }
  const Notes found = left_out.notes();
  notes.insert(notes.end(), found.begin(), found.end());
  if (items.empty() && !beside.empty())
    throw make_error<FormatError>(FileName{folder.string()}, ": sub-folders are the classes, but ",
                                  beside, " is not in a sub-folder: move it into one, as in ",
                                  (folder / "cats" / beside).string());
  for (ImageItem& item : items)
    if (!group_rule.empty()) item.group = group_below(folder, item, group_rule);
  return items;
}

}  // namespace

bool looks_like_image(const std::string& path) {
  static const std::set<std::string> kEndings = {".jpg", ".jpeg", ".jpe", ".jfif", ".png",
                                                 ".gif", ".webp", ".tif", ".tiff", ".bmp",
                                                 ".pbm", ".pgm",  ".ppm", ".pnm"};
  std::string ending = fs::path(path).extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return kEndings.contains(ending);
}

// The entries of a folder, sorted by name, because the system returns them in any order.
std::vector<fs::path> folder_entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  for (const std::string& name : names_in(folder.string(), error))
    if (!name.starts_with('.')) out.push_back(folder / name);
  if (error) throw make_error<IoError>(FileName{folder.string()}, ": ", error.message());
  std::sort(out.begin(), out.end());
  return out;
}

bool has_test_folder(const std::string& folder) {
  return !part_folders(folder, sub_folders(io::system_path(folder))).test.empty();
}

// Refuses part folders where class folders are expected: inside a class, or inside another part. As
// images of one class, training and test images would be mixed.
void refuse_parts_within(const fs::path& folder, const std::string& what) {
  const std::vector<std::string> names = sub_folders(folder);
  std::string train, other;
  for (const std::string& name : names)
    if (const auto part = part_named(name)) (*part == Split::Train ? train : other) = name;
  if (train.empty() || other.empty()) return;
  throw make_error<FormatError>(
      FileName{folder.string()}, ": ", what, ", and contains ", train, " and ", other,
      ", which are names of parts. Part folders contain the class folders, as in ", train,
      "/cats: move the folders, or name the one that contains the parts, "
      "folder:",
      folder.string());
}

// "train/train/cats" and "test/test/cats" result from archives that contain a folder of the same
// name. If other folders are beside it, such a folder is a class.
void require_classes(const fs::path& folder) {
  const std::vector<std::string> names = sub_folders(folder);
  if (names.empty() || !std::all_of(names.begin(), names.end(), [](const std::string& name) {
        return part_named(name).has_value();
      }))
    return;
  throw make_error<FormatError>(FileName{folder.string()},
                                ": its sub-folders would be the classes, but all have names "
                                "of parts: ",
                                joined_names(names), ". Move the folders of the classes into ",
                                folder.string());
}

// The images of all sub-folders. If the sub-folders are parts, each image belongs to its folder's
// part.
std::vector<ImageItem> folder_items(const std::string& folder, bool videos, const ImageSplit& split,
                                    Notes& notes) {
  const fs::path root = io::system_path(folder);
  if (!is_folder_there(root))
    throw make_error<IoError>(FileName{folder}, ": this folder does not exist: check the path");
  PartFolders parts;
  if (split.part_folders) parts = part_folders(folder, sub_folders(root));
  if (!parts.any()) {
    if (split.part_folders)
      for (const std::string& name : sub_folders(root))
        refuse_parts_within(root / name, cat("is the class '", name, "'"));
    return classes_in(root, videos, split.split.group, notes);
  }
  for (const std::string& name : {parts.train, parts.validation, parts.test})
    if (!name.empty()) require_classes(root / name);
  if (parts.by_words)
    notes.push_back({cat("sub-folders are parts: ", parts.text()), 1, folder, true});
  if (!parts.test.empty() && !split.test_path.empty())
    throw make_error<ValueError>(FileName{folder}, ": contains ", parts.test,
                                 ", and another test part is given: leave out one of the two");
  if (!parts.beside.empty())
    notes.push_back({cat(parts.beside.size(), parts.beside.size() == 1 ? " folder" : " folders",
                         " beside ", parts.train, " left out: ", joined_names(parts.beside)),
                     std::ssize(parts.beside), folder});
  std::vector<ImageItem> all;
  const auto add = [&](const std::string& name, std::optional<Split> part) {
    if (name.empty()) return;
    std::vector<ImageItem> items = classes_in(root / name, videos, split.split.group, notes);
    if (items.empty())
      throw make_error<FormatError>(FileName{(root / name).string()}, ": contains no images");
    for (ImageItem& item : items) {
      item.fixed_part = part;
      all.push_back(std::move(item));
    }
  };
  add(parts.train, std::nullopt);
  add(parts.validation, Split::Validation);
  add(parts.test, Split::Test);
  return all;
}

}  // namespace tenon::data
