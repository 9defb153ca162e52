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

#include "data/left_out.h"
#include "io/file.h"

namespace tenon::data {

/// An image or a video, and its class.
struct ImageItem {
  std::string name, word{};        ///< its path, and the name of its class
  bool by_folder = false;          ///< the word is the folder's name
  std::string group{};             ///< what stays with others of the same; "": nothing does
  std::optional<Split> lies_in{};  ///< the part whose files it is one of; unset: it is divided
};

/// Whether a name ends as those of images do.
bool looks_like_image(const std::string& path);

/// What lies in a folder but hidden files, in the order of names. Throws IoError.
std::vector<std::filesystem::path> folder_entries(const std::filesystem::path& folder);

/// The images below a folder of classes, or of parts which hold the classes. Throws IoError,
/// FormatError, ValueError.
std::vector<ImageItem> folder_items(const std::string& folder, bool videos, const ImageSplit& split,
                                    Notes& notes);

/// The images that the rows of a file name. `group` is a rule or a column. Throws IoError,
/// FormatError, ValueError.
std::vector<ImageItem> list_items(const std::string& file, bool videos, const std::string& group,
                                  const RowFormat& rows, Notes& notes);

/// Where a shard's image lies.
struct ShardPlace {
  std::size_t file;
  std::uint64_t offset, size;
};
/// The images of tar shards, which stay open.
struct ShardIndex {
  std::string group_rule{};
  std::vector<ImageItem> items{};
  std::vector<ShardPlace> places{};  ///< of each item
  std::vector<std::unique_ptr<io::InputFile>> files{};
  LeftOut left_out{};
};
/// Adds the shards of a pattern. Throws IoError, FormatError, NotSupported, ValueError.
void index_shards(const std::string& pattern, std::optional<Split> lies_in, ShardIndex& index);

constexpr std::uint64_t kMostImageBytes = 1ull << 30;

}  // namespace tenon::data
