// Datasets that call a user's function, and the public compositions.
#include <tenon/compose.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <tenon/error.h>

#include "base/index.h"
#include "base/per_thread.h"
#include "base/str.h"
#include "data/samples/derived_dataset.h"
#include "data/samples/joined_dataset.h"
#include "data/samples/sample_pieces.h"
#include "data/samples/sampling.h"
#include "data/samples/split.h"

namespace tenon::data {
namespace {

class FunctionDataset final : public Dataset {
 public:
  FunctionDataset(std::int64_t size, DatasetInfo info, SampleFunction write)
      : Dataset(std::move(info)), size_(size), write_(std::move(write)) {}
  std::int64_t size() const override { return size_; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto *input = static_cast<std::byte*>(inputs), *target = static_cast<std::byte*>(targets);
    for (const std::int64_t index : indices) {
      Sample sample(index, info(), input, target);
      write_(sample);
      input += input_bytes(info());
      target += target_bytes(info());
    }
  }

 private:
  std::int64_t size_;
  SampleFunction write_;
};

// Some samples, and notes on how they were chosen.
class PartOfDataset final : public DerivedDataset {
 public:
  PartOfDataset(DatasetInfo info, std::shared_ptr<const Dataset> set,
                std::vector<std::int64_t> numbers, Notes notes)
      : DerivedDataset(std::move(info), {std::move(set)},
                       SampleMap::of_indices(std::move(numbers))),
        notes_(std::move(notes)) {}
  Notes notes() const override {
    Notes all = DerivedDataset::notes();
    all.insert(all.end(), notes_.begin(), notes_.end());
    return all;
  }

 private:
  Notes notes_;
};

DatasetInfo changed_info(const Dataset& set) {
  DatasetInfo info = set.info();
  info.in_memory = false;  // get() also calls the function
  return info;
}

// Samples that a function changes in place.
class ChangedDataset final : public DerivedDataset {
 public:
  ChangedDataset(const std::shared_ptr<const Dataset>& set, RandomSampleFunction change,
                 bool random)
      : DerivedDataset(changed_info(*set), {set}), change_(std::move(change)), random_(random) {}

 private:
  bool changes_samples() const override { return true; }
  bool augments() const override { return random_ || DerivedDataset::augments(); }
  void write(std::span<const std::int64_t> indices, const Version& version, void* inputs,
             void* targets) const override {
    read(indices, version, inputs, targets);
    auto *input = static_cast<std::byte*>(inputs), *target = static_cast<std::byte*>(targets);
    for (const std::int64_t index : indices) {
      Sample sample(index, info(), input, target);
      SampleRandom random(version.seed, version.epoch, index, kStream);
      change_(sample, random);
      input += input_bytes(info());
      target += target_bytes(info());
    }
  }

  static constexpr std::uint64_t kStream = 0x6d61;  // a stream separate from the source's
  RandomSampleFunction change_;
  bool random_;
};

DatasetInfo converted_info(const Dataset& set, DatasetInfo info) {
  if (info.description.empty()) info.description = set.describe();
  return info;
}

// Samples that a function computes from samples of another shape or type.
class ConvertedDataset final : public DerivedDataset {
 public:
  ConvertedDataset(const std::shared_ptr<const Dataset>& set, DatasetInfo info,
                   ConvertFunction convert)
      : DerivedDataset(converted_info(*set, std::move(info)), {set}),
        convert_(std::move(convert)) {}

 private:
  bool changes_samples() const override { return true; }
  void write(std::span<const std::int64_t> indices, const Version& version, void* inputs,
             void* targets) const override {
    const DatasetInfo& before = source().info();
    static const PerThread<std::vector<std::byte>> room_of_thread;
    // Moved out for the call, because the source may be a dataset of this class that uses the same
    // buffer.
    std::vector<std::byte> room = std::move(room_of_thread.get());
    room.resize(indices.size() * (input_bytes(before) + target_bytes(before)));
    std::byte* from_input = room.data();
    std::byte* from_target = from_input + indices.size() * input_bytes(before);
    read(indices, version, from_input, from_target);
    auto *input = static_cast<std::byte*>(inputs), *target = static_cast<std::byte*>(targets);
    for (const std::int64_t index : indices) {
      const Sample from(index, before, from_input, from_target);
      Sample to(index, info(), input, target);
      convert_(from, to);
      from_input += input_bytes(before), from_target += target_bytes(before);
      input += input_bytes(info()), target += target_bytes(info());
    }
    room_of_thread.get() = std::move(room);
  }

  ConvertFunction convert_;
};

void require_set(const char* function, const std::shared_ptr<const Dataset>& set) {
  if (set == nullptr) throw ValueError(cat(function, ": the dataset is null"));
}

template <class Function>
void require_function(const char* where, const Function& function) {
  if (!function) throw ValueError(cat(where, ": the function is empty"));
}

// A class number must mean the same class in all datasets.
void require_same_classes(const std::vector<std::shared_ptr<const Dataset>>& sets) {
  const Dataset* most = sets.front().get();
  for (const auto& set : sets)
    if (set->classes() > most->classes()) most = set.get();
  const std::vector<std::string> names = most->class_names();
  for (const auto& set : sets) {
    const std::vector<std::string> own = set->class_names();
    for (std::size_t k = 0; k < std::min(own.size(), names.size()); ++k)
      if (own[k] != names[k])
        throw ValueError(cat("concat: class ", k, " is '", own[k], "' in ", set->describe(),
                             " and '", names[k], "' in ", most->describe(),
                             ": open both with the same class names"));
  }
}

}  // namespace

void Sample::check(const char* what, DType asked, DType stored) {
  if (asked != stored)
    throw DTypeError(cat("Sample: the ", what, " is ", stored, ", not ", asked, ": ask for ", what,
                         "<T>() with the C++ type of ", stored));
}

std::shared_ptr<Dataset> from_function(std::int64_t size, DatasetInfo info, SampleFunction write) {
  if (size < 0) throw ValueError(cat("from_function: the size is ", size, ", must be at least 0"));
  require_function("from_function", write);
  return std::make_shared<FunctionDataset>(size, std::move(info), std::move(write));
}

std::shared_ptr<Dataset> concat(std::vector<std::shared_ptr<const Dataset>> datasets) {
  if (datasets.empty()) throw ValueError("concat: there are no datasets; give at least one");
  for (const auto& set : datasets) require_set("concat", set);
  require_same_classes(datasets);
  return joined_dataset(std::move(datasets));
}

std::shared_ptr<Dataset> subset(std::shared_ptr<const Dataset> dataset,
                                std::vector<std::int64_t> indices) {
  require_set("subset", dataset);
  const std::int64_t size = dataset->size();
  for (const std::int64_t index : indices)
    if (index < 0 || index >= size)
      throw ValueError(cat("subset: there is no index ", index, " in ", dataset->describe(),
                           "; indices are from 0 to ", size - 1));
  DatasetInfo info = dataset->info();
  info.description = cat(indices.size(), " of (", dataset->describe(), ")");
  return std::make_shared<DerivedDataset>(std::move(info), std::vector{std::move(dataset)},
                                          SampleMap::of_indices(std::move(indices)));
}

std::shared_ptr<Dataset> split_part(std::shared_ptr<const Dataset> dataset, Split part,
                                    const SplitOptions& split, std::vector<std::int64_t> groups) {
  require_set("split_part", dataset);
  const std::string name = dataset->describe();
  if (!split.group.empty())
    throw ValueError(cat("split_part: ", name, ": group is '", split.group,
                         "', but a dataset has no columns: give the numbers of the groups"));
  Samples samples{.name = name, .count = dataset->size()};
  samples.class_names = dataset->info().class_names;
  if (dataset->classes() > 0 && dataset->target_shape().rank() == 0)
    samples.marks.classes = labels_of(*dataset, "split_part");
  SplitOptions options = split;
  if (!groups.empty()) {
    if (std::ssize(groups) != samples.count)
      throw ShapeError(cat("split_part: ", name, ": there are ", groups.size(),
                           " numbers of groups for ", samples.count, " samples"));
    samples.marks.groups = std::move(groups);
    options.group = "group";
  }
  Chosen chosen = choose_samples(options, part, samples);
  if (chosen.samples.empty()) return nullptr;
  DatasetInfo info = dataset->info();
  info.description = cat(chosen.samples.size(), " of (", name, ")");
  return std::make_shared<PartOfDataset>(std::move(info), std::move(dataset),
                                         std::move(chosen.samples), std::move(chosen.notes));
}

std::shared_ptr<Dataset> map(std::shared_ptr<const Dataset> dataset, SampleFunction change) {
  require_set("map", dataset);
  require_function("map", change);
  return std::make_shared<ChangedDataset>(
      dataset,
      [change = std::move(change)](Sample& sample, SampleRandom& /*random*/) { change(sample); },
      false);
}

std::shared_ptr<Dataset> map(std::shared_ptr<const Dataset> dataset, RandomSampleFunction change) {
  require_set("map", dataset);
  require_function("map", change);
  return std::make_shared<ChangedDataset>(dataset, std::move(change), true);
}

std::shared_ptr<Dataset> map(std::shared_ptr<const Dataset> dataset, DatasetInfo info,
                             ConvertFunction convert) {
  require_set("map", dataset);
  require_function("map", convert);
  return std::make_shared<ConvertedDataset>(dataset, std::move(info), std::move(convert));
}

}  // namespace tenon::data
