// MNIST's four files and other datasets in that format: images and labels, for training and test.
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/joined_dataset.h"
#include "data/samples/published_sets.h"
#include "data/samples/split.h"
#include "data/samples/tensor_dataset.h"
#include "io/file.h"
#include "io/tensors/idx.h"

namespace tenon::data {

std::string find_idx(const std::string& folder, const std::string& stem, const std::string& kind) {
  for (const char* joint : {"-", "."})
    for (const char* ending : {"", ".gz"}) {
      std::string path = cat(folder, "/", stem, joint, kind, ending);
      if (io::is_there(path)) return path;
      io::require_visible(path);
    }
  return "";
}

namespace {

std::string idx_file(const std::string& folder, const std::string& stem, const char* kind) {
  const std::string ending = std::string(kind) == "images" ? "idx3-ubyte" : "idx1-ubyte";
  std::string path = find_idx(folder, cat(stem, "-", kind), ending);
  if (path.empty())
    throw make_error<IoError>(FileName{folder}, ": contains no ", stem, "-", kind, "-", ending,
                              " (with or without .gz): check the folder");
  return path;
}

// Labels mapped to class numbers by value: EMNIST's letters, 1 to 26, give 26 classes.
struct IdxLabels {
  Tensor targets;
  std::vector<std::int64_t> values;
};

IdxLabels load_labels(const std::string& folder, const std::string& stem,
                      std::vector<std::int64_t> values) {
  const std::string file = idx_file(folder, stem, "labels");
  const Tensor given = io::load_idx(file);
  if (given.rank() != 1)
    throw make_error<FormatError>(FileName{file}, ": contains ", given.shape(),
                                  ", not one label for each image");
  Tensor targets = valued_targets(given, values, file, "image");
  return {std::move(targets), std::move(values)};
}

TensorDatasetParts load_idx(const std::string& folder, const std::string& stem,
                            const IdxLabels& labels) {
  const std::string images = idx_file(folder, stem, "images");
  TensorDatasetParts parts;
  io::IdxOptions options;
  options.channel_axis = true;
  parts.input = io::parse_idx(io::read_file(images), images, options);
  if (parts.input.rank() != 4 || parts.input.dtype() != DType::UInt8)
    throw make_error<FormatError>(FileName{images}, ": contains ", parts.input.dtype(), " ",
                                  parts.input.shape(), ", not uint8 images [N, height, width]");
  parts.target = labels.targets;
  name_by_values(parts, labels.values, idx_file(folder, stem, "labels"));
  parts.description = cat(parts.input.shape()[0], " images of ", images);
  parts.place = [images](std::int64_t number) { return cat(images, ", image ", number + 1); };
  make_tensor_dataset(parts);  // checks the tensors before the samples are split
  return parts;
}

}  // namespace

PartReader read_idx(const std::string& folder, const SplitOptions& split) {
  // The classes are those of the training part, even if the test part lacks some.
  const auto labels = once([folder] {
    idx_file(folder, "train", "images");  // throws first if the images are missing
    return load_labels(folder, "train", {});
  });
  const auto train = once([=] { return load_idx(folder, "train", labels()); });
  const auto test = once([=] {
    const IdxLabels& known = labels();
    TensorDatasetParts out = load_idx(folder, "t10k", load_labels(folder, "t10k", known.values));
    TensorDatasetParts trained;
    trained.target = known.targets, trained.classes = out.classes;
    trained.class_names = out.class_names;
    add_lacking_classes(out, trained, folder);
    return out;
  });
  return [=](Split part) -> std::shared_ptr<Dataset> {
    if (part == Split::Train || part == Split::Validation)
      return part_or_null(part_of(train(), part, without_test(split, folder)));
    if (part == Split::All)
      return joined_parts({make_tensor_dataset(train()), make_tensor_dataset(test())});
    return make_tensor_dataset(test());
  };
}

std::shared_ptr<Dataset> open_idx(const std::string& folder, Split part,
                                  const SplitOptions& split) {
  return read_idx(folder, split)(part);
}

}  // namespace tenon::data
