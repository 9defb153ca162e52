// CIFAR-10 and CIFAR-100 in their binary formats: records of one label (two for CIFAR-100: coarse
// and fine) and 3 x 32 x 32 bytes, red, green, blue.
#include <algorithm>
#include <cstring>
#include <set>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/joined_dataset.h"
#include "data/samples/published_sets.h"
#include "data/samples/split.h"
#include "data/samples/tensor_dataset.h"
#include "io/file.h"
#include "io/text/encoding.h"

namespace tenon::data {
namespace {

constexpr std::size_t kPixels = 3 * 32 * 32;

struct Format {
  std::int64_t classes;
  std::size_t labels;  // bytes before the pixels; the last is the class
  std::vector<std::string> train, test;
  const char* names;  // the file with the names of the classes
};

Format format_of(const std::string& folder) {
  if (io::file_exists(folder + "/train.bin"))
    return {100, 2, {"train.bin"}, {"test.bin"}, "fine_label_names.txt"};
  return {10,
          1,
          {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
           "data_batch_5.bin"},
          {"test_batch.bin"},
          "batches.meta.txt"};
}

// Class names, one a line. If the file does not exist or has a different number of names, the
// classes are named by their numbers; the latter adds a note.
std::vector<std::string> read_names(const std::string& path, std::int64_t classes, Notes& notes) {
  if (!io::file_exists(path)) return {};
  constexpr std::int64_t longest = 1 << 20;
  const std::string text = io::read_file(path, longest);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
    at = end + 1;
  }
  const auto refuse = [&](const std::string& what) {
    notes.push_back({cat(what, ", so class numbers are used as names"), 1, path});
    names.clear();
  };
  const auto bad = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return io::not_utf8(name) != std::string::npos;
  });
  if (bad != names.end())
    refuse("a class name is not UTF-8");
  else if (std::ssize(names) != classes)
    refuse(cat("contains ", names.size(), " names of ", classes, " classes"));
  else if (std::set<std::string>(names.begin(), names.end()).size() != names.size())
    refuse("contains a name twice");
  return names;
}

TensorDatasetParts load_cifar(const std::string& folder, bool test) {
  const Format format = format_of(folder);
  const std::size_t record = format.labels + kPixels;
  const std::vector<std::string>& files = test ? format.test : format.train;
  std::string bytes;
  std::vector<std::pair<std::int64_t, std::string>> begins;  // first record of each file
  for (const std::string& name : files) {
    const std::string path = cat(folder, "/", name);
    const std::string part = io::read_file(path);
    if (part.empty() || part.size() % record != 0)
      throw make_error<FormatError>(FileName{path}, ": has ", part.size(),
                                    " bytes, which is not a multiple of the record size ", record,
                                    ": it is not a binary CIFAR-", format.classes,
                                    " file, or is truncated");
    begins.emplace_back(static_cast<std::int64_t>(bytes.size() / record), path);
    bytes += part;
  }
  const auto count = static_cast<std::int64_t>(bytes.size() / record);
  std::vector<std::uint8_t> pixels(at(count) * kPixels), labels(at(count));
  for (std::size_t i = 0; i < at(count); ++i) {
    const char* entry = bytes.data() + i * record;
    labels[i] = static_cast<std::uint8_t>(entry[format.labels - 1]);
    std::memcpy(&pixels[i * kPixels], entry + format.labels, kPixels);
  }
  TensorDatasetParts parts;
  parts.input = Tensor::from_data(pixels.data(), {count, 3, 32, 32}, DType::UInt8);
  parts.classes = format.classes;
  parts.target =
      class_targets(Tensor::from_data(labels.data(), {count}, DType::UInt8), parts.classes, folder);
  parts.class_names = read_names(cat(folder, "/", format.names), format.classes, parts.notes);
  parts.description = cat(count, " images of CIFAR-", format.classes, " in ", folder);
  parts.place = [begins](std::int64_t number) {
    const auto behind =
        std::upper_bound(begins.begin(), begins.end(), number,
                         [](std::int64_t wanted, const auto& file) { return wanted < file.first; });
    return cat((behind - 1)->second, ", image ", number - (behind - 1)->first + 1);
  };
  return parts;
}

}  // namespace

PartReader read_cifar(const std::string& folder, const SplitOptions& split) {
  const auto train = once([folder] { return load_cifar(folder, false); });
  const auto test = once([folder] { return load_cifar(folder, true); });
  return [=](Split part) -> std::shared_ptr<Dataset> {
    if (part == Split::Train || part == Split::Validation)
      return part_or_null(part_of(train(), part, without_test(split, folder)));
    if (part == Split::All)
      return joined_parts({make_tensor_dataset(train()), make_tensor_dataset(test())});
    return make_tensor_dataset(test());
  };
}

std::shared_ptr<Dataset> open_cifar(const std::string& folder, Split part,
                                    const SplitOptions& split) {
  return read_cifar(folder, split)(part);
}

}  // namespace tenon::data
