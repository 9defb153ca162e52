// Images and their classes from folders, lists and shards: the items from which the parts of a
// source are chosen.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/images.h>

#include "data/samples/left_out.h"
#include "io/file.h"

namespace tenon::data {

/// An image or a video, and its class.
struct ImageItem {
  std::string name, word{};           ///< path, and class name
  bool by_folder = false;             ///< the class name is the folder's name
  std::string group{};                ///< items of equal group stay in one part; "": no group
  std::optional<Split> fixed_part{};  ///< part of the item; unset: assigned by the split
};

/// Whether a file name has an image extension.
bool looks_like_image(const std::string& path);

/// The entries of a folder without hidden files, sorted by name. Throws IoError.
std::vector<std::filesystem::path> folder_entries(const std::filesystem::path& folder);
/// Whether a folder of class folders has a part folder for testing. Throws IoError, FormatError.
bool has_test_folder(const std::string& folder);

/// The images in class folders, or in part folders with class folders. Throws IoError, FormatError,
/// ValueError.
std::vector<ImageItem> folder_items(const std::string& folder, bool videos, const ImageSplit& split,
                                    Notes& notes);

/// The images listed in the rows of a file. `group` is a rule or a column. Throws IoError,
/// FormatError, ValueError.
std::vector<ImageItem> list_items(const std::string& file, bool videos, const std::string& group,
                                  const RowFormat& rows, Notes& notes);

/// Position of an image in a shard.
struct ShardPlace {
  std::size_t file;
  std::uint64_t offset, size;
};
/// The images of tar shards, whose files stay open.
struct ShardIndex {
  std::string group_rule{};
  std::vector<ImageItem> items{};
  std::vector<ShardPlace> places{};  ///< position of each item
  std::vector<std::unique_ptr<io::InputFile>> files{};
  LeftOut left_out{};
};
/// Adds the shards of a pattern. Throws IoError, FormatError, NotSupported, ValueError.
void index_shards(const std::string& pattern, std::optional<Split> fixed_part, ShardIndex& index);

constexpr std::uint64_t kMostImageBytes = 1ull << 30;

}  // namespace tenon::data
