// Datasets: samples by index. The facts of a dataset, the interface that an author of one
// implements, and the capabilities that a dataset can have besides.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include <tenon/dtype.h>
#include <tenon/export.h>
#include <tenon/notes.h>
#include <tenon/shape.h>

/// Datasets, data loaders, transforms, text and tokenizers.
namespace tenon::data {

/// A part of a dataset.
enum class Split {
  Train,       ///< training learns from it
  Validation,  ///< training chooses the best epoch by it
  Test,        ///< measured once, at the end of training
  All          ///< every sample of the source, whatever part it belongs to
};

/// "training", "validation", "test" or "all": for messages.
TENON_API const char* name(Split split);

class ImageFiles;  // <tenon/images.h>

/// An input column of a table, with what was learned from the training part.
struct TableColumn {
  std::string name{};                 ///< name in the header; "" without a header
  double fill = 0;                    ///< replaces a missing number: the column's mean
  std::vector<std::string> values{};  ///< categories of a column of words; empty for numbers
  /// The component of a date that this column holds: "year", "month" (1 to 12), "weekday" (0 is
  /// Monday), "hour" or "days" (since 2000-01-01, with fractions). "" for numbers and words.
  std::string date{};
  std::string date_order{};  ///< order in such dates: "ymd", "dmy" or "mdy"
  std::int64_t number = -1;  ///< index in the table that was read, from 0; -1: unknown
  /// Number of inputs of the network: 1 for numbers; for words one for each category (one-hot).
  std::int64_t inputs() const {
    return values.empty() ? 1 : static_cast<std::int64_t>(values.size());
  }
};
/// How the rows of a table become inputs. A model stores it, so that other files are read the same
/// way.
struct TableColumns {
  std::vector<TableColumn> columns{};      ///< the input columns, in order
  std::string label{};                     ///< name of the label column; "" without a header
  std::int64_t label_column = -1;          ///< its index from 0; -1: rows have no labels
  std::vector<std::string> class_names{};  ///< names of the classes, in order
  std::string encoding{};   ///< RowFormat::encoding of the table, for files that are not UTF-8
  std::string decimal{};    ///< CsvOptions::decimal of the table
  std::string thousands{};  ///< CsvOptions::thousands of the table
  /// The label column, for messages: "column 'species' (number 4, counted from 0)"; "" if there is
  /// none.
  TENON_API std::string label_text() const;
};

/// The target that a loss ignores: of padding in a sequence, and of an image that cannot be decoded
/// (nn::CrossEntropyLoss::ignore_index; PyTorch's default too).
constexpr std::int64_t kIgnoredTarget = -100;

/// What the samples of a dataset have in common, and what is known of them. Only `input_shape` has
/// no useful default.
struct DatasetInfo {
  Shape input_shape{};  ///< shape of one sample's input; images are [channels, height, width]
  DType input_dtype = DType::Float32;      ///< data type of the inputs; images are uint8, 0 to 255
  Shape target_shape{};                    ///< shape of one sample's target; []: a scalar
  DType target_dtype = DType::Int64;       ///< data type of the targets; int64 for classes
  std::int64_t classes = 0;                ///< number of classes; 0 if targets are not classes
  std::vector<std::string> class_names{};  ///< names of the classes; empty: their numbers
  /// Number of views of each sample, for instance ten crops of an image; axis 0 of input_shape if
  /// above 1. An evaluation combines the predictions of the views.
  std::int64_t views = 1;
  /// For text: the unit of a token, "bytes", "chars", "words" or "pieces"; classes are then the
  /// tokens.
  std::string text_unit{};
  /// Mean number of elements of a sample's target that count; fewer than all if sequences are
  /// padded. Unset: all elements.
  std::optional<double> counted_targets{};
  std::shared_ptr<const TableColumns> table{};  ///< how rows of a table became inputs; null: others
  std::string description{};  ///< for people: "60,000 drawn digits (seed 0)"; "": the size
  bool in_memory = false;     ///< get() only copies memory: a loader needs no threads
};

/// Capability: where samples come from.
class TENON_API Provenance {
 public:
  virtual ~Provenance();
  /// Where a sample comes from, for messages: "photos/cat/1.jpg" or "rows.csv, line 17". Default:
  /// "sample 17", counted from 1.
  virtual std::string sample_name(std::int64_t index) const;
  /// What was skipped, renamed, converted or assumed when the dataset was opened and read so far.
  /// Default: nothing.
  virtual Notes notes() const;
  /// Names of the images that could not be decoded so far, in order. Default: none.
  virtual std::vector<std::string> broken() const;
  /// Whether broken() names any image: asked for each batch. Default: from broken(); override it
  /// where a copy of all names costs time.
  virtual bool any_broken() const;
};
/// Capability: training sees the samples with random augmentation.
class TENON_API AugmentedSamples {
 public:
  virtual ~AugmentedSamples();
  /// Writes samples as Dataset::get(), with the augmentation of an epoch of training. The random
  /// numbers depend on (seed, epoch, index of the sample) alone (SampleRandom). A loader that draws
  /// a sample several times in an epoch adds 2^32 to `epoch` for each time before.
  virtual void get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed,
                             std::int64_t epoch, void* inputs, void* targets) const = 0;
};
/// Capability: samples are made from image files.
class TENON_API ImageSamples {
 public:
  virtual ~ImageSamples();
  /// The files; sample k is made from file k.
  virtual std::shared_ptr<const ImageFiles> images() const = 0;
};
/// Capability: get() generates samples from their indices alone and keeps them, and uses all
/// threads if it is asked for all samples. A loader for a GPU with enough memory then asks for all
/// samples at once.
class TENON_API GeneratedSamples {
 public:
  virtual ~GeneratedSamples();
  /// Whether all samples have been generated, so that get() only copies memory.
  virtual bool all_generated() const = 0;
};

/// Collects the capability that Dataset::as() asks for.
class Capabilities {
 public:
  /// Whether capabilities of type T are asked for. A dataset that asks others before it offers one
  /// must ask only then: otherwise the questions multiply in datasets that are made of others.
  template <class T>
  bool wants() const {
    return wanted_ == typeid(T);
  }
  /// Offers a capability of type T, usually an interface that the dataset implements.
  template <class T>
  void add(const T* capability) {
    if (wants<T>()) found_ = capability;
  }

 private:
  friend class Dataset;
  explicit Capabilities(const std::type_info& wanted) : wanted_(wanted) {}
  const std::type_info& wanted_;
  const void* found_ = nullptr;
};

/// Samples by index (PyTorch: a map-style torch.utils.data.Dataset). A subclass gives the facts to
/// the constructor and overrides size() and get():
///
/// @code
/// class Squares : public data::Dataset {
///  public:
///   Squares() : Dataset({.input_shape = {1}, .target_shape = {1}, .target_dtype = DType::Float32})
///   {}
///   std::int64_t size() const override { return 100; }
///   void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
///     auto *x = static_cast<float*>(inputs), *y = static_cast<float*>(targets);
///     for (const std::int64_t k : indices) *x++ = k, *y++ = k * k;
///   }
/// };
/// @endcode
///
/// What else a dataset can do are capabilities: small interfaces that the subclass also implements
/// (DatasetWith). from_function() makes a dataset of a function, without a class. Several threads
/// may call the methods at the same time.
class TENON_API Dataset {
 public:
  /// A dataset with these facts.
  explicit Dataset(DatasetInfo info);
  virtual ~Dataset();
  Dataset(const Dataset&) = default;             ///< copies the facts
  Dataset& operator=(const Dataset&) = default;  ///< copies the facts
  Dataset(Dataset&&) = default;                  ///< moves the facts
  Dataset& operator=(Dataset&&) = default;       ///< moves the facts

  /// Number of samples.
  virtual std::int64_t size() const = 0;
  /// Writes samples to memory, one after another.
  ///
  /// @param indices  the samples to write, each in [0, size())
  /// @param inputs   room for indices.size() inputs, contiguous
  /// @param targets  room for indices.size() targets, contiguous
  virtual void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const = 0;

  /// The facts.
  const DatasetInfo& info() const noexcept { return info_; }
  /// A capability, by its type; null if the dataset lacks it. Valid as long as the dataset.
  template <class T>
  const T* as() const {
    Capabilities asked(typeid(T));
    capabilities(asked);
    return static_cast<const T*>(asked.found_);
  }

  Shape input_shape() const { return info_.input_shape; }             ///< DatasetInfo::input_shape
  DType input_dtype() const noexcept { return info_.input_dtype; }    ///< DatasetInfo::input_dtype
  Shape target_shape() const { return info_.target_shape; }           ///< DatasetInfo::target_shape
  DType target_dtype() const noexcept { return info_.target_dtype; }  ///< DatasetInfo::target_dtype
  std::int64_t classes() const noexcept { return info_.classes; }     ///< DatasetInfo::classes
  std::int64_t views() const noexcept { return info_.views; }         ///< DatasetInfo::views
  /// Names of the classes: DatasetInfo::class_names, or the numbers as text.
  std::vector<std::string> class_names() const;
  std::string text_unit() const { return info_.text_unit; }  ///< DatasetInfo::text_unit
  /// DatasetInfo::counted_targets, or the number of a target's elements.
  double counted_targets() const;
  /// DatasetInfo::table
  std::shared_ptr<const TableColumns> table() const { return info_.table; }
  /// DatasetInfo::description, or "17 samples".
  std::string describe() const;
  /// Whether samples only have to be copied: they are in memory or generated, and not augmented.
  bool in_memory() const;
  /// Whether the dataset has GeneratedSamples, and training does not augment them.
  bool made_on_demand() const;
  /// Provenance::sample_name(), or "sample 17", counted from 1.
  std::string sample_name(std::int64_t index) const;
  /// Provenance::notes(), or nothing.
  Notes notes() const;
  /// Provenance::broken(), or nothing.
  std::vector<std::string> broken() const;
  /// Provenance::any_broken(), or false.
  bool any_broken() const;
  /// ImageSamples::images(), or null.
  std::shared_ptr<const ImageFiles> images() const;
  /// Whether the dataset has AugmentedSamples.
  bool is_augmented() const;
  /// AugmentedSamples::get_augmented(), or get().
  void get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch,
                     void* inputs, void* targets) const;

 protected:
  /// Offers what the dataset can do besides: `offered.add<Provenance>(this)`. Default: nothing.
  virtual void capabilities(Capabilities& offered) const;
  /// Replaces the facts, for a constructor that computes them.
  void set_info(DatasetInfo info);

 private:
  DatasetInfo info_;
};

/// A dataset that implements these capabilities: `class Rows : public DatasetWith<Provenance>`.
template <class... Interfaces>
class DatasetWith : public Dataset, public Interfaces... {
 public:
  using Dataset::Dataset;
  // Of a dataset these are called; a capability's functions of these names are overridden.
  using Dataset::broken;
  using Dataset::get_augmented;
  using Dataset::images;
  using Dataset::notes;
  using Dataset::sample_name;

 protected:
  /// Offers the capabilities of the list.
  void capabilities(Capabilities& offered) const override { (offered.add<Interfaces>(this), ...); }
};

}  // namespace tenon::data
