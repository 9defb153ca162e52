// Sets by name: what the text after --data stands for.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/pictures.h>
#include <tenon/text.h>

#include "base/env.h"
#include "base/str.h"
#include "data/picture_spec.h"
#include "data/row_options.h"
#include "data/scenes.h"
#include "data/source_parts.h"
#include "data/tensor_dataset.h"
#include "io/file.h"
#include "io/idx.h"
#include "io/numbers.h"

namespace tenon::data {
namespace {

constexpr std::int64_t kTrainDigits = 60'000, kTestDigits = 10'000;
constexpr std::int64_t kTrainScenes = 50'000, kTestScenes = 10'000;
constexpr std::int64_t kTrainVectors = 2048, kTestVectors = 256, kVectorSize = 26'752;  // FCN-S's
constexpr std::uint64_t kTestSeeds =
    0x7e57'0000'0000'0000ull;  // What is drawn for testing comes from other seeds.

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (;;) {
    const std::size_t at = text.find(separator, from);
    parts.push_back(text.substr(from, at - from));
    if (at == std::string::npos) return parts;
    from = at + 1;
  }
}

std::int64_t whole_number(const std::string& text, const std::string& spec) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 0)
    throw ValueError(cat("data '", spec, "': '", text, "' is no whole number"));
  return value;
}

std::shared_ptr<Dataset> open_digits(const std::string& rest, const std::string& spec,
                                     Split split) {
  std::int64_t train = kTrainDigits, test = kTestDigits, seed = 0;
  if (!rest.empty()) {
    const std::vector<std::string> parts = split_text(rest, ',');
    if (parts.size() > 3)
      throw ValueError(
          cat("data '", spec, "': digits takes at most three numbers: digits:TRAIN,TEST,SEED"));
    train = whole_number(parts[0], spec);
    if (parts.size() > 1) test = whole_number(parts[1], spec);
    if (parts.size() > 2) seed = whole_number(parts[2], spec);
  }
  const auto key = static_cast<std::uint64_t>(seed);
  return split == Split::Train ? drawn_digits(key, train) : drawn_digits(key ^ kTestSeeds, test);
}

struct NamedNumber {
  std::string_view name;  // with its "="
  std::int64_t* value;
};

/// Numbers, one after the other, and named ones: "TRAIN,TEST,SEED,size=N". `form` says what may be
/// given.
void read_numbers(const std::string& rest, const std::string& spec, const char* form,
                  std::span<std::int64_t> numbers, std::initializer_list<NamedNumber> named) {
  std::size_t given = 0;
  for (const std::string& part :
       rest.empty() ? std::vector<std::string>() : split_text(rest, ',')) {
    const auto* const found = std::find_if(
        named.begin(), named.end(), [&](const NamedNumber& n) { return part.starts_with(n.name); });
    if (found != named.end())
      *found->value = whole_number(part.substr(found->name.size()), spec);
    else if (given < numbers.size())
      numbers[given++] = whole_number(part, spec);
    else
      throw ValueError(cat("data '", spec, "': ", form));
  }
}

// "scenes:TRAIN,TEST,SEED,size=SIDE": as digits, and the pictures' side.
std::shared_ptr<Dataset> open_scenes(const std::string& rest, const std::string& spec,
                                     Split split) {
  std::int64_t numbers[] = {kTrainScenes, kTestScenes, 0}, side = kSceneSide;
  read_numbers(rest, spec,
               "scenes takes at most three numbers and a size: scenes:TRAIN,TEST,SEED,size=SIDE",
               numbers, {{"size=", &side}});
  const auto key = static_cast<std::uint64_t>(numbers[2]);
  return split == Split::Train ? drawn_scenes(key, numbers[0], side)
                               : drawn_scenes(key ^ kTestSeeds, numbers[1], side);
}

// "random:TRAIN,TEST,SEED,size=N,classes=N".
std::shared_ptr<Dataset> open_random(const std::string& rest, const std::string& spec,
                                     Split split) {
  std::int64_t numbers[] = {kTrainVectors, kTestVectors, 0}, size = kVectorSize,
               classes = kVectorSize;
  read_numbers(rest, spec,
               "random takes at most three numbers, a size and classes: "
               "random:TRAIN,TEST,SEED,size=N,classes=N",
               numbers, {{"size=", &size}, {"classes=", &classes}});
  const auto key = static_cast<std::uint64_t>(numbers[2]);
  return split == Split::Train ? random_vectors(key, numbers[0], size, classes)
                               : random_vectors(key ^ kTestSeeds, numbers[1], size, classes);
}

std::string find_idx(const std::string& folder, const std::string& stem, const std::string& kind) {
  for (const char* joint : {"-", "."})
    for (const char* ending : {"", ".gz"}) {
      std::string path = cat(folder, "/", stem, joint, kind, ending);
      if (io::file_exists(path)) return path;
    }
  return "";
}

std::shared_ptr<Dataset> open_mnist(const std::string& rest, Split split) {
  const std::string folder = rest.empty() ? default_data_dir() + "/mnist" : rest;
  if (rest.empty() && find_idx(folder, "train-images", "idx3-ubyte").empty())
    throw IoError(cat("MNIST is not in ", folder,
                      ": run 'tenon data fetch mnist', or name its folder: mnist:FOLDER"));
  return open_idx(folder, split);
}

// "cifar10" and "cifar100": the fetched files, or a folder that holds them.
std::shared_ptr<Dataset> open_cifar_spec(const std::string& kind, const std::string& rest,
                                         Split split) {
  const std::string folder = rest.empty() ? cat(default_data_dir(), "/", kind) : rest;
  const char* file = kind == "cifar10" ? "data_batch_1.bin" : "train.bin";
  if (!io::file_exists(cat(folder, "/", file)))
    throw IoError(cat(kind, ": there is no ", file, " in ", folder, ": ",
                      rest.empty() ? cat("run 'tenon data fetch ", kind,
                                         "', or name its folder: ", kind, ":FOLDER")
                                   : "name the folder of its binary version"));
  return open_cifar(folder, split);
}

// A share such as 0.2, or 20%.
double share(const std::string& text, const std::string& spec) {
  const bool percent = text.ends_with('%');
  double value = 0;
  if (!io::parse_number(percent ? text.substr(0, text.size() - 1) : text, value))
    throw ValueError(cat("data '", spec, "': '", text, "' is no share, as 0.2 is"));
  return percent ? value / 100 : value;
}

// "500M", "4G": bytes.
std::uint64_t memory_size(const std::string& text, const std::string& spec) {
  constexpr std::string_view units = "KMGT";
  const std::size_t unit = units.find(text.back());
  const bool plain = unit == std::string_view::npos;
  double bytes = 0;
  const bool number = io::parse_number(text.substr(0, text.size() - (plain ? 0 : 1)), bytes);
  if (!plain) bytes *= std::pow(1024.0, static_cast<double>(unit + 1));
  if (!number || !(bytes >= 1 && bytes < 1e18))
    throw ValueError(cat("data '", spec, "': memory=", text, ": a size, as 500M or 4G"));
  return static_cast<std::uint64_t>(bytes);
}

// What follows "csv:FILE"; false for a word that says nothing of a table.
bool set_csv_option(CsvOptions& options, const std::string& key, const std::string& value,
                    const std::string& spec) {
  if (key == "stratify" && value.empty()) {
    options.split.stratify = true;
    return true;
  }
  if (value.empty()) return false;
  if (key == "label") {
    options.label_name = value;
  } else if (key == "column") {
    options.label_column =
        static_cast<int>(std::min<std::int64_t>(whole_number(value, spec), 1 << 30));
  } else if (key == "shape") {
    for (const std::string& size : split_text(value, 'x'))
      options.image_shape.push_back(whole_number(size, spec));
  } else if (key == "drop") {
    options.left_out.push_back(value);
  } else if (key == "category") {
    options.categories.push_back(value);
  } else if (key == "date") {
    options.dates.push_back(value);
  } else if (key == "dayfirst" && (value == "yes" || value == "no")) {
    options.day_first = value == "yes";
  } else if (key == "decimal") {
    options.decimal = value;
  } else if (key == "thousands") {
    options.thousands = value;
  } else if (key == "memory") {
    options.memory = memory_size(value, spec);
  } else if (set_row_option(options.rows, cat(key, "=", value))) {
    return true;
  } else if (key == "split") {
    options.split.test = share(value, spec);
  } else if (key == "seed") {
    options.split.seed = static_cast<std::uint64_t>(whole_number(value, spec));
  } else if (key == "group") {
    options.split.group = value;
  } else if (key == "fold" && value.find('/') != std::string::npos) {
    const std::vector<std::string> parts = split_text(value, '/');
    const auto small = [&](const std::string& text) {
      return static_cast<int>(std::min<std::int64_t>(whole_number(text, spec), 1 << 30));
    };
    options.split.fold = small(parts[0]), options.split.folds = small(parts[1]);
    if (options.split.folds == 0)
      throw ValueError(cat("data '", spec, "': fold=", value, ": as 1/5, the first of five"));
  } else {
    return false;
  }
  return true;
}

std::shared_ptr<Dataset> open_csv_spec(const std::string& rest, const std::string& spec,
                                       Split split, bool classes,
                                       std::shared_ptr<const TableColumns> columns) {
  const std::vector<std::string> parts = source_parts(rest);
  CsvOptions options;
  options.classes = classes;
  options.columns = std::move(columns);
  std::string test;
  bool divided = false;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string key = parts[i].substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : parts[i].substr(equals + 1);
    divided = divided || key == "split" || key == "fold" || key == "stratify" || key == "group";
    if (key == "test" && !value.empty()) {
      test = value;
    } else if (!set_csv_option(options, key, value, spec)) {
      refuse_part(spec, parts, i,
                  "label=NAME, column=NUMBER, drop=NAME, category=NAME, date=NAME, "
                  "dayfirst=yes|no, decimal=SIGN, thousands=SIGN, memory=SIZE, header=yes|no, "
                  "encoding=NAME, separator=SIGN, comment=SIGN|none, quotes=yes|no, test=FILE, "
                  "split=SHARE, fold=I/K, seed=N, stratify, group=NAME, shape=CxHxW");
    }
  }
  if (test.empty()) return open_csv(parts[0], split, options);
  if (divided)
    throw ValueError(
        cat("data '", spec, "': the test part is a file of its own: leave out how to divide"));
  if (split == Split::Train) return open_csv(parts[0], options);
  if (options.columns == nullptr) {
    const auto train = open_csv(parts[0], options);
    options.class_names = train->class_names();
    options.columns = train->table();
  }
  return open_csv(test, options);
}

std::shared_ptr<Dataset> open_token_text_spec(const std::string& rest, const std::string& spec,
                                              Split split, const SourceOptions& source) {
  const std::vector<std::string> parts = source_parts(rest);
  TokenTextOptions options{.hide_words = source.hide_words};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (!parts[i].starts_with("length="))
      refuse_part(spec, parts, i, "length=N (what its tokens are, the tokenizer says)");
    options.length = whole_number(parts[i].substr(7), spec);
  }
  return open_token_text(parts[0], split, *source.tokenizer, options);
}

void require_tokenizer(const std::string& spec, const SourceOptions& source) {
  if (source.tokenizer == nullptr)
    throw ValueError(cat("data '", spec,
                         "' is text for a tokenizer: name one, as with --tokenizer "
                         "vocab.txt"));
}

std::shared_ptr<Dataset> open_lines_spec(const std::string& rest, const std::string& spec,
                                         Split split, const SourceOptions& source) {
  require_tokenizer(spec, source);
  const std::vector<std::string> parts = source_parts(rest);
  ClassLineOptions options;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].starts_with("length="))
      options.length = whole_number(parts[i].substr(7), spec);
    else if (parts[i].starts_with("test="))
      options.test_file = parts[i].substr(5);
    else if (parts[i] == "class=last" || parts[i] == "class=first")
      options.class_last = parts[i] == "class=last";
    else
      refuse_part(spec, parts, i, "length=N, test=FILE, class=first|last");
  }
  return open_class_lines(parts[0], split, *source.tokenizer, options);
}

std::shared_ptr<Dataset> open_spans_spec(const std::string& rest, const std::string& spec,
                                         Split split, const SourceOptions& source) {
  require_tokenizer(spec, source);
  const std::vector<std::string> parts = source_parts(rest);
  SpanOptions options;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].starts_with("length="))
      options.length = whole_number(parts[i].substr(7), spec);
    else if (parts[i].starts_with("stride="))
      options.stride = whole_number(parts[i].substr(7), spec);
    else if (parts[i].starts_with("question="))
      options.question = whole_number(parts[i].substr(9), spec);
    else if (parts[i].starts_with("test="))
      options.test_file = parts[i].substr(5);
    else
      refuse_part(spec, parts, i, "length=N, stride=N, question=N, test=FILE");
  }
  return open_spans(parts[0], split, *source.tokenizer, options);
}

std::shared_ptr<Dataset> open_text_spec(const std::string& rest, const std::string& spec,
                                        Split split, const SourceOptions& source) {
  const std::vector<std::string> parts = source_parts(rest);
  TextOptions options{.vocabulary = source.vocabulary};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part.starts_with("by="))
      options.unit = text_unit(part.substr(3));
    else if (part.starts_with("length="))
      options.length = whole_number(part.substr(7), spec);
    else if (part.starts_with("words="))
      options.words = whole_number(part.substr(6), spec);
    else
      refuse_part(spec, parts, i, "by=UNIT, length=N, words=N");
    if (part.starts_with("by=") && source.vocabulary != nullptr &&
        options.unit != source.vocabulary->unit())
      throw ValueError(cat("data '", spec, "': the model reads text by ",
                           name(source.vocabulary->unit()), ": leave out ", part));
  }
  return open_text(parts[0], split, options);
}

// "numbers:TRAIN,TEST,SEED,below=N,to=LANGUAGE,pieces=N".
std::shared_ptr<Dataset> open_numbers(const std::string& rest, const std::string& spec, Split split,
                                      const SourceOptions& source) {
  NumberPairOptions options{.vocabulary = source.vocabulary};
  std::int64_t seed = 0;
  std::int64_t* const numbers[] = {&options.train, &options.test, &seed};
  std::size_t given = 0;
  for (const std::string& part :
       rest.empty() ? std::vector<std::string>() : split_text(rest, ',')) {
    if (part.starts_with("below="))
      options.below = whole_number(part.substr(6), spec);
    else if (part.starts_with("pieces="))
      options.pieces = whole_number(part.substr(7), spec);
    else if (part == "to=french")
      options.to = {Language::French};
    else if (part == "to=german")
      options.to = {Language::German};
    else if (given < std::size(numbers) && part.find('=') == std::string::npos)
      *numbers[given++] = whole_number(part, spec);
    else
      throw ValueError(cat("data '", spec, "': '", part,
                           "' is none of below=N, to=french, to=german, pieces=N; numbers takes at "
                           "most three numbers before: numbers:TRAIN,TEST,SEED"));
  }
  options.seed = static_cast<std::uint64_t>(seed);
  return number_pairs(split, options);
}

std::shared_ptr<Dataset> open_pairs_spec(const std::string& rest, const std::string& spec,
                                         Split split, const SourceOptions& source) {
  const std::vector<std::string> parts = source_parts(rest);
  PairOptions options{.vocabulary = source.vocabulary};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].starts_with("pieces="))
      options.pieces = whole_number(parts[i].substr(7), spec);
    else if (parts[i].starts_with("length="))
      options.length = whole_number(parts[i].substr(7), spec);
    else
      refuse_part(spec, parts, i, "pieces=N, length=N");
  }
  return open_pairs(parts[0], split, options);
}

std::shared_ptr<Dataset> open_npy_spec(const std::string& rest, const std::string& spec,
                                       Split split, bool classes) {
  const std::vector<std::string> parts = source_parts(rest, true);
  if (parts.size() != 2)
    throw ValueError(cat("data '", spec, "': two files are needed: npy:INPUTS.npy,TARGETS.npy"));
  TensorDatasetParts set;
  set.input = io::load_npy(parts[0]);
  set.target = io::load_npy(parts[1]);
  if (set.input.rank() < 1)
    throw ShapeError(
        cat(parts[0], ": has shape ", set.input.shape(), ", without an axis of examples"));
  set.description = parts[0];
  if (classes && set.target.rank() == 1 && is_integral(set.target.dtype()))
    set.target = class_targets(set.target, set.classes, parts[1]);
  make_tensor_dataset(set);  // refuses what does not belong together before it is split
  return make_tensor_dataset(split_parts(set, split));
}

}  // namespace

std::string default_data_dir() {
  std::string own = env_text("TENON_DATA_DIR");
  if (!own.empty()) return own;
  const std::string cache = env_text("XDG_CACHE_HOME");
  if (!cache.empty()) return cache + "/tenon";
  const std::string home = env_text("HOME");
  return home.empty() ? "tenon-data" : home + "/.cache/tenon";
}

std::shared_ptr<Dataset> open_idx(const std::string& folder, Split split) {
  const std::string stem = split == Split::Train ? "train" : "t10k";
  const std::string images = find_idx(folder, stem + "-images", "idx3-ubyte");
  const std::string labels = find_idx(folder, stem + "-labels", "idx1-ubyte");
  if (images.empty() || labels.empty())
    throw IoError(cat(folder, ": holds no ", stem,
                      images.empty() ? "-images-idx3-ubyte" : "-labels-idx1-ubyte",
                      " (with or without .gz): check the folder"));
  TensorDatasetParts parts;
  io::IdxOptions options;
  options.channel_axis = true;
  parts.input = io::parse_idx(io::read_file(images), images, options);
  if (parts.input.rank() != 4 || parts.input.dtype() != DType::UInt8)
    throw FormatError(cat(images, ": holds ", parts.input.dtype(), " ", parts.input.shape(),
                          ", not uint8 pictures [N, height, width]"));
  const Tensor given = io::load_idx(labels);
  if (given.rank() != 1)
    throw FormatError(cat(labels, ": holds ", given.shape(), ", not one label for each picture"));
  parts.target = class_targets(given, parts.classes, labels);
  parts.description = cat(parts.input.shape()[0], " pictures of ", images);
  return make_tensor_dataset(std::move(parts));
}

std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split, bool classes) {
  return open_dataset(spec, split, SourceOptions{.classes = classes});
}

std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split, bool classes,
                                      std::shared_ptr<const TableColumns> columns) {
  return open_dataset(spec, split,
                      SourceOptions{.classes = classes, .columns = std::move(columns)});
}

std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split,
                                      const SourceOptions& options) {
  if (options.strict) {
    SourceOptions others = options;
    others.strict = false;
    auto set = open_dataset(spec, split, others);
    if (set != nullptr) refuse_notes(set->notes());
    return set;
  }
  const bool classes = options.classes;
  const std::size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  if (!classes && kind != "csv" && kind != "npy")
    throw ValueError(cat("data '", spec, "': its targets are classes, not quantities"));
  if (is_picture_source(spec)) return open_picture_source(spec, split);
  if (kind == "digits") return open_digits(rest, spec, split);
  if (kind == "scenes") return open_scenes(rest, spec, split);
  if (kind == "random") return open_random(rest, spec, split);
  if (kind == "numbers") return open_numbers(rest, spec, split, options);
  if (kind == "mnist") return open_mnist(rest, split);
  if (kind == "cifar10" || kind == "cifar100") return open_cifar_spec(kind, rest, split);
  const bool known = kind == "idx" || kind == "csv" || kind == "npy" || kind == "text" ||
                     kind == "lines" || kind == "pairs" || kind == "spans";
  if (known && rest.empty())
    throw ValueError(
        cat("data '", spec, "': name what to read: ", kind, kind == "idx" ? ":FOLDER" : ":FILE"));
  if (kind == "idx") return open_idx(rest, split);
  if (kind == "csv") return open_csv_spec(rest, spec, split, classes, options.columns);
  if (kind == "npy") return open_npy_spec(rest, spec, split, classes);
  if (kind == "text" && options.tokenizer != nullptr)
    return open_token_text_spec(rest, spec, split, options);
  if (kind == "text") return open_text_spec(rest, spec, split, options);
  if (kind == "lines") return open_lines_spec(rest, spec, split, options);
  if (kind == "pairs") return open_pairs_spec(rest, spec, split, options);
  if (kind == "spans") return open_spans_spec(rest, spec, split, options);
  const std::string kinds[] = {"digits", "scenes", "random", "mnist", "cifar10", "cifar100",
                               "idx",    "csv",    "npy",    "text",  "lines",   "numbers",
                               "pairs",  "spans",  "folder", "list",  "shards"};
  const std::string near = nearest(kind, kinds, static_cast<int>(std::size(kinds)));
  throw ValueError(
      cat("data '", spec, "' is unknown", near.empty() ? "." : cat("; did you mean '", near, "'?"),
          " It is one of digits[:TRAIN,TEST,SEED], scenes[:TRAIN,TEST,SEED,size=SIDE], "
          "random[:TRAIN,TEST,SEED,size=N,classes=N], mnist[:FOLDER], cifar10[:FOLDER], "
          "cifar100[:FOLDER], idx:FOLDER, "
          "csv:FILE, npy:INPUTS,TARGETS, text:FILE, lines:FILE, numbers[:TRAIN,TEST,SEED], "
          "pairs:FILE, spans:FILE, folder:DIR, list:FILE, shards:PATTERN"));
}

}  // namespace tenon::data
