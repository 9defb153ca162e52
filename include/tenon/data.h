// Data sources: datasets from tensors and files (MNIST, IDX, CIFAR, CSV, NumPy), generated ones,
// any source by its name, and how a source is divided into training, validation and test part.
//
// Includes the dataset (<tenon/dataset.h>) and the data loader (<tenon/loader.h>).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/dataset.h>
#include <tenon/loader.h>
#include <tenon/tensor.h>

namespace tenon::data {

class Tokenizer;
class Vocabulary;

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
struct SourceOptions;

/// A kind of source of one's own.
struct RegisteredSource {
  std::string name{};      ///< lower-case letters, digits and '_', beginning with a letter
  std::string usage{};     ///< the form of a source: "mine:FOLDER"
  bool generated = false;  ///< as SourceKind::generated
  bool needs_path = true;  ///< as SourceKind::needs_path
  /// Reads a source: `rest` is what follows "mine:". Returns a function that opens a part; it
  /// returns null for a validation part if there is none. Both may throw ValueError, IoError and
  /// FormatError. The function may be called from several threads.
  std::function<std::function<std::shared_ptr<Dataset>(Split part)>(const std::string& rest,
                                                                    const SourceOptions& options)>
      open{};
};
/// Adds a kind of source for open_dataset(), the setting `data` and --data of the command. Call it
/// before runs are opened. Throws ValueError for an invalid or taken name, and for an empty
/// function.
TENON_API void register_source(RegisteredSource source);

/// All kinds: those of the library in the order of the documentation, then the registered ones.
/// The list stays valid.
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

/// The folder for datasets that the command downloads: $TENON_DATA_DIR, else $XDG_CACHE_HOME/tenon,
/// else ~/.cache/tenon. "" if neither of the latter two is an absolute path.
TENON_API std::string default_data_dir();

}  // namespace tenon::data
