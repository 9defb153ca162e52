// Image files of any size: assigns the items of a folder, list or shards to parts.
//
// The items are gathered once; parts are lists of item numbers.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include <tenon/error.h>
#include <tenon/images.h>

#include "base/digest.h"
#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "data/images/image_items.h"
#include "data/images/image_parts.h"
#include "data/samples/class_order.h"
#include "data/samples/part_folders.h"
#include "data/samples/split.h"
#include "io/file.h"
#include "io/images/image.h"
#include "io/text/encoding.h"
#include "io/video/video.h"

namespace tenon::data {
namespace {

constexpr std::size_t kMostClasses = 1'000'000;
constexpr int kMostFrames = 100'000;  // of a video

// The names of the classes in the training part, sorted.
std::vector<std::string> names_of(const std::vector<ImageItem>& items, ClassOrder order) {
  std::set<std::string> words;
  bool by_folder = false;
  for (const ImageItem& item : items) {
    if (item.fixed_part.value_or(Split::Train) != Split::Train) continue;
    words.insert(item.word);
    by_folder = by_folder || item.by_folder;
  }
  return ordered_classes({words.begin(), words.end()}, order, by_folder);
}

// The images of a source, of all parts.
struct ImageList {
  std::vector<ImageItem> items{};
  std::string what{};
  Notes notes{};
  ImageSplit split{};
  bool files_may_repeat = false;  // lines with the same file stay in one part
  std::vector<std::string> class_names{};
  std::vector<std::int64_t> labels{};
  std::shared_ptr<const Division> division{};
};

void number_classes(ImageList& list) {
  std::vector<std::string>& names = list.class_names;
  names = list.split.class_names.empty() ? names_of(list.items, list.split.order)
                                         : list.split.class_names;
  for (const std::string& name : names)
    if (io::not_utf8(name) != std::string::npos)
      throw make_error<FormatError>(FileName{list.what}, ": a class name is not UTF-8: '",
                                    name.substr(0, 60), "': rename the class");
  if (names.size() > kMostClasses)
    throw make_error<FormatError>(FileName{list.what}, ": has ", names.size(), " classes");
  std::map<std::string, std::int64_t> order;
  for (std::size_t k = 0; k < names.size(); ++k)
    order.emplace(names[k], static_cast<std::int64_t>(k));
  list.labels.reserve(list.items.size());
  for (const ImageItem& item : list.items) {
    const auto found = order.find(item.word);
    if (found == order.end())
      throw make_error<FormatError>(FileName{item.name}, ": its class '", item.word,
                                    "' does not occur in the training part");
    list.labels.push_back(found->second);
  }
}

std::shared_ptr<const Division> division_of(const ImageList& list) {
  const ImageSplit& split = list.split;
  Samples samples{.name = list.what, .count = std::ssize(list.items)};
  samples.class_names = list.class_names;
  samples.marks.classes = list.labels;
  std::vector<std::string_view> names, groups;
  for (const ImageItem& item : list.items) {
    samples.fixed_parts.push_back(item.fixed_part);
    names.emplace_back(item.name);
    if (!split.split.group.empty()) groups.emplace_back(item.group);
  }
  samples.marks.groups = numbers_of_words(groups);
  if (list.files_may_repeat && groups.empty()) {
    samples.marks.units = numbers_of_words(names);
    // If no file repeats, each sample is its own unit.
    if (samples.marks.units.back() + 1 == samples.count) samples.marks.units.clear();
  }
  const SplitOptions options =
      split.test_path.empty() ? split.split : without_test(split.split, list.what);
  return std::make_shared<const Division>(options, std::move(samples));
}

std::shared_ptr<const ImageList> finished(ImageList list) {
  if (list.items.empty())
    throw make_error<FormatError>(FileName{list.what}, ": contains no images");
  number_classes(list);
  list.division = division_of(list);
  return std::make_shared<const ImageList>(std::move(list));
}

// One part of a list of images. A subclass reads their bytes.
class ListedImageFiles : public ImageFiles {
 public:
  ListedImageFiles(std::shared_ptr<const ImageList> list, Split part)
      : list_(std::move(list)), part_(list_->split.whole ? Split::All : part) {
    const Chosen chosen = list_->division->choose(part_);
    numbers_.reserve(chosen.samples.size());
    for (const std::int64_t i : chosen.samples) numbers_.push_back({at(i)});
    notes_ = list_->notes;
    notes_.insert(notes_.end(), chosen.notes.begin(), chosen.notes.end());
  }
  std::int64_t size() const override { return std::ssize(numbers_); }
  std::int64_t label(std::int64_t number) const override { return list_->labels[place(number)]; }
  std::string name(std::int64_t number) const override {
    const Entry& entry = numbers_[at(number)];
    const std::string& path = item(number).name;
    return entry.frames == 0 ? path : cat(path, ", frame ", entry.frame + 1, " of ", entry.frames);
  }
  std::vector<std::string> class_names() const override { return list_->class_names; }
  std::string describe() const override {
    return cat(size(), " images of ", of_files(list_->what, list_->split.test_path, part_));
  }
  Notes notes() const override { return notes_; }

 protected:
  // An image of the list, or a frame of a video.
  struct Entry {
    std::size_t item;
    int frame = 0, frames = 0;
  };
  const Entry& entry(std::int64_t number) const { return numbers_[at(number)]; }
  std::size_t place(std::int64_t number) const { return numbers_[at(number)].item; }
  const ImageItem& item(std::int64_t number) const { return list_->items[place(number)]; }
  std::vector<Entry> numbers_;

 private:
  std::shared_ptr<const ImageList> list_;
  Split part_;
  Notes notes_;
};

class ImagePaths final : public ListedImageFiles {
 public:
  // Frames replace videos.
  ImagePaths(std::shared_ptr<const ImageList> list, Split part, const VideoFrames& frames)
      : ListedImageFiles(std::move(list), part) {
    expand(frames);
  }
  std::string bytes(std::int64_t number) const override {
    const Entry& from = entry(number);
    const std::string& path = item(number).name;
    if (from.frames == 0) return io::read_file(path, kMostImageBytes);
    if (std::shared_ptr<const std::string> kept = kept_frame(number)) return *kept;
    // The video is opened again for each frame, so that a frame does not depend on frames decoded
    // before it.
    io::Video video(path);
    const double share = (from.frame + 0.5) / from.frames;
    std::string out = io::encode_ppm(video.frame_at(share * video.seconds()));
    keep_frame(number, out);
    return out;
  }
  // The checksum of a video covers its size, beginning and end: reading all of it would take as
  // long as decoding it.
  std::uint64_t checksum(std::int64_t number) const override {
    if (entry(number).frames == 0) return ListedImageFiles::checksum(number);
    constexpr std::uint64_t kMost = std::uint64_t{1} << 16;
    const io::InputFile file(item(number).name);
    std::string ends(static_cast<std::size_t>(std::min(file.size(), 2 * kMost)), '\0');
    const std::uint64_t half = ends.size() / 2;
    file.read_at(0, ends.data(), half);
    file.read_at(file.size() - (ends.size() - half), ends.data() + half, ends.size() - half);
    return tenon::checksum(ends) + file.size();
  }
  std::uint64_t stored_size(std::int64_t number) const override {
    return io::InputFile(item(number).name).size();
  }

 private:
  void expand(const VideoFrames& frames) {
    std::vector<int> counts(numbers_.size());
    parallel_for(std::ssize(numbers_), [&](std::int64_t k, int) {
      const std::string& path = item(k).name;
      if (io::looks_like_video(path)) counts[at(k)] = frames_of(path, frames);
    });
    std::vector<Entry> all;
    for (std::size_t k = 0; k < numbers_.size(); ++k) {
      if (counts[k] == 0) all.push_back(numbers_[k]);
      for (int frame = 0; frame < counts[k]; ++frame)
        all.push_back({numbers_[k].item, frame, counts[k]});
    }
    numbers_ = std::move(all);
  }
  // Decoding one frame may need seconds of video before it, so decoded frames are kept while there
  // is room.
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
  // A video that cannot be opened counts as one broken image.
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
  mutable std::uint64_t kept_bytes_ = 0;  // guarded by mutex_, like kept_
};

class ImageShards final : public ListedImageFiles {
 public:
  ImageShards(std::shared_ptr<const ImageList> list, Split part,
              std::shared_ptr<const ShardIndex> index)
      : ListedImageFiles(std::move(list), part), index_(std::move(index)) {}
  std::string bytes(std::int64_t number) const override {
    const ShardPlace& from = index_->places[place(number)];
    std::string out(static_cast<std::size_t>(from.size), '\0');
    index_->files[from.file]->read_at(from.offset, out.data(), from.size);
    return out;
  }
  std::uint64_t stored_size(std::int64_t number) const override {
    return index_->places[place(number)].size;
  }

 private:
  std::shared_ptr<const ShardIndex> index_;
};

std::shared_ptr<ImageFiles> images_or_null(std::shared_ptr<ImageFiles> images) {
  return images->size() == 0 ? nullptr : std::move(images);
}

bool takes_videos(const VideoFrames& frames) {
  if (frames.count < 0 || frames.count > kMostFrames || !(frames.every >= 0))
    throw ValueError(cat("of a video ", frames.count, " frames, or one for ", frames.every,
                         " seconds: must be 0 to ", kMostFrames, " frames, or seconds above 0"));
  return frames.count > 0 || frames.every > 0;
}

// Adds the images of a separate test set.
void add_test_items(ImageList& list, std::vector<ImageItem> test) {
  if (test.empty())
    throw make_error<FormatError>(FileName{list.split.test_path}, ": contains no images");
  for (ImageItem& item : test) {
    item.fixed_part = Split::Test;
    list.items.push_back(std::move(item));
  }
}

std::shared_ptr<const ImageList> gather_folder(const std::string& folder, const ImageSplit& split,
                                               bool videos) {
  ImageList list{.what = folder, .split = split};
  list.items = folder_items(folder, videos, split, list.notes);
  // With folders train and val but no test folder, there is no test part unless a share is
  // requested.
  const auto has_part = [&](Split own) {
    return std::any_of(list.items.begin(), list.items.end(),
                       [&](const ImageItem& item) { return item.fixed_part == own; });
  };
  SplitOptions& how = list.split.split;
  if (has_part(Split::Validation) && !has_part(Split::Test) && !how.test && how.folds == 0)
    how.test = 0;
  if (!split.test_path.empty()) {
    ImageSplit whole = split;
    whole.test_path.clear();
    std::vector<ImageItem> test = folder_items(split.test_path, videos, whole, list.notes);
    if (std::any_of(test.begin(), test.end(),
                    [](const ImageItem& item) { return item.fixed_part; }))
      throw make_error<FormatError>(
          FileName{split.test_path},
          ": contains part folders: name the folder of the classes to test");
    add_test_items(list, std::move(test));
  }
  return finished(std::move(list));
}

std::shared_ptr<const ImageList> gather_list(const std::string& file, const ImageSplit& split,
                                             bool videos, const RowFormat& rows) {
  ImageList list{.what = file, .split = split, .files_may_repeat = true};
  try {
    list.items = list_items(file, videos, split.split.group, rows, list.notes);
    if (!split.test_path.empty())
      add_test_items(list,
                     list_items(split.test_path, videos, split.split.group, rows, list.notes));
  } catch (const ValueError& error) {
    throw in_file(file, error);
  }
  return finished(std::move(list));
}

}  // namespace

ImageFiles::~ImageFiles() = default;

std::uint64_t ImageFiles::checksum(std::int64_t number) const {
  return tenon::checksum(bytes(number));
}

std::uint64_t ImageFiles::stored_size(std::int64_t number) const { return bytes(number).size(); }

ImagePartReader read_image_folder(const std::string& folder, const ImageSplit& split,
                                  const VideoFrames& frames) {
  const bool videos = takes_videos(frames);
  check_group_rule(split.split.group, folder);
  const auto list = once([=] { return gather_folder(folder, split, videos); });
  return [=](Split part) {
    return images_or_null(std::make_shared<ImagePaths>(list(), part, frames));
  };
}

ImagePartReader read_image_list(const std::string& file, const ImageSplit& split,
                                const VideoFrames& frames, const RowFormat& rows) {
  const bool videos = takes_videos(frames);
  const auto list = once([=] { return gather_list(file, split, videos, rows); });
  return [=](Split part) {
    return images_or_null(std::make_shared<ImagePaths>(list(), part, frames));
  };
}

ImagePartReader read_image_shards(const std::string& pattern, const ImageSplit& split) {
  check_group_rule(split.split.group, pattern);
  struct Shards {
    std::shared_ptr<const ImageList> list;
    std::shared_ptr<const ShardIndex> index;
  };
  const auto shards = once([=] {
    auto index = std::make_shared<ShardIndex>();
    index->group_rule = split.split.group;
    index_shards(pattern, std::nullopt, *index);
    if (!split.test_path.empty()) index_shards(split.test_path, Split::Test, *index);
    ImageList list{.items = std::move(index->items),
                   .what = pattern,
                   .notes = index->left_out.notes(),
                   .split = split};
    return Shards{finished(std::move(list)), std::move(index)};
  });
  return [=](Split part) {
    return images_or_null(std::make_shared<ImageShards>(shards().list, part, shards().index));
  };
}

std::shared_ptr<ImageFiles> open_image_folder(const std::string& folder, Split part,
                                              const ImageSplit& split, const VideoFrames& frames) {
  return read_image_folder(folder, split, frames)(part);
}

std::shared_ptr<ImageFiles> open_image_list(const std::string& file, Split part,
                                            const ImageSplit& split, const VideoFrames& frames,
                                            const RowFormat& rows) {
  return read_image_list(file, split, frames, rows)(part);
}

std::shared_ptr<ImageFiles> open_video(const std::string& file, const VideoFrames& frames) {
  if (!takes_videos(frames))
    throw make_error<ValueError>(FileName{file}, ": no frames of it are asked for");
  (void)io::Video(file);  // throws now if the file cannot be opened
  return std::make_shared<ImagePaths>(finished({.items = {{file, "video"}}, .what = file}),
                                      Split::All, frames);
}

std::shared_ptr<ImageFiles> open_image_shards(const std::string& pattern, Split part,
                                              const ImageSplit& split) {
  return read_image_shards(pattern, split)(part);
}

}  // namespace tenon::data
