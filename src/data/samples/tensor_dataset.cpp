// Datasets in memory. get() is a few memcpy calls.
#include "data/samples/tensor_dataset.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include <tenon/error.h>

#include "base/str.h"
#include "base/system/option_ranges.h"
#include "data/samples/split.h"

namespace tenon::data {
namespace {

constexpr std::int64_t kMostLabels = 1'000'000;

Shape without_first(const Shape& shape) { return Shape(shape.begin() + 1, shape.rank() - 1); }

std::size_t row_bytes(const Tensor& t) {
  return static_cast<std::size_t>(without_first(t.shape()).numel()) * item_size(t.dtype());
}

DatasetInfo info_of(const TensorDatasetParts& parts) {
  return {.input_shape = without_first(parts.input.shape()),
          .input_dtype = parts.input.dtype(),
          .target_shape = without_first(parts.target.shape()),
          .target_dtype = parts.target.dtype(),
          .classes = parts.classes,
          .class_names = parts.class_names,
          .views = parts.views,
          .table = parts.table,
          .description = parts.description,
          .in_memory = true};
}

class TensorDataset final : public DatasetWith<Provenance> {
 public:
  explicit TensorDataset(TensorDatasetParts parts)
      : DatasetWith(info_of(parts)),
        parts_(std::move(parts)),
        input_(static_cast<const char*>(parts_.input.data())),
        target_(static_cast<const char*>(parts_.target.data())),
        input_bytes_(row_bytes(parts_.input)),
        target_bytes_(row_bytes(parts_.target)) {}

  std::int64_t size() const override { return parts_.size(); }
  Notes notes() const override { return parts_.notes; }
  std::string sample_name(std::int64_t index) const override {
    const std::int64_t number =
        parts_.numbers.empty() ? index : parts_.numbers[static_cast<std::size_t>(index)];
    return parts_.place ? parts_.place(number) : Provenance::sample_name(number);
  }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    char* input = static_cast<char*>(inputs);
    char* target = static_cast<char*>(targets);
    for (std::int64_t index : indices) {
      const auto sample = static_cast<std::size_t>(index);
      const auto at = parts_.rows ? static_cast<std::size_t>((*parts_.rows)[sample]) : sample;
      // Samples without elements have a null address, which memcpy does not accept.
      if (input_bytes_ > 0) std::memcpy(input, input_ + at * input_bytes_, input_bytes_);
      if (target_bytes_ > 0) std::memcpy(target, target_ + at * target_bytes_, target_bytes_);
      input += input_bytes_;
      target += target_bytes_;
    }
  }

 private:
  TensorDatasetParts parts_;
  const char* input_;
  const char* target_;
  std::size_t input_bytes_, target_bytes_;
};

std::vector<std::int64_t> to_int64(const Tensor& labels, const std::string& what,
                                   const char* kind) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(labels.numel()));
  switch (labels.dtype()) {
    case DType::UInt8:
      std::copy_n(labels.data_as<std::uint8_t>(), out.size(), out.begin());
      break;
    case DType::Int8:
      std::copy_n(labels.data_as<std::int8_t>(), out.size(), out.begin());
      break;
    case DType::Int32:
      std::copy_n(labels.data_as<std::int32_t>(), out.size(), out.begin());
      break;
    case DType::Int64:
      std::copy_n(labels.data_as<std::int64_t>(), out.size(), out.begin());
      break;
    default:
      throw DTypeError(cat(what, ": ", kind, " are ", labels.dtype(),
                           "; they must be uint8, int8, int32 or int64"));
  }
  return out;
}

TensorDatasetParts tensors_as_parts(const Tensor& input, const Tensor& target,
                                    std::int64_t classes) {
  if (!input.defined() || !target.defined())
    throw ValueError(cat("from_tensors: the ", input.defined() ? "target" : "input",
                         " has no value: it was never assigned"));
  require_range("from_tensors", "classes", classes, from_to(0, kMostLabels));
  TensorDatasetParts parts{input, target, 0, {}, ""};
  if (input.rank() < 1)
    throw ShapeError(cat("from_tensors: input ", input.shape(), " has no axis of samples"));
  parts.description = cat(input.shape()[0], " samples in memory");
  const bool labels = target.rank() == 1 && is_integral(target.dtype());
  if (labels) {
    parts.target = class_targets(target, classes, "from_tensors");
    parts.classes = classes;
  } else if (classes > 0) {
    throw ValueError(cat("from_tensors: 'classes' is ", classes, ", but targets ", target.shape(),
                         " of type ", target.dtype(),
                         " are not class indices: give integers of shape [N], or leave 'classes' "
                         "at 0"));
  }
  return parts;
}

}  // namespace

Tensor class_targets(const Tensor& labels, std::int64_t& classes, const std::string& what) {
  const std::vector<std::int64_t> values = to_int64(labels, what, "class labels");
  std::int64_t most = -1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == kIgnoredTarget) continue;
    if (values[i] < 0)
      throw ValueError(cat(what, ": label ", values[i], " of sample ", i + 1, " is negative; ",
                           kIgnoredTarget,
                           " is the only negative label, of samples that do not count"));
    if (classes > 0 && values[i] >= classes)
      throw ValueError(cat(what, ": label ", values[i], " of sample ", i + 1,
                           " is not below the number of classes, ", classes));
    most = std::max(most, values[i]);
  }
  if (most >= kMostLabels)
    throw ValueError(
        cat(what, ": label ", most, " is beyond ", kMostLabels, " classes: are these labels?"));
  if (classes == 0) classes = most + 1;
  return Tensor::from(values, labels.shape());
}

Tensor valued_targets(const Tensor& labels, std::vector<std::int64_t>& values,
                      const std::string& what, const char* unit) {
  std::vector<std::int64_t> found = to_int64(labels, what, "class labels");
  const bool known = !values.empty();
  if (!known) {
    values = found;
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::erase(values, kIgnoredTarget);
    if (std::ssize(values) > kMostLabels)
      throw ValueError(cat(what, ": has ", values.size(), " different labels: are these classes?"));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == kIgnoredTarget) continue;
    const auto at = std::lower_bound(values.begin(), values.end(), found[i]);
    if (at == values.end() || *at != found[i])
      throw ValueError(cat(what, ", ", unit, " ", i + 1, ": label ", found[i],
                           " does not occur in the training part"));
    found[i] = at - values.begin();
  }
  return Tensor::from(found, labels.shape());
}

void name_by_values(TensorDatasetParts& set, const std::vector<std::int64_t>& values,
                    const std::string& what) {
  set.classes = std::ssize(values);
  if (values.empty() || (values.front() == 0 && values.back() == set.classes - 1)) return;
  std::string shown;
  constexpr std::size_t kMostShown = 10;
  for (std::size_t k = 0; k < values.size(); ++k) {
    set.class_names.push_back(std::to_string(values[k]));
    if (k < kMostShown) shown += cat(k == 0 ? "" : ", ", values[k]);
  }
  if (values.size() > kMostShown) shown += ", …";
  set.notes.push_back({cat("the labels are the names of ", set.classes,
                           set.classes == 1 ? " class: " : " classes: ", shown),
                       set.classes, what, true});
}

std::shared_ptr<Dataset> make_tensor_dataset(TensorDatasetParts parts) {
  const Shape& input = parts.input.shape();
  const Shape& target = parts.target.shape();
  if (input.rank() < 1 || target.rank() < 1 || input[0] != target[0])
    throw ShapeError(cat(parts.description, ": inputs ", input, " and targets ", target,
                         " must agree in their first size, the number of samples"));
  return std::make_shared<TensorDataset>(std::move(parts));
}

TensorDatasetParts part_of(const TensorDatasetParts& set, Split part, const SplitOptions& split,
                           std::vector<std::int64_t> groups) {
  Samples samples{.name = set.description, .count = set.input.shape()[0]};
  samples.class_names = set.class_names;
  if (set.classes > 0)
    samples.marks.classes = to_int64(set.target, set.description, "class labels");
  if (!groups.empty() && std::ssize(groups) != samples.count)
    throw ShapeError(cat(samples.name, ": there are ", groups.size(), " numbers of groups for ",
                         samples.count, " samples"));
  samples.marks.groups = std::move(groups);
  Chosen chosen = choose_samples(split, part, samples);
  return rows_of(set, std::move(chosen.samples), chosen.notes);
}

TensorDatasetParts rows_of(const TensorDatasetParts& set, std::vector<std::int64_t> rows,
                           const Notes& notes) {
  TensorDatasetParts out = set;
  out.numbers.clear();
  for (const std::int64_t row : rows)
    out.numbers.push_back(set.numbers.empty() ? row : set.numbers[static_cast<std::size_t>(row)]);
  out.rows = std::move(rows);
  out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  return out;
}

std::shared_ptr<Dataset> part_or_null(TensorDatasetParts parts) {
  return parts.size() == 0 ? nullptr : make_tensor_dataset(std::move(parts));
}

void add_lacking_classes(TensorDatasetParts& test, const TensorDatasetParts& train,
                         const std::string& name) {
  if (test.classes == 0 || train.classes == 0) return;
  std::vector<std::int64_t> classes = to_int64(test.target, name, "class labels");
  std::vector<std::int64_t> own(classes.size());
  std::iota(own.begin(), own.end(), std::int64_t{0});
  const std::vector<std::int64_t> others = to_int64(train.target, name, "class labels");
  classes.insert(classes.end(), others.begin(), others.end());
  const Notes notes = notes_of_classes(name, Split::Test, classes, own, train.class_names);
  test.notes.insert(test.notes.end(), notes.begin(), notes.end());
}

std::vector<std::int64_t> whole_numbers(const Tensor& numbers, const std::string& what) {
  if (numbers.rank() != 1)
    throw ShapeError(cat(what, ": numbers of groups are ", numbers.shape(), ", must be [N]"));
  return to_int64(numbers, what, "numbers of groups");
}

std::shared_ptr<Dataset> from_tensors(const Tensor& input, const Tensor& target,
                                      std::int64_t classes) {
  return make_tensor_dataset(tensors_as_parts(input, target, classes));
}

std::shared_ptr<Dataset> from_tensors(const Tensor& input, const Tensor& target, Split part,
                                      const SplitOptions& split, std::int64_t classes,
                                      const Tensor& group) {
  const TensorDatasetParts all = tensors_as_parts(input, target, classes);
  make_tensor_dataset(all);  // checks the tensors before the samples are split
  SplitOptions options = split;
  std::vector<std::int64_t> groups;
  if (group.defined()) {
    groups = whole_numbers(group, "from_tensors");
    options.group = "group";
  }
  return part_or_null(part_of(all, part, options, std::move(groups)));
}

}  // namespace tenon::data
