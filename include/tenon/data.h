// Data: sets of examples (drawn digits, MNIST, IDX, CSV, NumPy, tensors) and the loader that makes
// batches of them.
//
// The order of a run is a function of (seed, epoch) alone: neither worker threads nor a stop and
// resume change it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/notes.h>
#include <tenon/tensor.h>

namespace tenon::data {

/// A part of a source. Training learns from Train, chooses among its epochs by Validation, and
/// measures Test once, at its end. All is every sample of the source, whatever part it belongs to.
enum class Split { Train, Validation, Test, All };

/// "training", "validation", "test" or "all": for messages.
TENON_API const char* name(Split split);

class Pictures;  // <tenon/pictures.h>

/// A column of a table that is an input of networks, as the training part has it.
struct TableColumn {
  std::string name{};                 ///< in the header; "" where there is none
  double fill = 0;                    ///< what a missing number counts as: the mean
  std::vector<std::string> values{};  ///< the words of a column of words; empty for numbers
  /// "year", "month" (1 to 12), "weekday" (0 is Monday), "hour" or "days" (since 2000-01-01, with
  /// their fraction): what of the dates that the column holds; "" for numbers and words.
  std::string date{};
  std::string date_order{};  ///< of such dates: "ymd", "dmy" or "mdy"
  std::int64_t number = -1;  ///< in the table that was read, from 0; -1 where that is not known
  /// Numbers that it gives a network: one, or one for each word, which is 1 where the word stands.
  std::int64_t inputs() const {
    return values.empty() ? 1 : static_cast<std::int64_t>(values.size());
  }
};
/// How the rows of a table become inputs: kept with a model, so that other files are read alike.
struct TableColumns {
  std::vector<TableColumn> columns{};  ///< those that are inputs, in order
  std::string label{};                 ///< the label's column; "" without a header
  std::int64_t label_column = -1;      ///< its number from 0; -1: rows have no labels
  std::vector<std::string> class_names{};
  std::string encoding{};   ///< RowFormat::encoding of the table, for files that are no UTF-8
  std::string decimal{};    ///< CsvOptions::decimal of the table
  std::string thousands{};  ///< CsvOptions::thousands of the table
  /// "column 'species' (number 4, counted from 0)": the label's, for people; "" where there is
  /// none.
  TENON_API std::string label_text() const;
};

class Tokenizer;
class Vocabulary;

/// The target of what counts for nothing: of a place that is filled up, of a picture that cannot be
/// decoded.
constexpr std::int64_t kIgnoredTarget = -100;

/// Examples by number. All methods may be called from several threads at a time.
class TENON_API Dataset {
 public:
  virtual ~Dataset();
  virtual std::int64_t size() const = 0;
  /// Shape and type of one example's input: images are [channels, height, width], uint8 from 0 to
  /// 255.
  virtual Shape input_shape() const = 0;
  virtual DType input_dtype() const = 0;
  /// Views of what an example shows, as ten crops of a picture, which then are axis 0 of
  /// input_shape(): an evaluation takes the mean of what a network says of them.
  virtual std::int64_t views() const { return 1; }
  /// Shape and type of one example's target: [] and int64 for a class.
  virtual Shape target_shape() const;
  virtual DType target_dtype() const;
  /// Number of classes; 0 when targets are not classes.
  virtual std::int64_t classes() const = 0;
  /// Names of the classes: their numbers unless the set knows better. Empty when targets are not
  /// classes.
  virtual std::vector<std::string> class_names() const;
  /// "bytes", "chars", "words" or "pieces" where examples are made of text and classes are its
  /// tokens; else "".
  virtual std::string text_unit() const;
  /// Numbers of an example's target that count, in the mean over the set: all, unless sequences are
  /// filled up.
  virtual double counted_targets() const;
  /// How rows of a table became inputs; null for what is no table.
  virtual std::shared_ptr<const TableColumns> table() const;
  /// What this is, for people: "60,000 drawn digits (seed 0)".
  virtual std::string describe() const = 0;
  /// Where a sample comes from, for people: "photos/cat/1.jpg", "rows.csv, line 17". By default
  /// "sample 17", counted from 1.
  virtual std::string sample_name(std::int64_t index) const;
  /// What was skipped, renamed, converted or assumed when the set was opened and read so far.
  virtual Notes notes() const;
  /// Writes examples indices[0], indices[1], … one after another. Indices are in [0, size()).
  virtual void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const = 0;
  /// The same examples as training sees them in an epoch, where the set changes them at random:
  /// what is drawn depends on (seed, epoch, number of the example) alone.
  virtual void get_drawn(std::span<const std::int64_t> indices, std::uint64_t seed,
                         std::int64_t epoch, void* inputs, void* targets) const;
  /// Whether get_drawn() gives other examples than get().
  virtual bool drawn_anew() const { return false; }
  /// The pictures, of sizes of their own, that examples are made from; null where there are none.
  virtual std::shared_ptr<const Pictures> pictures() const;
  /// Names of the pictures that could not be decoded so far, in order.
  virtual std::vector<std::string> broken() const;
  /// True when get() only copies memory: a loader then needs no threads.
  virtual bool in_memory() const { return false; }
  /// True when get() makes examples out of nothing but their numbers and keeps them: asked for all,
  /// it makes them on all threads. A card that has room for the set then asks for all at once.
  virtual bool made_on_demand() const { return false; }
};

/// How the samples of a source are divided into parts: the same ones for the same seed on every
/// machine. A part that has files of its own is not divided off: validation then comes from the
/// training files.
struct SplitOptions {
  /// Share of all samples that is for testing; 0: no test part. Unset: 0.1 where the source has no
  /// test files of its own.
  std::optional<double> test{};
  /// Share of the samples that are not for testing; 0: no validation part. Unset: 0.1.
  std::optional<double> validation{};
  std::uint64_t seed = 0;  ///< of the samples' order
  /// Every part has the classes in the source's proportions. Unset: where targets are classes and
  /// neither group nor chronological is set.
  std::optional<bool> stratify{};
  /// What keeps samples in one part: of a table a column, which then is no input; of lines a column
  /// by its number from 0 or its name in a header; of images "prefix" (the file's name up to its
  /// last '_', '-', ' ' or '.'), "folder" (the folder in which the file lies), of a list also a
  /// column; of npy: the file with the groups' numbers. "": nothing but what always stays together:
  /// frames of a video, lines about one file, windows of a text and questions about it.
  std::string group{};
  bool chronological = false;  ///< no shuffling: training comes first, then validation, then test
  int fold = 0, folds = 0;     ///< of k parts of the samples, the one for testing, from 1
};

/// A set of given tensors: input [N, …], target [N, …]. int64 or int32 or uint8 targets of rank 1
/// are classes; `classes` 0 counts them. A sample whose target is kIgnoredTarget counts for nothing
/// with a loss that leaves it out (nn::CrossEntropyLoss::ignore_index).
TENON_API std::shared_ptr<Dataset> from_tensors(const Tensor& input, const Tensor& target,
                                                std::int64_t classes = 0);
/// One part of them; nullptr where there is no such part. `group` is a tensor of whole numbers [N]
/// where samples of equal numbers stay in one part, whatever split.group says.
TENON_API std::shared_ptr<Dataset> from_tensors(const Tensor& input, const Tensor& target,
                                                Split part, const SplitOptions& split,
                                                std::int64_t classes = 0, const Tensor& group = {});
/// `count` drawn digits: 28 x 28 handwriting-like pictures, the same for the same seed on every
/// machine. Drawn when first used.
TENON_API std::shared_ptr<Dataset> drawn_digits(std::uint64_t seed, std::int64_t count);
/// `count` drawn scenes: colour pictures of side x side pixels, one of ten objects (ball, ring,
/// box, triangle, star, cross, moon, heart, fish, house) among clutter, the same for the same seed
/// on every machine. The class is the object's outline; colours, textures, light, place and angle
/// are not. Drawn when first used. Throws ValueError for a side outside 16 to 1024.
TENON_API std::shared_ptr<Dataset> drawn_scenes(std::uint64_t seed, std::int64_t count,
                                                std::int64_t side = 32);
/// `count` vectors of `size` random numbers of mean 0 and variance 1, each of a class that is drawn
/// as well: for times, as in the benchmark of FCN-S; there is nothing to learn but the examples
/// themselves. The same for the same seed on every machine. Throws ValueError for numbers outside 1
/// to 100,000,000.
TENON_API std::shared_ptr<Dataset> random_vectors(std::uint64_t seed, std::int64_t count,
                                                  std::int64_t size, std::int64_t classes);
/// CIFAR-10's or CIFAR-100's binary files (data_batch_1.bin …, or train.bin and test.bin) in a
/// folder. Validation samples come from the training files. Throws IoError, FormatError, ValueError
/// for options that divide a test part off.
TENON_API std::shared_ptr<Dataset> open_cifar(const std::string& folder, Split part,
                                              const SplitOptions& split = {});
/// MNIST's four files (train-images-idx3-ubyte …, with or without .gz) in a folder; as
/// open_cifar().
TENON_API std::shared_ptr<Dataset> open_idx(const std::string& folder, Split part,
                                            const SplitOptions& split = {});

/// How the rows of a text file are written: of tables, lists of images, lines with a class and
/// pairs of texts. Lines end in LF, CRLF or CR, and a byte order mark is no part of the text.
struct RowFormat {
  /// "utf-8", "latin1", "cp1252", "utf-16" (without a byte order mark its zeros tell the order),
  /// "utf-16-le" or "utf-16-be"; "": UTF-8, or UTF-16 where its byte order mark says
  /// so. What does not fit is a FormatError with the line.
  std::string encoding{};
  /// One character, or "tab", "space" (runs of spaces and tabs), "comma", "semicolon", "pipe"; "":
  /// told from the first rows, or from a first line "sep=;".
  std::string separator{};
  /// A character: rows that begin with it are skipped. "none": no row is. "": rows that begin with
  /// '#' are skipped where they have another number of fields than the first row.
  std::string comment{};
  std::optional<bool> header{};  ///< whether the first row is names; told from it if unset
  /// Whether a field in double quotes is without them; unset: yes, but for texts between tabs.
  std::optional<bool> quotes{};
};

struct CsvOptions {
  bool labelled = true;      ///< off: every column is an input, and targets are zeros, no classes
  int label_column = -1;     ///< counted from 0; negative from the end; used when label_name is ""
  std::string label_name{};  ///< the header's name for the label's column
  /// Labels are classes, named by their texts: in the order of their values where all are numbers,
  /// else in alphabetical order. Off: targets are float32 [1], as a layer with one output gives.
  bool classes = true;
  /// Names of the classes in their order, when known: a test set takes the training set's.
  std::vector<std::string> class_names{};
  /// Rows are pictures of this shape, whole numbers from 0 to 255; [] leaves the columns as
  /// numbers.
  Shape image_shape{};
  RowFormat rows{};
  std::string decimal{};    ///< "." or ","; "": as `columns` say, else "."
  std::string thousands{};  ///< "", ".", ",", "'" or " ": between groups of three digits
  /// Columns by their names; where there is no header by their numbers from 0.
  /// Columns whose numbers are words too. Of the label's column every text that is not empty is
  /// then a class, in alphabetical order: "NA" and 2.5 too.
  std::vector<std::string> categories{};
  std::vector<std::string> left_out{};  ///< columns that are no inputs
  /// Columns of dates or of dates with times: each is five inputs (TableColumn::date).
  std::vector<std::string> dates{};
  std::optional<bool> day_first{};  ///< of dates as 3/4/2020; unset: told from the column's dates
  /// The most bytes that inputs take; 0: 1 GiB, or 16 times the file's size where that is more.
  std::uint64_t memory = 0;
  /// Rows without a label (empty, or NA and its like) stay, with the target kIgnoredTarget or, of
  /// quantities, NaN: for predictions, not with a part. Off: they are left out, with a note.
  bool keep_unlabelled = false;
  bool strict = false;   ///< what would be a note (Dataset::notes()) is a FormatError
  SplitOptions split{};  ///< of open_csv() with a part
  /// Columns are found by name, in whatever order and among others, and read as these say; without
  /// a header by their places. Unset: as the rows that are not for testing say.
  std::shared_ptr<const TableColumns> columns{};
};
/// Rows with one label column; the others are numbers, or words where fewer than half of their
/// fields are numbers (TableColumn). Words that mostly have digits are refused unless `categories`
/// or another option says what they are. A first row that holds names is the header; the label is
/// then, unless told otherwise, the column named label, class, target or y. Of columns of one name
/// the later ones are renamed "name.1", "name.2", as pandas does; a name that differs in case or
/// spaces alone is found where only one does. Throws IoError, FormatError with line and column,
/// ValueError for a column that is not there.
TENON_API std::shared_ptr<Dataset> open_csv(const std::string& file,
                                            const CsvOptions& options = {});
/// One part of the rows, as options.split says.
TENON_API std::shared_ptr<Dataset> open_csv(const std::string& file, Split part,
                                            const CsvOptions& options);

/// A set by its name: "digits[:TRAIN[,TEST[,SEED]]]", "scenes[:TRAIN[,TEST[,SEED]]][,size=SIDE]",
/// "random[:TRAIN[,TEST[,SEED]]][,size=N][,classes=N]" (random_vectors(), as FCN-S takes them),
/// "mnist[:FOLDER]", "cifar10[:FOLDER]", "cifar100[:FOLDER]", "idx:FOLDER", "npy:INPUTS,TARGETS",
/// "text:FILE[,by=chars|words|bytes|pieces][,length=N][,words=N]",
/// "numbers[:TRAIN[,TEST[,SEED]]][,below=N][,to=french|german][,pieces=N]",
/// "pairs:FILE[,pieces=N][,length=N]" or
/// "csv:FILE[,label=NAME][,column=NUMBER][,drop=NAME][,category=NAME][,date=NAME][,dayfirst=yes|no]
/// [,decimal=SIGN][,thousands=SIGN][,memory=SIZE][,shape=CxHxW]"; images of sizes of their own are
/// "folder:DIR", "list:FILE" or "shards:PATTERN" with
/// "[,size=SIDE][,grey][,broken=error][,frames=N][,every=SECONDS]" (<tenon/pictures.h>). Tables,
/// lists, lines and pairs take "[,encoding=NAME][,separator=SIGN][,comment=SIGN|none]
/// [,header=yes|no][,quotes=yes|no]" (RowFormat).
///
/// Behind these,
/// "[,validation=SHARE][,split=SHARE][,test=PATH][,fold=I/K][,seed=N][,stratify=yes|no]
/// [,group=…][,chronological]" say how the samples are divided, as SplitOptions does; drawn sources
/// take validation=SHARE alone. Of a path with commas the longest one that is there counts.
///
/// Split::Train and Split::All are in every source. **Returns nullptr** for Split::Validation and
/// Split::Test where the source has no such part, which is no error: with validation=0 or split=0,
/// with fewer samples or groups than parts, in a folder with train/ and val/ that has no test/. So
/// do all functions that open one part of a source. Whoever needs the part says what to do.
///
/// Throws ValueError for a name that is none of these, else what opening it throws. With `classes`
/// off, targets are quantities: a table's label column is read as numbers, a .npy file's are as
/// they are, and a source of classes is a ValueError.
TENON_API std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split,
                                                bool classes = true);
/// The same; a table is read as `columns` say, unless they are null.
TENON_API std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split, bool classes,
                                                std::shared_ptr<const TableColumns> columns);

struct SourceOptions {
  bool classes = true;                            ///< off: targets are quantities
  std::shared_ptr<const TableColumns> columns{};  ///< how a table is read
  std::shared_ptr<const Tokenizer> tokenizer{};   ///< of text; without, a text has its own tokens
  bool hide_words = false;                        ///< of a text with a tokenizer
  bool strict =
      false;  ///< what would be a note (Dataset::notes()) when the set is opened is a FormatError
  /// The tokens of a text without one and of pairs, as a trained model knows them; unset: those of
  /// the source itself.
  std::shared_ptr<const Vocabulary> vocabulary{};
  /// Of images of sizes of their own the names of the classes in their order, as a trained model
  /// knows them; empty: those of the training part.
  std::vector<std::string> class_names{};
};
/// The same, and with a tokenizer "lines:FILE[,length=N][,test=FILE]" (open_class_lines()), and
/// text by it (open_token_text()).
TENON_API std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split,
                                                const SourceOptions& options);

/// A source whose files are read once, when a part first needs them: its parts are views of what
/// was read. May be used from several threads at a time.
class TENON_API Source {
 public:
  /// Throws ValueError as open_dataset() does for a name; files are not opened yet.
  explicit Source(const std::string& spec, const SourceOptions& options = {});
  /// As open_dataset() gives it.
  std::shared_ptr<Dataset> open(Split part) const;

 private:
  std::function<std::shared_ptr<Dataset>(Split)> open_;
  bool strict_;
};

/// Where data is kept that the command fetched: $TENON_DATA_DIR, or tenon/ in the user's cache
/// folder.
TENON_API std::string default_data_dir();

/// Changes of the pictures that training sees, drawn anew for each example in each epoch: the same
/// for any number of workers and after a resume, for they depend on (seed, epoch, example) alone.
struct Augmentation {
  std::int64_t crop = 0;  ///< black pixels put around it, of which a part of its own size is taken
  bool flip = false;      ///< every other one mirrored, left for right
  std::int64_t cutout = 0;  ///< side of a square somewhere on it that is blanked with the mean
  bool any() const { return crop > 0 || flip || cutout > 0; }
};

/// How the pictures of a training batch are mixed, as torchvision's v2.MixUp and v2.CutMix do it:
/// each with the one before it in the batch, the first with the last. Their labels become mixtures
/// of two classes. 0 leaves one out; of both, one is drawn for each batch, equally often.
struct Mixing {
  double mixup = 0;   ///< alpha of Beta(alpha, alpha), which the share of the own picture is from
  double cutmix = 0;  ///< the same for the area that stays when a box of the other is put in
  bool any() const { return mixup > 0 || cutmix > 0; }
};
/// What is drawn for one batch.
struct MixDraw {
  double pixels =
      1;             ///< share of the own picture in each pixel; outside the box, when there is one
  double share = 1;  ///< of the own label; the other picture's label has the rest
  int left = 0, top = 0, right = 0, bottom = 0;  ///< box whose pixels are the other picture's
};
/// The draws of batch `batch` of an epoch, for pictures of height x width: they depend on these,
/// the seed and the epoch alone. Throws ValueError when nothing is to be mixed.
TENON_API MixDraw draw_mix(const Mixing& mixing, int height, int width, std::uint64_t seed,
                           std::int64_t epoch, std::int64_t batch);
/// What CutMix takes for this share of Beta's, with the box's middle there, cut off at the edges.
TENON_API MixDraw cut_mix(double share, int x, int y, int height, int width);

struct LoaderOptions {
  std::int64_t batch = 64;
  bool shuffle = true;
  bool drop_last = false;  ///< leave out an incomplete last batch
  std::uint64_t seed = 0;  ///< of the order
  /// Threads that prepare batches ahead; 0 prepares them in next(). Sets in memory need no threads
  /// and get none, unless their pictures are changed.
  int workers = 1;
  int prefetch = 4;  ///< batches prepared ahead
  /// uint8 inputs become float32: (x / 255 - mean) / std. Other inputs, and all with scale = false,
  /// come as they are stored.
  bool scale = true;
  double mean = 0, std = 1;
  /// One for each channel of [C, H, W] or [views, C, H, W], in place of `mean` and `std`; empty for
  /// these.
  std::vector<double> channel_mean{}, channel_std{};
  Augmentation augment{};  ///< of uint8 inputs [C, H, W]
};

/// Where a loader stands: enough to go on exactly there.
struct LoaderState {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;     ///< from 0
  std::int64_t position = 0;  ///< examples of this epoch already given
  bool operator==(const LoaderState&) const = default;
};

struct Batch {
  Tensor input, target;
  std::int64_t size = 0;
};

/// Gives a set's examples in batches, epoch after epoch. One thread uses a loader.
class TENON_API Loader {
 public:
  /// Throws ValueError for an empty set or options outside their range.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Fills room for batch() inputs and targets with the next batch and returns its number of
  /// examples; 0 at the end of the epoch, after which the next call begins the next epoch. What the
  /// set throws, in whichever thread, is thrown here.
  std::int64_t next(void* input, void* target);
  /// The same as tensors, on the default device; false at the end of the epoch.
  bool next(Batch& batch);
  /// The same with inputs as the set stores them, whatever options().scale. A batch that threads
  /// prepare goes to a card beside the work there, and stays as it is until the next call.
  bool next_stored(Batch& batch);
  /// Only the numbers of the next batch's examples, for callers that hold the set themselves. Empty
  /// at the end of the epoch.
  std::vector<std::int64_t> next_numbers();

  const Dataset& dataset() const noexcept;
  const LoaderOptions& options() const noexcept;
  /// Examples in a full batch.
  std::int64_t batch() const noexcept;
  /// Batches in an epoch.
  std::int64_t batches() const noexcept;
  /// Shape of one example and type of the inputs as given, after scaling.
  Shape input_shape() const;
  DType input_dtype() const;

  LoaderState state() const noexcept;
  /// Goes on from a state. Throws ValueError when it does not fit this set.
  void set_state(const LoaderState& state);
  /// Shorthand for the start of an epoch.
  void set_epoch(std::int64_t epoch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::data
