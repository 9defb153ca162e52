// Datasets by name: opens the data source that --data names.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/text.h>

#include "base/contains.h"
#include "base/make_error.h"
#include "base/str.h"
#include "base/system/env.h"
#include "data/drawn/scenes.h"
#include "data/images/image_spec.h"
#include "data/samples/drawn_parts.h"
#include "data/samples/joined_dataset.h"
#include "data/samples/part_reader.h"
#include "data/samples/published_sets.h"
#include "data/samples/source_parts.h"
#include "data/samples/split.h"
#include "data/samples/split_spec.h"
#include "data/samples/tensor_dataset.h"
#include "data/source_kinds.h"
#include "data/tables/csv_dataset.h"
#include "data/tables/csv_spec.h"
#include "data/tables/row_options.h"
#include "data/text/text_readers.h"
#include "data/text_sources.h"
#include "io/file.h"
#include "io/text/numbers.h"

namespace tenon::data {
namespace {

constexpr std::int64_t kTrainDigits = 60'000, kTestDigits = 10'000;
constexpr std::int64_t kTrainScenes = 50'000, kTestScenes = 10'000;
constexpr std::int64_t kTrainVectors = 2048, kTestVectors = 256, kVectorSize = 26'752;  // FCN-S's
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

// The options of a generated source: numbers in order, "TRAIN,TEST,SEED", named numbers, and the
// share of validation samples.
struct NamedNumber {
  std::string_view name;  // including the "="
  std::int64_t* value;
};

struct DrawnSpec {
  std::vector<std::int64_t> numbers;  // training samples, test samples, seed
  SplitSpec split{};

  std::uint64_t seed(Split part) const {
    return drawn_seed(static_cast<std::uint64_t>(numbers[2]), part);
  }
};

// Parses the options that read_other() does not accept. `form` describes the options, for messages.
template <class ReadOther>
void read_drawn(const std::string& rest, const std::string& spec, const char* form, DrawnSpec& out,
                const ReadOther& read_other) {
  std::size_t given = 0;
  for (const std::string& part :
       rest.empty() ? std::vector<std::string>() : split_text(rest, ',')) {
    if (read_other(part) || read_split_option(part, spec, out.split)) continue;
    if (given >= out.numbers.size() || part.find('=') != std::string::npos)
      throw ValueError(cat("data '", spec, "': '", part, "': ", form));
    out.numbers[given++] = spec_number(part, spec);
  }
  allow_split_options(out.split, "validation", spec,
                      "each part is drawn by a seed of its own, and TEST says how many are for "
                      "testing");
}

void read_numbers(const std::string& rest, const std::string& spec, const char* form,
                  DrawnSpec& out, std::initializer_list<NamedNumber> named) {
  read_drawn(rest, spec, form, out, [&](const std::string& part) {
    const auto* const found = std::find_if(
        named.begin(), named.end(), [&](const NamedNumber& n) { return part.starts_with(n.name); });
    if (found == named.end()) return false;
    *found->value = spec_number(part.substr(found->name.size()), spec);
    return true;
  });
}

// Calls draw(seed, count) for a part; nullptr for a validation part without samples.
template <class Draw>
std::shared_ptr<Dataset> drawn_part(const DrawnSpec& drawn, const std::string& spec, Split part,
                                    const Draw& draw) {
  const std::int64_t validation = drawn_validation(drawn.split.options, drawn.numbers[0], spec);
  const auto one = [&](Split of, std::int64_t count) { return draw(drawn.seed(of), count); };
  if (part == Split::Train) return one(part, drawn.numbers[0]);
  if (part == Split::Test) return one(part, drawn.numbers[1]);
  auto held = validation > 0 ? one(Split::Validation, validation) : nullptr;
  if (part == Split::Validation) return held;
  return joined_parts(
      {one(Split::Train, drawn.numbers[0]), held, one(Split::Test, drawn.numbers[1])});
}

PartReader read_digits(const std::string& rest, const std::string& spec) {
  DrawnSpec drawn{{kTrainDigits, kTestDigits, 0}};
  read_numbers(rest, spec, "digits takes at most three numbers: digits:TRAIN,TEST,SEED", drawn, {});
  return [=](Split part) { return drawn_part(drawn, spec, part, drawn_digits); };
}

// "scenes:TRAIN,TEST,SEED,size=SIDE": as digits, and the images' side.
PartReader read_scenes(const std::string& rest, const std::string& spec) {
  DrawnSpec drawn{{kTrainScenes, kTestScenes, 0}};
  std::int64_t side = kSceneSide;
  read_numbers(rest, spec,
               "scenes takes at most three numbers and a size: scenes:TRAIN,TEST,SEED,size=SIDE",
               drawn, {{"size=", &side}});
  return [=](Split part) {
    return drawn_part(drawn, spec, part, [side](std::uint64_t seed, std::int64_t count) {
      return drawn_scenes(seed, count, side);
    });
  };
}

// "random:TRAIN,TEST,SEED,size=N,classes=N".
PartReader read_random(const std::string& rest, const std::string& spec) {
  DrawnSpec drawn{{kTrainVectors, kTestVectors, 0}};
  std::int64_t size = kVectorSize, classes = kVectorSize;
  read_numbers(rest, spec,
               "random takes at most three numbers, a size and classes: "
               "random:TRAIN,TEST,SEED,size=N,classes=N",
               drawn, {{"size=", &size}, {"classes=", &classes}});
  return [=](Split part) {
    return drawn_part(drawn, spec, part, [=](std::uint64_t seed, std::int64_t count) {
      return random_vectors(seed, count, size, classes);
    });
  };
}

// "FOLDER,validation=0.1": a folder with separate files for the test part.
struct FolderSpec {
  std::string folder;
  SplitOptions split{};
};

FolderSpec read_folder_spec(const std::string& rest, const std::string& spec) {
  const std::vector<std::string> parts = source_parts(rest);
  FolderSpec out{parts[0]};
  SplitSpec split;
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (!read_split_option(parts[i], spec, split))
      refuse_part(spec, parts, i, "validation=SHARE, seed=N, stratify=yes|no, chronological");
  allow_split_options(split, "validation seed stratify chronological", spec,
                      "the test part has files of its own");
  out.split = split.options;
  return out;
}

// The folder that is given, or else that of the command's downloads.
std::string folder_of(const FolderSpec& given, const std::string& kind) {
  std::string folder = given.folder.empty() ? published_folder(kind) : given.folder;
  if (folder.empty())
    throw IoError(cat("data '", kind,
                      "': there is no folder for datasets, because neither HOME nor "
                      "TENON_DATA_DIR names one: name the dataset's own, as in ",
                      kind, ":FOLDER"));
  return folder;
}

PartReader read_mnist(const std::string& rest, const std::string& spec) {
  const FolderSpec given = read_folder_spec(rest, spec);
  const std::string folder = folder_of(given, "mnist");
  if (given.folder.empty() && find_idx(folder, "train-images", "idx3-ubyte").empty())
    throw make_error<IoError>("MNIST is not in ", FileName{folder},
                              ": run 'tenon data fetch mnist', or name its folder: mnist:FOLDER");
  return read_idx(folder, given.split);
}

// "cifar10" and "cifar100": the fetched files, or a folder that contains them.
PartReader read_cifar_spec(const std::string& kind, const std::string& rest,
                           const std::string& spec) {
  const FolderSpec given = read_folder_spec(rest, spec);
  const std::string folder = folder_of(given, kind);
  const char* file = kind == "cifar10" ? "data_batch_1.bin" : "train.bin";
  const std::string first = cat(folder, "/", file);
  io::require_visible(first);
  if (!io::is_there(first))
    throw make_error<IoError>(kind, ": there is no ", file, " in ", FileName{folder}, ": ",
                              given.folder.empty() ? cat("run 'tenon data fetch ", kind,
                                                         "', or name its folder: ", kind, ":FOLDER")
                                                   : "name the folder of its binary version");
  return read_cifar(folder, given.split);
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

// Sets an option of "csv:FILE"; false if the key is not an option of tables.
bool set_csv_option(CsvOptions& options, const std::string& key, const std::string& value,
                    const std::string& spec) {
  if (value.empty()) return false;
  if (key == "label") {
    options.label_name = value;
  } else if (key == "column") {
    options.label_column =
        static_cast<int>(std::min<std::int64_t>(spec_number(value, spec), 1 << 30));
  } else if (key == "shape") {
    for (const std::string& size : split_text(value, 'x'))
      options.image_shape.push_back(spec_number(size, spec));
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
  } else {
    return false;
  }
  return true;
}

PartReader read_csv_spec(const std::string& spec, const SourceOptions& source) {
  auto [file, options, divided] = parse_csv_spec(spec);
  options.classes = source.classes;
  options.columns = source.columns;
  options.split = divided.options;
  return read_csv(file, divided.test, options);
}

// "numbers:TRAIN,TEST,SEED,below=N,to=LANGUAGE,pieces=N".
PartReader read_numbers_spec(const std::string& rest, const std::string& spec,
                             const SourceOptions& source) {
  NumberPairOptions options{.vocabulary = source.vocabulary};
  DrawnSpec drawn{{options.train, options.test, 0}};
  read_drawn(rest, spec,
             "numbers takes below=N, to=french, to=german, pieces=N and validation=SHARE, and at "
             "most three numbers before: numbers:TRAIN,TEST,SEED",
             drawn, [&](const std::string& part) {
               if (part.starts_with("below="))
                 options.below = spec_number(part.substr(6), spec);
               else if (part.starts_with("pieces="))
                 options.pieces = spec_number(part.substr(7), spec);
               else if (part == "to=french")
                 options.to = {Language::French};
               else if (part == "to=german")
                 options.to = {Language::German};
               else
                 return false;
               return true;
             });
  options.train = drawn.numbers[0], options.test = drawn.numbers[1];
  options.seed = static_cast<std::uint64_t>(drawn.numbers[2]);
  options.validation = drawn.split.options.validation;
  return draw_number_pairs(options);
}

// Loads arrays of inputs and targets. Labels are mapped to class numbers by value; empty `values`
// are filled from these labels.
TensorDatasetParts load_arrays(const std::string& inputs, const std::string& targets, bool classes,
                               std::vector<std::int64_t>& values) {
  TensorDatasetParts set;
  set.input = io::load_npy(inputs);
  set.target = io::load_npy(targets);
  if (set.input.rank() < 1)
    throw make_error<ShapeError>(FileName{inputs}, ": has shape ", set.input.shape(),
                                 ", without an axis of samples");
  set.description = inputs;
  set.place = [inputs](std::int64_t number) { return cat(inputs, ", row ", number + 1); };
  if (classes && set.target.rank() == 1 && is_integral(set.target.dtype())) {
    set.target = valued_targets(set.target, values, targets, "row");
    name_by_values(set, values, targets);
  }
  make_tensor_dataset(set);  // refuses what does not belong together before it is divided
  return set;
}

struct Arrays {
  TensorDatasetParts set;
  std::vector<std::int64_t> values, groups;
};

// "npy:INPUTS,TARGETS", and the test part's two files after them.
PartReader read_npy_spec(const std::string& rest, const std::string& spec, bool classes) {
  const std::vector<std::string> parts = source_parts(rest, true);
  std::vector<std::string> files;
  SplitSpec divided;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (path_in_part("npy", parts[i], i) == 0)
      files.push_back(parts[i]);
    else if (!read_split_option(parts[i], spec, divided))
      refuse_part(spec, parts, i, kSplitOptions);
  }
  allow_split_options(divided, "validation split fold seed stratify group chronological", spec,
                      "files of the test part are named behind those of the training part: "
                      "npy:INPUTS,TARGETS,TEST_INPUTS,TEST_TARGETS");
  if (files.size() != 2 && files.size() != 4)
    throw ValueError(cat("data '", spec,
                         "': two files are needed, npy:INPUTS.npy,TARGETS.npy, or four: those of "
                         "the test part behind them"));
  const bool own_test = files.size() == 4;
  if (own_test) divided.test = files[2];
  check_split_spec(divided, spec, files[0]);
  SplitOptions how = divided.options;
  if (own_test) how.test = 0;
  const auto arrays = once([=] {
    Arrays out;
    out.set = load_arrays(files[0], files[1], classes, out.values);
    if (!how.group.empty()) out.groups = whole_numbers(io::load_npy(how.group), how.group);
    return out;
  });
  const auto test = once([=] {
    std::vector<std::int64_t> values = arrays().values;
    TensorDatasetParts out = load_arrays(files[2], files[3], classes, values);
    add_lacking_classes(out, arrays().set, files[2]);
    return out;
  });
  return [=](Split part) {
    const Arrays& own = arrays();
    if (!own_test || part == Split::Train || part == Split::Validation)
      return part_or_null(part_of(own.set, part, how, own.groups));
    if (part == Split::Test) return make_tensor_dataset(test());
    return joined_parts({make_tensor_dataset(own.set), make_tensor_dataset(test())});
  };
}

}  // namespace

std::string default_data_dir() {
  std::string own = env_text("TENON_DATA_DIR");
  if (!own.empty()) return own;
  // As for the cache, a relative path would depend on the current folder.
  const std::string cache = env_text("XDG_CACHE_HOME");
  if (cache.starts_with('/')) return cache + "/tenon";
  const std::string home = env_text("HOME");
  return home.starts_with('/') ? home + "/.cache/tenon" : std::string();
}

std::string published_folder(const std::string& kind) {
  const std::string all = default_data_dir();
  return all.empty() ? all : cat(all, "/", kind);
}

CsvSpec parse_csv_spec(const std::string& spec) {
  const std::vector<std::string> parts = source_parts(spec.substr(spec.find(':') + 1));
  CsvSpec out{.file = parts[0], .options = {}, .divided = {}};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string key = parts[i].substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : parts[i].substr(equals + 1);
    if (!set_csv_option(out.options, key, value, spec) &&
        !read_split_option(parts[i], spec, out.divided))
      refuse_part(spec, parts, i,
                  cat("label=NAME, column=NUMBER, drop=NAME, category=NAME, date=NAME, "
                      "dayfirst=yes|no, decimal=CHAR, thousands=CHAR, memory=SIZE, shape=CxHxW, ",
                      kRowOptions, ", ", kSplitOptions));
  }
  check_split_spec(out.divided, spec, out.file);
  const CsvOptions& options = out.options;
  if (!options.label_name.empty() && options.label_column >= 0)
    throw ValueError(cat("data '", spec, "': label=", options.label_name, " and column=",
                         options.label_column, " both name the label: leave one of them out"));
  if (!options.label_name.empty() && contains(options.left_out, options.label_name))
    throw ValueError(cat("data '", spec, "': drop=", options.label_name,
                         " leaves out the label: leave out one of the options"));
  return out;
}

std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split, bool classes) {
  return open_dataset(spec, split, SourceOptions{.classes = classes});
}

std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split, bool classes,
                                      std::shared_ptr<const TableColumns> columns) {
  return open_dataset(spec, split,
                      SourceOptions{.classes = classes, .columns = std::move(columns)});
}

namespace {

[[noreturn]] void refuse_kind(const std::string& spec, const std::string& kind) {
  std::vector<std::string> names;
  std::string usages;
  for (const SourceKind& known : source_kinds()) {
    names.emplace_back(known.name);
    usages += cat(usages.empty() ? "" : ", ", known.usage);
  }
  const std::string near = nearest(kind, names.data(), static_cast<int>(names.size()));
  throw ValueError(cat("data '", spec, "' is unknown",
                       near.empty() ? "." : cat("; did you mean '", near, "'?"), " It is one of ",
                       usages));
}

PartReader reader_of(const std::string& spec, const SourceOptions& options) {
  const bool classes = options.classes;
  // "digits,validation=0.2" and "mnist,seed=1": options directly after the kind.
  const std::size_t cut = spec.find_first_of(":,");
  const bool no_path = cut != std::string::npos && spec[cut] == ',';
  const std::string kind = spec.substr(0, cut);
  const SourceKind* const known = source_kind(spec);
  if (known == nullptr) refuse_kind(spec, kind);
  const bool drawn = known->generated;
  const std::string rest =
      cut == std::string::npos ? "" : spec.substr(no_path && !drawn ? cut : cut + 1);
  if (!rest.empty())
    refuse_repeated_options(spec, kind,
                            source_parts(no_path && drawn ? "," + rest : rest, kind == "npy"));
  if (const RegisteredSource* own = registered_source(kind)) {
    if (known->needs_path && rest.empty())
      throw ValueError(cat("data '", spec, "': name what to read: ", known->usage));
    return own->open(rest, options);
  }
  if (!classes && kind != "csv" && kind != "npy")
    throw ValueError(cat("data '", spec, "': its targets are classes, not quantities"));
  if (is_image_source(spec)) return read_image_source(spec, options.class_names, options.strict);
  if (kind == "digits") return read_digits(rest, spec);
  if (kind == "scenes") return read_scenes(rest, spec);
  if (kind == "random") return read_random(rest, spec);
  if (kind == "numbers") return read_numbers_spec(rest, spec, options);
  if (kind == "mnist") return read_mnist(rest, spec);
  if (kind == "cifar10" || kind == "cifar100") return read_cifar_spec(kind, rest, spec);
  if (known->needs_path && rest.empty())
    throw ValueError(cat("data '", spec, "': name what to read: ", known->usage));
  if (kind == "idx") {
    const FolderSpec given = read_folder_spec(rest, spec);
    return read_idx(given.folder, given.split);
  }
  if (kind == "csv") return read_csv_spec(spec, options);
  if (kind == "npy") return read_npy_spec(rest, spec, classes);
  if (PartReader text = read_text_source(kind, rest, spec, options)) return text;
  throw ValueError(cat("data '", spec, "': '", kind, "' needs a path: ", known->usage));
}

}  // namespace

Source::Source(const std::string& spec, const SourceOptions& options)
    : open_(reader_of(spec, options)), strict_(options.strict) {}

std::shared_ptr<Dataset> Source::open(Split part) const {
  std::shared_ptr<Dataset> set = open_(part);
  if (set != nullptr && strict_) refuse_notes(set->notes());
  return set;
}

std::shared_ptr<Dataset> open_dataset(const std::string& spec, Split split,
                                      const SourceOptions& options) {
  return Source(spec, options).open(split);
}

}  // namespace tenon::data
