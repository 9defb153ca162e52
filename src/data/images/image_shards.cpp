// Images in tar files in WebDataset's format.
#include <charconv>
#include <filesystem>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/images/image_items.h"
#include "data/samples/part_folders.h"
#include "io/archives/tar.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> whole_number_of(const std::string& word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0) return {};
  return value;
}

std::string without_space(std::string text) {
  const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && space(text.back())) text.pop_back();
  while (!text.empty() && space(text.front())) text.erase(0, 1);
  return text;
}

// Expands a pattern: "a{00..12}b" to 13 paths, and a star in the last component of a path to the
// files that match it.
std::vector<std::string> shards_of(const std::string& pattern) {
  const std::size_t open = pattern.find('{'), dots = pattern.find("..", open),
                    close = pattern.find('}', dots);
  std::vector<std::string> out;
  if (open != std::string::npos && close != std::string::npos) {
    const std::string low = pattern.substr(open + 1, dots - open - 1),
                      high = pattern.substr(dots + 2, close - dots - 2);
    const auto first = whole_number_of(low), last = whole_number_of(high);
    if (!first || !last || *last < *first || *last - *first > 1'000'000)
      throw ValueError(
          cat("shards:", pattern, ": braces must contain two numbers, as in {000..012}"));
    for (std::int64_t k = *first; k <= *last; ++k) {
      std::string digits = std::to_string(k);
      if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
      out.push_back(pattern.substr(0, open) + digits + pattern.substr(close + 1));
    }
    return out;
  }
  const fs::path path(pattern);
  const std::string last = path.filename().string();
  const std::size_t star = last.find('*');
  if (star == std::string::npos) return {pattern};
  const std::string before = last.substr(0, star), after = last.substr(star + 1);
  for (const fs::path& file : folder_entries(path.has_parent_path() ? path.parent_path() : "."))
    if (const std::string name = file.filename().string();
        name.size() >= before.size() + after.size() && name.starts_with(before) &&
        name.ends_with(after))
      out.push_back(file.string());
  if (out.empty()) throw make_error<IoError>("shards:", FileName{pattern}, ": no such file");
  return out;
}

// The members of one sample in a shard: its image and its class, in either order.
struct ShardParts {
  std::string name, word, folder;
  ShardPlace place{};
  int images = 0;
};

void add_sample(ShardParts& parts, const std::string& shard, const std::string& key,
                std::optional<Split> fixed_part, ShardIndex& index) {
  if (parts.images > 1) index.left_out.several_images.add(parts.name);
  if (parts.images == 0 && !key.empty()) index.left_out.no_image.add(cat(shard, ":", key));
  if (parts.images > 0) {
    const std::string& word = parts.word.empty() ? parts.folder : parts.word;
    if (word.empty())
      throw make_error<FormatError>(FileName{parts.name},
                                    ": has no class: neither a .cls beside it nor a folder");
    index.items.push_back({parts.name, word, parts.word.empty()});
    index.items.back().fixed_part = fixed_part;
    if (!index.group_rule.empty())
      index.items.back().group = group_by_rule(parts.name, parts.folder, index.group_rule);
    index.places.push_back(parts.place);
  }
  parts = {};
}

void index_shard(const io::InputFile& shard, std::size_t file, std::optional<Split> fixed_part,
                 ShardIndex& index) {
  const std::string& path = shard.path();
  char start[2] = {};
  if (shard.size() >= sizeof start) shard.read_at(0, start, sizeof start);
  if (io::is_gzip({start, sizeof start}))
    throw make_error<NotSupported>(FileName{path},
                                   ": a compressed shard cannot be read by offset: unpack it with "
                                   "gunzip");
  io::TarReader reader(shard);
  std::string key;
  ShardParts parts;
  while (reader.next()) {
    const std::string& member = reader.path();
    const std::size_t slash = member.rfind('/') + 1, dot = member.find('.', slash);
    if (const std::string now = member.substr(0, dot); now != key) {
      add_sample(parts, path, key, fixed_part, index);
      key = now;
    }
    if (looks_like_image(member)) {
      if (++parts.images > 1) continue;
      parts.name = cat(path, ":", member);
      parts.place = {file, reader.place(), reader.size()};
      if (reader.size() > kMostImageBytes)
        throw make_error<FormatError>(FileName{parts.name}, ": an image of ", reader.size(),
                                      " bytes");
      const std::string folder = slash > 0 ? member.substr(0, slash - 1) : "";
      parts.folder = folder.substr(folder.rfind('/') + 1);
      if (parts.folder == ".") parts.folder.clear();
    } else if (member.ends_with(".cls")) {
      parts.word = without_space(reader.read(1 << 16));
    }
  }
  add_sample(parts, path, key, fixed_part, index);
  for (std::int64_t k = 0; k < reader.passed_over(); ++k) index.left_out.no_files.add(path);
}

}  // namespace

void index_shards(const std::string& pattern, std::optional<Split> fixed_part, ShardIndex& index) {
  const std::size_t before = index.items.size();
  for (const std::string& path : shards_of(pattern)) {
    index.files.push_back(std::make_unique<io::InputFile>(path));
    index_shard(*index.files.back(), index.files.size() - 1, fixed_part, index);
  }
  if (index.items.size() == before)
    throw make_error<FormatError>(FileName{pattern}, ": contains no images");
}

}  // namespace tenon::data
