// Datasets made of functions and of other datasets: from_function(), concat(), subset(),
// split_part(), map().
//
// Composition keeps what is known of a sample. Its name, notes, broken images, class names and
// augmentation are those of the dataset that it comes from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <tenon/data.h>
#include <tenon/sample_random.h>

namespace tenon::data {

/// One sample in memory, for functions that write or change it.
class TENON_API Sample {
 public:
  /// The sample `index` of a dataset with these facts, at these addresses.
  Sample(std::int64_t index, const DatasetInfo& info, void* input, void* target)
      : index_(index), info_(&info), input_(input), target_(target) {}
  /// Its index in the dataset.
  std::int64_t index() const noexcept { return index_; }
  /// Shapes and data types.
  const DatasetInfo& info() const noexcept { return *info_; }
  /// The elements of the input in the order of DatasetInfo::input_shape. Throws DTypeError if T is
  /// not the type of the inputs.
  template <class T>
  std::span<T> input() {
    check("input", dtype_of<T>, info_->input_dtype);
    return {static_cast<T*>(input_), static_cast<std::size_t>(info_->input_shape.numel())};
  }
  /// The same, for reading.
  template <class T>
  std::span<const T> input() const {
    return const_cast<Sample*>(this)->input<T>();
  }
  /// The elements of the target in the order of DatasetInfo::target_shape. Throws DTypeError if T
  /// is not the type of the targets.
  template <class T>
  std::span<T> target() {
    check("target", dtype_of<T>, info_->target_dtype);
    return {static_cast<T*>(target_), static_cast<std::size_t>(info_->target_shape.numel())};
  }
  /// The same, for reading.
  template <class T>
  std::span<const T> target() const {
    return const_cast<Sample*>(this)->target<T>();
  }

 private:
  static void check(const char* what, DType asked, DType stored);
  std::int64_t index_;
  const DatasetInfo* info_;
  void *input_, *target_;
};

/// Writes or changes a sample. Several threads call it at the same time.
using SampleFunction = std::function<void(Sample& sample)>;
/// The same with the random numbers of the sample in the epoch.
using RandomSampleFunction = std::function<void(Sample& sample, SampleRandom& random)>;
/// Writes a sample from one of another dataset.
using ConvertFunction = std::function<void(const Sample& from, Sample& to)>;

/// A dataset of a function that writes sample `sample.index()`, for example
///
/// @code
/// auto set = data::from_function(9, {.input_shape = {1}, .classes = 2}, [](data::Sample& sample) {
///   sample.input<float>()[0] = static_cast<float>(sample.index());
///   sample.target<std::int64_t>()[0] = sample.index() % 2;
/// });
/// @endcode
///
/// Throws ValueError for a negative size or an empty function.
TENON_API std::shared_ptr<Dataset> from_function(std::int64_t size, DatasetInfo info,
                                                 SampleFunction write);

/// The samples of several datasets, one dataset after another (PyTorch: ConcatDataset). Random
/// augmentation of the second and later datasets has another seed, so that samples of equal index
/// differ. The facts are those of the first dataset, the class names those of the dataset with the
/// most classes.
///
/// Throws ValueError without datasets, for a null one, and for classes of different names at one
/// number; ShapeError if shapes or data types of the samples differ.
TENON_API std::shared_ptr<Dataset> concat(std::vector<std::shared_ptr<const Dataset>> datasets);

/// Some samples of a dataset, in this order, also several times (PyTorch: Subset). A sample has the
/// same random augmentation as in the whole dataset. Throws ValueError for a null dataset or an
/// index outside [0, dataset->size()).
TENON_API std::shared_ptr<Dataset> subset(std::shared_ptr<const Dataset> dataset,
                                          std::vector<std::int64_t> indices);

/// One part of a dataset, divided as Tenon's sources are: shuffled by seed, stratified if targets
/// are classes (PyTorch: random_split). Null if there is no such part.
///
/// @param dataset  the dataset
/// @param part     the part
/// @param split    how to divide it; `split.group` must be ""
/// @param groups   a number for each sample; samples of equal numbers stay in one part. Empty: none
///
/// Throws ValueError for a null dataset or options that contradict each other, ShapeError for
/// another number of groups than samples.
TENON_API std::shared_ptr<Dataset> split_part(std::shared_ptr<const Dataset> dataset, Split part,
                                              const SplitOptions& split,
                                              std::vector<std::int64_t> groups = {});

/// A dataset whose samples a function changes in place, after the dataset's own augmentation
/// (torchvision: `transform` and `target_transform` of a dataset). Sample::index() is the index in
/// `dataset`.
///
/// The result has no ImageSamples, because its samples cannot be made from the files alone. Throws
/// ValueError for a null dataset or an empty function.
TENON_API std::shared_ptr<Dataset> map(std::shared_ptr<const Dataset> dataset,
                                       SampleFunction change);
/// The same with random numbers, as for noise. Training sees new ones in each epoch. get() takes
/// those of epoch 0 with seed 0, so evaluation always sees the same samples.
TENON_API std::shared_ptr<Dataset> map(std::shared_ptr<const Dataset> dataset,
                                       RandomSampleFunction change);
/// A dataset whose samples a function makes from those of `dataset`, with other shapes or types.
/// `info` is taken as given; an empty description is that of `dataset`.
TENON_API std::shared_ptr<Dataset> map(std::shared_ptr<const Dataset> dataset, DatasetInfo info,
                                       ConvertFunction convert);

}  // namespace tenon::data
