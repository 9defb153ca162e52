// Where pictures lie: folders, lists, tar shards; and which of them are for testing.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include <tenon/error.h>
#include <tenon/pictures.h>

#include "base/digest.h"
#include "base/folder_names.h"
#include "base/index.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "data/class_order.h"
#include "data/left_out.h"
#include "data/line_reader.h"
#include "data/part_folders.h"
#include "data/split.h"
#include "io/encoding.h"
#include "io/file.h"
#include "io/image.h"
#include "io/tar.h"
#include "io/video.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostPictureBytes = 1ull << 30;
constexpr std::size_t kMostClasses = 1'000'000;
constexpr int kMostFrames = 100'000;  // of a video

struct Labelled {
  std::string name, word{};        // of the class
  bool by_folder = false;          // the word is the folder's name
  std::string group{};             // what stays with others of the same; "": nothing does
  std::optional<Split> lies_in{};  // the part whose files it is one of; unset: it is divided
};

bool looks_like_picture(const std::string& path) {
  static const std::set<std::string> kEndings = {".jpg", ".jpeg", ".jpe", ".jfif", ".png",
                                                 ".gif", ".webp", ".tif", ".tiff", ".bmp",
                                                 ".pbm", ".pgm",  ".ppm", ".pnm"};
  std::string ending = fs::path(path).extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return kEndings.contains(ending);
}

std::optional<std::int64_t> whole_number_of(const std::string& word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0) return {};
  return value;
}

// Classes of what is for training, in their order.
std::vector<std::string> names_of(const std::vector<Labelled>& items, ClassOrder order) {
  std::set<std::string> words;
  bool by_folder = false;
  for (const Labelled& item : items) {
    if (item.lies_in.value_or(Split::Train) != Split::Train) continue;
    words.insert(item.word);
    by_folder = by_folder || item.by_folder;
  }
  return ordered_classes({words.begin(), words.end()}, order, by_folder);
}

// A list of pictures with its classes and its part; where they lie is the subclass's.
class ListedPictures : public Pictures {
 public:
  ListedPictures(std::vector<Labelled> items, std::string what)
      : items_(std::move(items)), what_(std::move(what)) {
    if (items_.empty()) throw FormatError(cat(what_, ": holds no pictures"));
    for (std::size_t i = 0; i < items_.size(); ++i) numbers_.push_back({i});
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(numbers_.size()); }
  std::int64_t label(std::int64_t number) const override { return labels_[place(number)]; }
  std::string name(std::int64_t number) const override {
    const Entry& entry = numbers_[at(number)];
    const std::string& path = items_[entry.item].name;
    return entry.frames == 0 ? path : cat(path, ", frame ", entry.frame + 1, " of ", entry.frames);
  }
  std::vector<std::string> class_names() const override { return names_; }
  std::string describe() const override { return cat(size(), " pictures of ", what_); }

  const std::vector<Labelled>& items() const { return items_; }
  void number_classes(const std::vector<std::string>& known, ClassOrder by) {
    names_ = known.empty() ? names_of(items_, by) : known;
    for (const std::string& name : names_)
      if (io::not_utf8(name) != std::string::npos)
        throw FormatError(cat(what_, ": the name of a class is no UTF-8: '", name.substr(0, 60),
                              "': rename it, for models keep it as UTF-8"));
    if (names_.size() > kMostClasses)
      throw FormatError(cat(what_, ": has ", names_.size(), " classes"));
    std::map<std::string, std::int64_t> order;
    for (std::size_t k = 0; k < names_.size(); ++k)
      order.emplace(names_[k], static_cast<std::int64_t>(k));
    labels_.reserve(items_.size());
    for (const Labelled& item : items_) {
      const auto found = order.find(item.word);
      if (found == order.end())
        throw FormatError(
            cat(item.name, ": its class '", item.word, "' is none that training pictures have"));
      labels_.push_back(found->second);
    }
  }
  // False where the source has no such part.
  bool keep_part(Split part, const PictureSplit& split, bool files_may_repeat) {
    Samples samples{.name = what_, .count = std::ssize(items_)};
    samples.class_names = names_;
    samples.marks.classes = labels_;
    std::vector<std::string_view> names, groups;
    for (const Labelled& item : items_) {
      samples.lies_in.push_back(item.lies_in);
      names.emplace_back(item.name);
      if (!split.split.group.empty()) groups.emplace_back(item.group);
    }
    samples.marks.groups = numbers_of_words(groups);
    // Lines about one file, as crops of it, are never apart.
    if (files_may_repeat && groups.empty()) samples.marks.units = numbers_of_words(names);
    const SplitOptions options =
        split.test_path.empty() ? split.split : without_test(split.split, what_);
    const Chosen chosen = choose_samples(options, split.whole ? Split::All : part, samples);
    numbers_.clear();
    for (const std::int64_t i : chosen.samples) numbers_.push_back({at(i)});
    add(chosen.notes);
    what_ = of_files(what_, split.test_path, split.whole ? Split::All : part);
    return !numbers_.empty();
  }
  Notes notes() const override { return notes_; }
  void add(const Notes& notes) { notes_.insert(notes_.end(), notes.begin(), notes.end()); }

 protected:
  // A picture of the list, or one of a video's frames.
  struct Entry {
    std::size_t item;
    int frame = 0, frames = 0;
  };
  const Entry& entry(std::int64_t number) const { return numbers_[at(number)]; }
  std::size_t place(std::int64_t number) const { return numbers_[at(number)].item; }
  std::vector<Labelled> items_;
  std::vector<Entry> numbers_;

 private:
  std::string what_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> labels_;
  Notes notes_;
};

class PictureFiles final : public ListedPictures {
 public:
  using ListedPictures::ListedPictures;
  std::string bytes(std::int64_t number) const override {
    const Entry& from = entry(number);
    const std::string& path = items_[from.item].name;
    if (from.frames == 0) return io::read_file(path, kMostPictureBytes);
    if (std::shared_ptr<const std::string> kept = kept_frame(number)) return *kept;
    // Opened for each: what a frame looks like depends on none that was decoded before.
    io::Video video(path);
    const double share = (from.frame + 0.5) / from.frames;
    std::string out = io::encode_ppm(video.frame_at(share * video.seconds()));
    keep_frame(number, out);
    return out;
  }
  // Of a video its size, beginning and end: to read all of it would take as long as to decode it.
  std::uint64_t checksum(std::int64_t number) const override {
    const Entry& from = entry(number);
    if (from.frames == 0) return ListedPictures::checksum(number);
    constexpr std::uint64_t kMost = std::uint64_t{1} << 16;
    const io::InputFile file(items_[from.item].name);
    std::string ends(static_cast<std::size_t>(std::min(file.size(), 2 * kMost)), '\0');
    const std::uint64_t half = ends.size() / 2;
    file.read_at(0, ends.data(), half);
    file.read_at(file.size() - (ends.size() - half), ends.data() + half, ends.size() - half);
    return tenon::checksum(ends) + file.size();
  }
  // Puts frames in the place of videos.
  void expand(const VideoFrames& frames) {
    std::vector<int> counts(numbers_.size());
    const auto is_video = [&](std::size_t k) {
      return io::looks_like_video(items_[numbers_[k].item].name);
    };
    parallel_for(std::ssize(numbers_), [&](std::int64_t k, int) {
      if (is_video(at(k))) counts[at(k)] = frames_of(items_[numbers_[at(k)].item].name, frames);
    });
    std::vector<Entry> all;
    for (std::size_t k = 0; k < numbers_.size(); ++k) {
      if (counts[k] == 0) all.push_back(numbers_[k]);
      for (int frame = 0; frame < counts[k]; ++frame)
        all.push_back({numbers_[k].item, frame, counts[k]});
    }
    numbers_ = std::move(all);
  }

 private:
  // Seconds of a video may have to be decoded for one of its frames, so those of the first epoch
  // stay while there is room.
  std::shared_ptr<const std::string> kept_frame(std::int64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(number);
    return found == kept_.end() ? nullptr : found->second;
  }
  void keep_frame(std::int64_t number, const std::string& frame) const {
    constexpr std::uint64_t kMostKept = std::uint64_t{1} << 30;
    const std::lock_guard lock(mutex_);
    if (kept_bytes_ + frame.size() > kMostKept) return;
    if (kept_.emplace(number, std::make_shared<const std::string>(frame)).second)
      kept_bytes_ += frame.size();
  }
  // What cannot be opened is one broken picture.
  static int frames_of(const std::string& path, const VideoFrames& frames) {
    if (frames.every <= 0) return frames.count;
    try {
      const double count = std::round(io::Video(path).seconds() / frames.every);
      return static_cast<int>(std::clamp(count, 1.0, double{kMostFrames}));
    } catch (const FormatError&) {
    } catch (const NotSupported&) {
    } catch (const IoError&) {
    }
    return 1;
  }

  mutable std::mutex mutex_;
  mutable std::unordered_map<std::int64_t, std::shared_ptr<const std::string>> kept_;
  mutable std::uint64_t kept_bytes_ = 0;  // as kept_ guarded by mutex_
};

class PictureShards final : public ListedPictures {
 public:
  struct Place {
    std::size_t file;
    std::uint64_t offset, size;
  };
  PictureShards(std::vector<Labelled> items, std::vector<Place> places,
                std::vector<std::unique_ptr<io::InputFile>> files, const std::string& what)
      : ListedPictures(std::move(items), what),
        places_(std::move(places)),
        files_(std::move(files)) {}
  std::string bytes(std::int64_t number) const override {
    const Place& from = places_[place(number)];
    std::string out(static_cast<std::size_t>(from.size), '\0');
    files_[from.file]->read_at(from.offset, out.data(), from.size);
    return out;
  }

 private:
  std::vector<Place> places_;
  std::vector<std::unique_ptr<io::InputFile>> files_;
};

// What lies in a folder, in the order of names; the system's own order is none.
std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  for (const std::string& name : names_in(folder.string(), error))
    if (!name.starts_with('.')) out.push_back(folder / name);
  if (error) throw IoError(cat(folder.string(), ": ", error.message()));
  std::sort(out.begin(), out.end());
  return out;
}

bool is_folder_there(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<std::string> sub_folders(const fs::path& folder) {
  std::vector<std::string> out;
  for (const fs::path& path : entries(folder))
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

std::string group_below(const fs::path& folder, const Labelled& item, const std::string& rule) {
  const fs::path below = fs::path(item.name).lexically_relative(folder / item.word);
  const bool nested = std::distance(below.begin(), below.end()) > 1;
  return group_by_rule(item.name, nested ? below.begin()->string() : "", rule);
}

void gather(const fs::path& folder, const std::string& word, bool videos, int depth,
            std::vector<Labelled>& items, LeftOut& left_out) {
  constexpr int kMostDepth = 8;
  for (const fs::path& path : entries(folder)) {
    if (is_folder_there(path)) {
      if (depth < kMostDepth)
        gather(path, word, videos, depth + 1, items, left_out);
      else
        left_out.too_deep.add(path.string());
    } else if (io::looks_like_video(path.string())) {
      if (videos) items.push_back({path.string(), word, true});
    } else if (looks_like_picture(path.string())) {
      items.push_back({path.string(), word, true});
    } else {
      left_out.not_images.add(path.string());
    }
  }
}

std::vector<Labelled> classes_in(const fs::path& folder, bool videos, const std::string& group_rule,
                                 Notes& notes) {
  std::vector<Labelled> items;
  LeftOut left_out;
  std::string beside;  // a picture that is in no class
  for (const fs::path& path : entries(folder)) {
    const std::string name = path.filename().string();
    if (is_folder_there(path)) {
      const std::size_t before = items.size();
      gather(path, name, videos, 0, items, left_out);
      if (items.size() == before) left_out.empty_classes.add(folder.string(), name);
    } else if (looks_like_picture(path.string())) {
      left_out.beside_classes.add(path.string());
      if (beside.empty()) beside = name;
    }
  }
  const Notes found = left_out.notes();
  notes.insert(notes.end(), found.begin(), found.end());
  if (items.empty() && !beside.empty())
    throw FormatError(cat(folder.string(), ": sub-folders are the classes, and ", beside,
                          " is in none: move it into one, as in ",
                          (folder / "cats" / beside).string()));
  for (Labelled& item : items)
    if (!group_rule.empty()) item.group = group_below(folder, item, group_rule);
  return items;
}

// The sub-folders' items, each of its part where the sub-folders are parts.
std::vector<Labelled> folder_items(const std::string& folder, const fs::path& root, bool videos,
                                   const PictureSplit& split, Notes& notes) {
  if (!is_folder_there(root)) throw IoError(cat(folder, ": there is no such folder"));
  PartFolders parts;
  if (split.part_folders) parts = part_folders(folder, sub_folders(root));
  if (!parts.any()) return classes_in(root, videos, split.split.group, notes);
  if (!parts.test.empty() && !split.test_path.empty())
    throw ValueError(cat(folder, ": holds ", parts.test,
                         ", and the test part is to lie elsewhere: leave out one of them"));
  if (!parts.beside.empty())
    notes.push_back({cat(parts.beside.size(), parts.beside.size() == 1 ? " folder" : " folders",
                         " beside ", parts.train, " left out: ", joined_names(parts.beside)),
                     std::ssize(parts.beside), folder});
  std::vector<Labelled> all;
  const auto add = [&](const std::string& name, std::optional<Split> part) {
    if (name.empty()) return;
    std::vector<Labelled> items = classes_in(root / name, videos, split.split.group, notes);
    if (items.empty()) throw FormatError(cat((root / name).string(), ": holds no pictures"));
    for (Labelled& item : items) {
      item.lies_in = part;
      all.push_back(std::move(item));
    }
  };
  add(parts.train, std::nullopt);
  add(parts.validation, Split::Validation);
  add(parts.test, Split::Test);
  return all;
}

bool takes_videos(const VideoFrames& frames) {
  if (frames.count < 0 || frames.count > kMostFrames || !(frames.every >= 0))
    throw ValueError(cat("of a video ", frames.count, " frames, or one for ", frames.every,
                         " seconds: must be 0 to ", kMostFrames, " frames, or seconds above 0"));
  return frames.count > 0 || frames.every > 0;
}

std::string trimmed_text(std::string text) {
  const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && space(text.back())) text.pop_back();
  while (!text.empty() && space(text.front())) text.erase(0, 1);
  return text;
}

// "a{00..12}b" as its texts, and a star in the last part of a path as what is there.
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
          cat("shards:", pattern, ": between braces stand two numbers, as {000..012}"));
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
  for (const fs::path& file : entries(path.has_parent_path() ? path.parent_path() : "."))
    if (const std::string name = file.filename().string();
        name.size() >= before.size() + after.size() && name.starts_with(before) &&
        name.ends_with(after))
      out.push_back(file.string());
  if (out.empty()) throw IoError(cat("shards:", pattern, ": there are no such files"));
  return out;
}

// One example of a shard: its picture and its class, which come in either order.
struct ShardParts {
  std::string name, word, folder;
  PictureShards::Place place{};
  int pictures = 0;
};

struct ShardIndex {
  LeftOut left_out;
  std::string group_rule;
  std::optional<Split> lies_in;  // of what is indexed now
  std::vector<Labelled> items;
  std::vector<PictureShards::Place> places;
};

void add_example(ShardParts& parts, const std::string& shard, const std::string& key,
                 ShardIndex& index) {
  if (parts.pictures > 1) index.left_out.several_images.add(parts.name);
  if (parts.pictures == 0 && !key.empty()) index.left_out.no_image.add(cat(shard, ":", key));
  if (parts.pictures > 0) {
    const std::string& word = parts.word.empty() ? parts.folder : parts.word;
    if (word.empty())
      throw FormatError(cat(parts.name, ": has no class: neither a .cls beside it nor a folder"));
    index.items.push_back({parts.name, word, parts.word.empty()});
    index.items.back().lies_in = index.lies_in;
    if (!index.group_rule.empty())
      index.items.back().group = group_by_rule(parts.name, parts.folder, index.group_rule);
    index.places.push_back(parts.place);
  }
  parts = {};
}

void index_shard(const io::InputFile& shard, std::size_t file, ShardIndex& index) {
  const std::string& path = shard.path();
  char start[2] = {};
  if (shard.size() >= sizeof start) shard.read_at(0, start, sizeof start);
  if (io::is_gzip({start, sizeof start}))
    throw NotSupported(cat(path,
                           ": a compressed shard cannot be read in any order: unpack it with "
                           "gunzip"));
  io::TarReader reader(shard);
  std::string key;
  ShardParts parts;
  while (reader.next()) {
    const std::string& member = reader.path();
    const std::size_t slash = member.rfind('/') + 1, dot = member.find('.', slash);
    if (const std::string now = member.substr(0, dot); now != key) {
      add_example(parts, path, key, index);
      key = now;
    }
    if (looks_like_picture(member)) {
      if (++parts.pictures > 1) continue;
      parts.name = cat(path, ":", member);
      parts.place = {file, reader.place(), reader.size()};
      if (reader.size() > kMostPictureBytes)
        throw FormatError(cat(parts.name, ": a picture of ", reader.size(), " bytes"));
      const std::string folder = slash > 0 ? member.substr(0, slash - 1) : "";
      parts.folder = folder.substr(folder.rfind('/') + 1);
      if (parts.folder == ".") parts.folder.clear();
    } else if (member.ends_with(".cls")) {
      parts.word = trimmed_text(reader.read(1 << 16));
    }
  }
  add_example(parts, path, key, index);
  for (std::int64_t k = 0; k < reader.passed_over(); ++k) index.left_out.no_files.add(path);
}

// The images of one part as a set; nullptr where there are none.
template <class Set>
std::shared_ptr<Set> part_of_set(std::shared_ptr<Set> set, Split part, const PictureSplit& split,
                                 bool files_may_repeat) {
  set->number_classes(split.class_names, split.order);
  return set->keep_part(part, split, files_may_repeat) ? std::move(set) : nullptr;
}

// Where a list's paths and classes stand; kNone: the class is the last field.
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
    throw FormatError(cat(lines.file(), ": of its ", lines.columns(), " columns none is called ",
                          out.path == kNone ? "filename, path or image" : "label or class",
                          ": rename the header's field"));
  return out;
}

// The path of a row; without a header it may hold the separator.
std::string_view listed_path(const LineReader& lines, const std::vector<std::string_view>& fields,
                             const ListColumns& columns) {
  if (fields.size() < 2)
    throw FormatError(cat(lines.where(), ": '", fields[0].substr(0, 60),
                          "' has no class; as in cats/1.jpg,cat. All lines have the same sign "
                          "between path and class (separator=SIGN says which)"));
  if (!lines.header().empty() || fields.size() == 2) return trimmed(fields[columns.path]);
  const std::string_view path = lines.between(fields[0], fields[fields.size() - 2]);
  if (path.empty())
    throw FormatError(
        cat(lines.where(), ": has ", fields.size(), " fields where a path and a class are needed"));
  return trimmed(path);
}

// As paths are joined, without taking them apart: a list may have millions.
std::string in_folder(const std::string& folder, const std::string& path) {
  if (folder.empty() || path.starts_with('/')) return path;
  return cat(folder, folder.ends_with('/') ? "" : "/", path);
}

std::vector<Labelled> list_items(const std::string& file, bool videos, const std::string& group,
                                 const RowFormat& rows, Notes& notes) {
  const std::string base = fs::path(file).parent_path().string();
  const bool by_rule = group == "prefix" || group == "folder";
  LineReader lines(file, LineForm::List, rows, by_rule ? "" : group);
  const ListColumns columns = list_columns(lines);
  std::vector<Labelled> items;
  Note left_out;
  std::vector<std::string_view> fields;
  while (lines.next(fields)) {
    const std::string path(listed_path(lines, fields, columns));
    const std::string word(
        lines.label(columns.word == kNone ? fields.back() : fields[columns.word]));
    if (path.empty() || word.empty())
      throw FormatError(cat(lines.where(), ": the path or the class is empty"));
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
                        " left out, for no frames of videos are asked for");
    notes.push_back(left_out);
  }
  return items;
}

// Adds what has files of its own for testing.
void add_test_items(std::vector<Labelled>& items, std::vector<Labelled> test,
                    const std::string& path) {
  if (test.empty()) throw FormatError(cat(path, ": holds no pictures"));
  for (Labelled& item : test) {
    item.lies_in = Split::Test;
    items.push_back(std::move(item));
  }
}

}  // namespace

Pictures::~Pictures() = default;
std::uint64_t Pictures::checksum(std::int64_t number) const {
  return tenon::checksum(bytes(number));
}

std::shared_ptr<Pictures> open_picture_folder(const std::string& folder, Split part,
                                              const PictureSplit& split,
                                              const VideoFrames& frames) {
  const bool videos = takes_videos(frames);
  check_group_rule(split.split.group, folder);
  Notes notes;
  std::vector<Labelled> items = folder_items(folder, io::system_path(folder), videos, split, notes);
  // Without a test folder beside train and val, nothing is tested unless a share is asked for.
  PictureSplit how = split;
  const auto lies_in = [&](Split own) {
    return std::any_of(items.begin(), items.end(),
                       [&](const Labelled& item) { return item.lies_in == own; });
  };
  if (lies_in(Split::Validation) && !lies_in(Split::Test) && !how.split.test &&
      how.split.folds == 0)
    how.split.test = 0;
  if (!split.test_path.empty()) {
    PictureSplit whole = split;
    whole.test_path.clear();
    std::vector<Labelled> test =
        folder_items(split.test_path, io::system_path(split.test_path), videos, whole, notes);
    if (std::any_of(test.begin(), test.end(), [](const Labelled& item) { return item.lies_in; }))
      throw FormatError(
          cat(split.test_path, ": holds parts of its own: name the folder of the classes to test"));
    add_test_items(items, std::move(test), split.test_path);
  }
  auto set = std::make_shared<PictureFiles>(std::move(items), folder);
  set->add(notes);
  set = part_of_set(std::move(set), part, how, false);
  if (set != nullptr) set->expand(frames);
  return set;
}

std::shared_ptr<Pictures> open_picture_list(const std::string& file, Split part,
                                            const PictureSplit& split, const VideoFrames& frames,
                                            const RowFormat& rows) {
  const bool videos = takes_videos(frames);
  std::vector<Labelled> items;
  Notes notes;
  try {
    items = list_items(file, videos, split.split.group, rows, notes);
    if (!split.test_path.empty())
      add_test_items(items, list_items(split.test_path, videos, split.split.group, rows, notes),
                     split.test_path);
  } catch (const ValueError& error) {
    throw ValueError(message_of(file, error.what()));
  }
  auto set = std::make_shared<PictureFiles>(std::move(items), file);
  set->add(notes);
  set = part_of_set(std::move(set), part, split, true);
  if (set != nullptr) set->expand(frames);
  return set;
}

std::shared_ptr<Pictures> open_video(const std::string& file, const VideoFrames& frames) {
  if (!takes_videos(frames)) throw ValueError(cat(file, ": no frames of it are asked for"));
  (void)io::Video(file);  // what is wrong with it is said now
  auto set = std::make_shared<PictureFiles>(std::vector<Labelled>{{file, "video"}}, file);
  set = part_of_set(std::move(set), Split::All, {}, false);
  set->expand(frames);
  return set;
}

std::shared_ptr<Pictures> open_picture_shards(const std::string& pattern, Split part,
                                              const PictureSplit& split) {
  check_group_rule(split.split.group, pattern);
  ShardIndex index;
  index.group_rule = split.split.group;
  std::vector<std::unique_ptr<io::InputFile>> files;
  const auto add = [&](const std::string& shards, std::optional<Split> lies_in) {
    index.lies_in = lies_in;
    const std::size_t before = index.items.size();
    for (const std::string& path : shards_of(shards)) {
      files.push_back(std::make_unique<io::InputFile>(path));
      index_shard(*files.back(), files.size() - 1, index);
    }
    if (index.items.size() == before) throw FormatError(cat(shards, ": holds no pictures"));
  };
  add(pattern, std::nullopt);
  if (!split.test_path.empty()) add(split.test_path, Split::Test);
  auto set = std::make_shared<PictureShards>(std::move(index.items), std::move(index.places),
                                             std::move(files), pattern);
  set->add(index.left_out.notes());
  return part_of_set(std::move(set), part, split, false);
}

}  // namespace tenon::data
