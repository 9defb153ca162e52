// Datasets (generated digits, MNIST, IDX, CSV, NumPy, tensors) and the data loader that makes
// batches of them.
//
// The order of samples depends on (seed, epoch) alone. Neither the number of worker threads nor a
// stop and resume changes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include <tenon/notes.h>
#include <tenon/tensor.h>

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

class Tokenizer;
class Vocabulary;

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

/// How the samples of a source are divided into training, validation and test part. The same seed
/// gives the same parts on every machine. A source with test files of its own keeps them as the
/// test part; the validation part then comes from the training files.
struct SplitOptions {
  /// Share of all samples in the test part, 0 to 1; 0: no test part. Unset: 0.1 if the source has
  /// no test files of its own.
  std::optional<double> test{};
  /// Share of the remaining samples in the validation part, 0 to 1; 0: no validation part. Unset:
  /// 0.1.
  std::optional<double> validation{};
  std::uint64_t seed = 0;  ///< seed of the samples' order
  /// Keep the proportions of the classes in every part (stratified split). Unset: if targets are
  /// classes and neither `group` nor `chronological` is set.
  std::optional<bool> stratify{};
  /// Samples of one group stay in one part. What names the group depends on the source:
  /// - table: a column, which then is not an input
  /// - lines: a column, by its index from 0 or its name in the header
  /// - images: "prefix" (the file name up to its last '_', '-', ' ' or '.') or "folder" (the file's
  ///   folder); of a list also a column
  /// - npy: the file with the groups' numbers
  ///
  /// "": no groups but those that always stay together: frames of a video, lines about one file,
  /// windows of a text, and questions about one text.
  std::string group{};
  /// No shuffling: the training samples come first, then validation, then test.
  bool chronological = false;
  int fold = 0;   ///< cross-validation: the fold that is the test part, from 1; 0: no folds
  int folds = 0;  ///< cross-validation: the number of folds; 0: no folds
};

/// A dataset of tensors (PyTorch: TensorDataset). A sample whose target is kIgnoredTarget does not
/// count with a loss that ignores that value (nn::CrossEntropyLoss::ignore_index).
///
/// @param input    [N, …]
/// @param target   [N, …]; of rank 1 and type int64, int32 or uint8: class indices
/// @param classes  number of classes; 0: one more than the largest target. Throws ValueError if it
///                 is given and targets are not class indices.
TENON_API std::shared_ptr<Dataset> from_tensors(const Tensor& input, const Tensor& target,
                                                std::int64_t classes = 0);
/// One part of such a dataset; null if there is no such part. `group` is a tensor of integers [N]:
/// samples with equal numbers stay in one part. It replaces split.group.
TENON_API std::shared_ptr<Dataset> from_tensors(const Tensor& input, const Tensor& target,
                                                Split part, const SplitOptions& split,
                                                std::int64_t classes = 0, const Tensor& group = {});
/// `count` generated digits: grey images [1, 28, 28] that look like handwriting. The same seed
/// gives the same images on every machine. Generated at first use.
TENON_API std::shared_ptr<Dataset> drawn_digits(std::uint64_t seed, std::int64_t count);
/// `count` generated scenes: colour images [3, side, side] of one of ten objects (ball, ring, box,
/// triangle, star, cross, moon, heart, fish, house) among clutter. The class is the object's
/// outline; colours, textures, light, position and angle are random. The same seed gives the same
/// images on every machine. Generated at first use. Throws ValueError for a side outside 16 to
/// 1024.
TENON_API std::shared_ptr<Dataset> drawn_scenes(std::uint64_t seed, std::int64_t count,
                                                std::int64_t side = 32);
/// `count` vectors [size] of random numbers with mean 0 and variance 1, each with a random class.
/// For benchmarks, as that of FCN-S: a network can only memorize the samples. The same seed gives
/// the same numbers on every machine. Throws ValueError for numbers outside 1 to 100,000,000.
TENON_API std::shared_ptr<Dataset> random_vectors(std::uint64_t seed, std::int64_t count,
                                                  std::int64_t size, std::int64_t classes);
/// CIFAR-10 or CIFAR-100 from its binary files (data_batch_1.bin …, or train.bin and test.bin) in a
/// folder. Validation samples come from the training files. Throws IoError, FormatError, or
/// ValueError for options that ask for another test part.
TENON_API std::shared_ptr<Dataset> open_cifar(const std::string& folder, Split part,
                                              const SplitOptions& split = {});
/// MNIST from its four files (train-images-idx3-ubyte …, with or without .gz) in a folder. Parts
/// and errors as open_cifar().
TENON_API std::shared_ptr<Dataset> open_idx(const std::string& folder, Split part,
                                            const SplitOptions& split = {});

/// Format of the rows of a text file: of tables, lists of images, lines with a class, and pairs of
/// texts. Lines end in LF, CRLF or CR. A byte order mark is not part of the text.
struct RowFormat {
  /// "utf-8", "latin1", "cp1252", "utf-16" (without a byte order mark the zero bytes tell the
  /// order), "utf-16-le" or "utf-16-be". "": UTF-8, or UTF-16 if the byte order mark says so. Bytes
  /// that do not fit are a FormatError with the line.
  std::string encoding{};
  /// Field separator: one character, or "tab", "space" (runs of spaces and tabs), "comma",
  /// "semicolon", "pipe". "": detected from the first rows, or from a first line "sep=;".
  std::string separator{};
  /// Comment character: rows that begin with it are skipped. "none": no row is skipped. "": rows
  /// that begin with '#' are skipped if they have another number of fields than the first row.
  std::string comment{};
  std::optional<bool> header{};  ///< whether the first row holds names; unset: detected from it
  /// Whether double quotes around a field are removed. Unset: yes, except for texts between tabs.
  std::optional<bool> quotes{};
};

/// Options of open_csv().
struct CsvOptions {
  bool labelled = true;   ///< false: every column is an input; targets are zeros and not classes
  int label_column = -1;  ///< label column from 0, negative from the end; used if label_name is ""
  std::string label_name{};  ///< name of the label column in the header
  /// True: labels are classes, named by their texts, in numerical order if all are numbers, else in
  /// alphabetical order. False: targets are float32 [1], as a layer with one output gives.
  bool classes = true;
  /// Names of the classes in order, if they are known: a test set takes those of the training set.
  std::vector<std::string> class_names{};
  /// Rows are images of this shape, integers from 0 to 255. []: columns are numbers.
  Shape image_shape{};
  RowFormat rows{};         ///< encoding, separator, comments, header and quotes
  std::string decimal{};    ///< decimal separator, "." or ","; "": that of `columns`, else "."
  std::string thousands{};  ///< separator of groups of three digits: "", ".", ",", "'" or " "
  /// Columns whose numbers are categories too, by name, or by index from 0 if there is no header.
  /// If the label column is one of them, every non-empty text is a class, "NA" and 2.5 too, in
  /// alphabetical order.
  std::vector<std::string> categories{};
  std::vector<std::string> left_out{};  ///< columns that are not inputs, by name or index
  /// Columns of dates, or of dates with times, by name or index. Each becomes five inputs
  /// (TableColumn::date).
  std::vector<std::string> dates{};
  /// Whether 3/4/2020 is in April. Unset: detected from the column's dates.
  std::optional<bool> day_first{};
  /// The most memory for inputs, in bytes; 0: 1 GiB, or 16 times the file's size if that is more.
  std::uint64_t memory = 0;
  /// Keep rows without a label (empty, "NA" and similar), and rows with a label that is not in
  /// `class_names` if at least half of the labels are. Their target is kIgnoredTarget, or NaN if
  /// targets are quantities. For predictions; cannot be combined with a part. False: rows without a
  /// label are left out, with a note, and an unknown label is a FormatError.
  bool keep_unlabelled = false;
  bool strict = false;   ///< what would be a note (Dataset::notes()) is a FormatError
  SplitOptions split{};  ///< division into parts, for open_csv() with a part
  /// How to read the table, from a model or another part. Columns are found by name, in any order
  /// and among others; without a header by position. Unset: determined from the rows that are not
  /// in the test part.
  std::shared_ptr<const TableColumns> columns{};
};
/// A table with one label column. Other columns are numbers, or categories if fewer than half of
/// their fields are numbers (TableColumn). Categories that mostly contain digits are refused unless
/// `categories` or another option says how to read them.
///
/// A first row of names is the header. By default the label is the column named label, class,
/// target or y. If several columns have one name, the later ones are renamed "name.1", "name.2", as
/// pandas does. A name that differs in case or spaces only is found if just one column matches.
///
/// Throws IoError, FormatError with line and column, or ValueError for a missing column.
TENON_API std::shared_ptr<Dataset> open_csv(const std::string& file,
                                            const CsvOptions& options = {});
/// One part of the rows, divided by options.split.
TENON_API std::shared_ptr<Dataset> open_csv(const std::string& file, Split part,
                                            const CsvOptions& options);

/// A kind of source that open_dataset() knows.
struct SourceKind {
  const char* name;        ///< what a source begins with: "csv"
  const char* usage;       ///< the form of a source: "csv:FILE"
  bool generated = false;  ///< samples are generated from a seed: there is no path
  bool published = false;  ///< a published dataset with test files of its own
  bool needs_path = true;  ///< a path must follow the name
};
/// All kinds, in the order of the documentation.
TENON_API std::span<const SourceKind> source_kinds();
/// The kind of a source, "csv" of "csv:rows.csv,split=0.2"; null for an unknown one.
TENON_API const SourceKind* source_kind(std::string_view spec);
/// Opens a dataset by its source, as --data of the command takes it.
///
/// - drawn_digits(): `digits[:TRAIN[,TEST[,SEED]]]`
/// - drawn_scenes(): `scenes[:TRAIN[,TEST[,SEED]]][,size=SIDE]`
/// - random_vectors(): `random[:TRAIN[,TEST[,SEED]]][,size=N][,classes=N]`
/// - open_idx() and open_cifar(): `mnist[:FOLDER]`, `idx:FOLDER`, `cifar10[:FOLDER]`,
///   `cifar100[:FOLDER]`
/// - NumPy arrays: `npy:INPUTS,TARGETS`
/// - open_csv(): `csv:FILE` with the options `label=NAME`, `column=NUMBER`, `drop=NAME`,
///   `category=NAME`, `date=NAME`, `dayfirst=yes|no`, `decimal=CHAR`, `thousands=CHAR`,
///   `memory=SIZE` and `shape=CxHxW`
/// - open_text(): `text:FILE[,by=chars|words|bytes|pieces][,length=N][,words=N]`
/// - open_pairs(): `pairs:FILE[,pieces=N][,length=N]`
/// - number_pairs(): `numbers[:TRAIN[,TEST[,SEED]]][,below=N][,to=french|german][,pieces=N]`
/// - images from files (images.h): `folder:DIR`, `list:FILE` or `shards:PATTERN` with the options
///   `size=SIDE`, `grey`, `background=COLOUR`, `broken=error`, `order=natural|plain`, `frames=N`
///   and `every=SECONDS`; of folders also `parts=no`
///
/// Options follow the source after commas. Tables, lists, lines and pairs also take the options of
/// RowFormat: `encoding=NAME`, `separator=CHAR`, `comment=CHAR|none`, `header=yes|no` and
/// `quotes=yes|no`.
///
/// The options for the division into parts (SplitOptions) come last: `validation=SHARE`,
/// `split=SHARE`, `test=PATH`, `fold=I/K`, `seed=N`, `stratify=yes|no`, `group=…` and
/// `chronological`. Generated sources take `validation=SHARE` only. If a path contains commas, the
/// longest path that exists is taken.
///
/// Split::Train and Split::All exist in every source. **Returns null** for Split::Validation and
/// Split::Test if the source has no such part: with validation=0 or split=0, with fewer samples or
/// groups than parts, or in a folder with train/ and val/ but without test/. This is no error; the
/// caller decides what to do. All functions that open one part of a source do the same.
///
/// Throws ValueError for an unknown source, else what the source's own function throws.
///
/// @param spec     the source
/// @param split    the part
/// @param classes  false: targets are quantities. The label column of a table is read as numbers
///                 and a .npy file's targets are unchanged; a source of classes is a ValueError.
TENON_API std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split,
                                                bool classes = true);
/// The same; a table is read by `columns` unless it is null.
TENON_API std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split, bool classes,
                                                std::shared_ptr<const TableColumns> columns);

/// How open_dataset() and Source read a source, mostly to match a trained model.
struct SourceOptions {
  bool classes = true;                            ///< false: targets are quantities
  std::shared_ptr<const TableColumns> columns{};  ///< how to read a table; null: from the table
  /// Tokenizer for text; null: the text has a vocabulary of its own.
  std::shared_ptr<const Tokenizer> tokenizer{};
  bool hide_words = false;  ///< of text with a tokenizer: TokenTextOptions::hide_words
  bool strict = false;      ///< what would be a note (Dataset::notes()) on opening is a FormatError
  /// Vocabulary of a text without a tokenizer, or of pairs, from a trained model; null: that of the
  /// source.
  std::shared_ptr<const Vocabulary> vocabulary{};
  /// Of image files: names of the classes in order, from a trained model; empty: those of the
  /// training part.
  std::vector<std::string> class_names{};
};
/// The same with more options. With a tokenizer it also takes "lines:FILE[,length=N][,test=FILE]"
/// (open_class_lines()), and "text:FILE" is open_token_text().
TENON_API std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split,
                                                const SourceOptions& options);

/// A source whose files are read once, when a part is first needed. Its parts share what was read.
/// Several threads may use a source at the same time.
class TENON_API Source {
 public:
  /// Throws ValueError for an unknown source, as open_dataset(); opens no file yet.
  explicit Source(const std::string& spec, const SourceOptions& options = {});
  /// Opens a part, as open_dataset().
  std::shared_ptr<Dataset> open(Split part) const;

 private:
  std::function<std::shared_ptr<Dataset>(Split)> open_;
  bool strict_;
};

/// The folder for datasets that the command downloads: $TENON_DATA_DIR, or tenon/ in the user's
/// cache folder.
TENON_API std::string default_data_dir();

/// Random augmentation of training images by a loader. The random numbers depend on (seed, epoch,
/// sample) alone, so they are the same for any number of workers and after a resume. Transforms
/// (<tenon/images.h>) can do more.
struct Augmentation {
  /// Random crop: pads the image with this many black pixels on each side and takes a random part
  /// of the original size (torchvision: RandomCrop with `padding`).
  std::int64_t crop = 0;
  bool flip = false;        ///< mirror left to right with probability 0.5 (RandomHorizontalFlip)
  std::int64_t cutout = 0;  ///< side of a square at a random position that is set to the mean
  /// Whether any augmentation is on.
  bool any() const { return crop > 0 || flip || cutout > 0; }
};

/// Mixup and CutMix of a training batch (torchvision: v2.MixUp and v2.CutMix). Each image is mixed
/// with the one before it in the batch, the first with the last. Labels become mixtures of two
/// classes. If both are on, one of the two is drawn for each batch, with equal probability.
struct Mixing {
  double mixup = 0;   ///< alpha: the image's own share is drawn from Beta(alpha, alpha); 0: off
  double cutmix = 0;  ///< alpha: the area that is not replaced is from Beta(alpha, alpha); 0: off
  /// Whether any of the two is on.
  bool any() const { return mixup > 0 || cutmix > 0; }
};
/// The random numbers of Mixing for one batch.
struct MixDraw {
  double pixels = 1;  ///< share of the image's own value in each pixel, outside the box if any
  double share = 1;   ///< weight of the image's own label; the other image's label has the rest
  int left = 0;       ///< first column of the box that shows the other image
  int top = 0;        ///< first row of the box
  int right = 0;      ///< column after the last column of the box
  int bottom = 0;     ///< row after the last row of the box
};
/// Draws the random numbers of one batch. They depend on the arguments alone. Throws ValueError if
/// neither mixup nor CutMix is on.
///
/// @param mixing  what is on
/// @param height  height of the images in pixels
/// @param width   width of the images in pixels
/// @param seed    the loader's seed
/// @param epoch   the epoch
/// @param batch   the batch's number in the epoch
TENON_API MixDraw draw_mix(const Mixing& mixing, int height, int width, std::uint64_t seed,
                           std::int64_t epoch, std::int64_t batch);
/// The draw of CutMix for a given share and a box with its centre at (x, y), clipped at the edges
/// of the image.
TENON_API MixDraw cut_mix(double share, int x, int y, int height, int width);

/// Weighted sampling: each epoch draws samples with probabilities in proportion to their weights
/// (PyTorch: WeightedRandomSampler). The draws depend on (seed, epoch) alone.
struct WeightedSampling {
  /// One weight for each sample, finite and not negative; a sample of weight 0 is never drawn.
  /// Empty: off, so an epoch has every sample once.
  std::vector<double> weights{};
  std::int64_t count = 0;   ///< samples in an epoch; 0: as many as the dataset has
  bool replacement = true;  ///< a sample can be drawn several times in an epoch
  /// Whether weighted sampling is on.
  bool any() const { return !weights.empty(); }
};
/// Weights that draw every class equally often: 1 / (number of the class's samples). A sample whose
/// target is kIgnoredTarget has weight 0. Reads the labels of all samples; those of image files
/// without decoding. Throws ValueError unless each target is one class.
TENON_API std::vector<double> class_balanced_weights(const Dataset& dataset);

/// Options of Loader.
struct LoaderOptions {
  std::int64_t batch = 64;  ///< batch size
  bool shuffle = true;      ///< a new order of the samples in every epoch
  bool drop_last = false;   ///< leave out an incomplete last batch
  std::uint64_t seed = 0;   ///< seed of the order and of augmentation
  /// Threads that prepare batches ahead; 0: next() prepares them. A dataset in memory needs no
  /// threads and uses none, unless its images are augmented.
  int workers = 1;
  int prefetch = 4;  ///< batches that are prepared ahead
  /// True: uint8 inputs become float32, (x / 255 - mean) / std. Other inputs, and all inputs if
  /// false, keep their values and type.
  bool scale = true;
  double mean = 0;  ///< subtracted from scaled inputs
  double std = 1;   ///< scaled inputs are divided by it
  /// One mean for each channel of [C, H, W] or [views, C, H, W], replaces `mean`; empty: `mean`.
  std::vector<double> channel_mean{};
  /// One standard deviation for each channel, replaces `std`; empty: `std`.
  std::vector<double> channel_std{};
  Augmentation augment{};       ///< augmentation of uint8 inputs [C, H, W]
  WeightedSampling sampling{};  ///< samples drawn by weight; off by default
};

/// The position of a loader: enough to continue exactly there.
struct LoaderState {
  std::uint64_t seed = 0;     ///< LoaderOptions::seed
  std::int64_t epoch = 0;     ///< the epoch, from 0
  std::int64_t position = 0;  ///< samples of this epoch that were already returned
  /// Whether all members are equal.
  bool operator==(const LoaderState&) const = default;
};

/// A batch of samples.
struct Batch {
  Tensor input;           ///< inputs, [N, …]
  Tensor target;          ///< targets, [N, …]
  std::int64_t size = 0;  ///< N, the number of samples
};

/// Gives the samples of a dataset in batches, epoch after epoch (PyTorch: DataLoader). Only one
/// thread may use a loader.
class TENON_API Loader {
 public:
  /// Throws ValueError for an empty dataset or an option out of range, for weights that do not fit
  /// the dataset, and for weights without `shuffle`.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options = {});
  ~Loader();
  Loader(const Loader&) = delete;             ///< a loader is not copied
  Loader& operator=(const Loader&) = delete;  ///< a loader is not copied

  /// Writes the next batch to memory with room for batch() inputs and targets. Returns its number
  /// of samples; 0 at the end of the epoch, after which the next call begins the next epoch.
  /// Rethrows what the dataset throws in any thread.
  std::int64_t next(void* input, void* target);
  /// The next batch as tensors on the default device; false at the end of the epoch.
  bool next(Batch& batch);
  /// The same with inputs as the dataset stores them, whatever options().scale. A batch that worker
  /// threads prepare is copied to a GPU while the GPU computes, and stays valid until the next
  /// call.
  bool next_stored(Batch& batch);
  /// The indices of the next batch's samples, for callers that hold the dataset themselves. Empty
  /// at the end of the epoch.
  std::vector<std::int64_t> next_numbers();

  /// The dataset.
  const Dataset& dataset() const noexcept;
  /// The options that the constructor got.
  const LoaderOptions& options() const noexcept;
  /// Samples in a full batch.
  std::int64_t batch() const noexcept;
  /// Batches in an epoch.
  std::int64_t batches() const noexcept;
  /// Samples in an epoch: the dataset's size or WeightedSampling::count, before drop_last.
  std::int64_t epoch_size() const noexcept;
  /// Shape of one sample's input.
  Shape input_shape() const;
  /// Data type of the inputs that next() gives, after scaling.
  DType input_dtype() const;

  /// The current position, for set_state().
  LoaderState state() const noexcept;
  /// Continues from a position. Throws ValueError if it does not fit this dataset.
  void set_state(const LoaderState& state);
  /// Moves to the start of an epoch, from 0.
  void set_epoch(std::int64_t epoch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::data
