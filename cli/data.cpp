// tenon data: describes a data source and draws contact sheets of it. Downloading is in
// data_fetch.cpp.
#include <fmt/core.h>
#include <tenon/data.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "progress.h"
#include "terminal.h"
#include "trained.h"

namespace tenon::cli {
namespace {

// Tokenized text sources cannot be opened without a tokenizer.
void refuse_texts(const std::string& spec) {
  if (spec.starts_with("lines:") || spec.starts_with("spans:"))
    throw UsageError(fmt::format("{} contains texts, not images", spec),
                     fmt::format("tenon data info {} --tokenizer FILE describes it", spec));
}

// ---- sheet

struct SheetOptions {
  std::string spec, file;
  int columns = 20, scale = 2;
  bool train = false;
};

// Indices of the first `count` samples of each class.
std::vector<std::vector<std::int64_t>> first_of_each_class(const data::Dataset& set, int count) {
  std::vector<std::vector<std::int64_t>> found(static_cast<std::size_t>(set.classes()));
  const auto bytes =
      static_cast<std::size_t>(set.input_shape().numel()) * item_size(set.input_dtype());
  std::vector<unsigned char> input(bytes);
  const auto images = set.images();  // class known without decoding
  std::size_t full = 0;
  for (std::int64_t i = 0; i < set.size() && full < found.size(); ++i) {
    std::int64_t label = images ? images->label(i) : 0;
    if (!images) set.get({&i, 1}, input.data(), &label);
    auto& list = found[static_cast<std::size_t>(label)];
    if (list.size() < static_cast<std::size_t>(count)) {
      list.push_back(i);
      full += list.size() == static_cast<std::size_t>(count);
    }
  }
  return found;
}

std::size_t at(int x, int y, int width) {
  return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
         static_cast<std::size_t>(x);
}

// Draws one image in planar (CHW) layout at (left, top), magnified `scale` times.
void paste(io::Image& sheet, const std::vector<unsigned char>& planes, int side_w, int side_h,
           int left, int top, int scale) {
  const auto channels = static_cast<std::size_t>(sheet.channels);
  const std::size_t plane = planes.size() / channels;
  for (int y = 0; y < side_h * scale; ++y)
    for (int x = 0; x < side_w * scale; ++x)
      for (std::size_t c = 0; c < channels; ++c)
        sheet.pixels[at(left + x, top + y, sheet.width) * channels + c] =
            planes[c * plane + at(x / scale, y / scale, side_w)];
}

int sheet(const SheetOptions& options) {
  if (options.columns < 1 || options.columns > 200) throw UsageError("--columns: give 1 to 200");
  if (options.scale < 1 || options.scale > 16) throw UsageError("--scale: give 1 to 16");
  refuse_texts(options.spec);
  const auto set =
      data::open_dataset(options.spec, options.train ? data::Split::Train : data::Split::Test);
  if (set == nullptr)
    throw UsageError(fmt::format("{} has no test part", options.spec),
                     "--train draws the training part");
  const Shape shape = set->input_shape();
  const bool images = shape.rank() == 3 && (shape[0] == 1 || shape[0] == 3);
  if (!images || set->input_dtype() != DType::UInt8 || set->classes() == 0)
    throw ShapeError(fmt::format(
        "{}: a sheet needs grey or colour images with classes; this source contains {} of {}",
        options.spec, shape.str(), name(set->input_dtype())));
  const int height = static_cast<int>(shape[1]), width = static_cast<int>(shape[2]),
            gap = 2 * options.scale;
  const auto found = first_of_each_class(*set, options.columns);
  io::Image image;
  image.channels = static_cast<int>(shape[0]);
  image.width = options.columns * (width * options.scale + gap) + gap;
  image.height = static_cast<int>(found.size()) * (height * options.scale + gap) + gap;
  image.pixels.assign(at(0, image.height, image.width) * static_cast<std::size_t>(image.channels),
                      48);
  std::vector<unsigned char> pixels(static_cast<std::size_t>(shape.numel()));
  for (std::size_t row = 0; row < found.size(); ++row)
    for (std::size_t column = 0; column < found[row].size(); ++column) {
      std::int64_t label = 0;
      set->get({&found[row][column], 1}, pixels.data(), &label);
      paste(image, pixels, width, height,
            gap + static_cast<int>(column) * (width * options.scale + gap),
            gap + static_cast<int>(row) * (height * options.scale + gap), options.scale);
    }
  io::save_png(options.file, image);
  fmt::print("{}: {} x {} pixels, {} classes in rows, from {}\n", options.file, image.width,
             image.height, found.size(), set->describe());
  return kOk;
}

// ---- show

struct ShowOptions {
  std::string spec, file, augment = "resized_crop,flip", preprocess = "resize,center_crop";
  int rows = 6, columns = 8, size = 128;
  std::int64_t seed = 0;
};

// Mixes a batch of images as the trainer does.
void mix(std::vector<unsigned char>& planes, const Shape& image, const data::MixDraw& draw) {
  const std::int64_t count = static_cast<std::int64_t>(planes.size()) / image.numel();
  const Tensor stored =
      Tensor::from_data(planes.data(), {count, image[0], image[1], image[2]}, DType::UInt8);
  const data::Batch batch =
      train::mixed({cast(stored, DType::Float32), zeros({count}, DType::Int64), count}, draw, 1);
  planes = cast(round(batch.input), DType::UInt8).to_vector<std::uint8_t>();
}

// One row per sample: its evaluation view (possibly several crops), then its augmented views of
// successive epochs.
int show(const ShowOptions& options) {
  if (options.rows < 1 || options.rows > 200) throw UsageError("--rows: give 1 to 200");
  if (options.columns < 2 || options.columns > 200) throw UsageError("--columns: give 2 to 200");
  if (options.size < 8 || options.size > 1024) throw UsageError("--size: give 8 to 1024");
  refuse_texts(options.spec);
  const data::Transforms changes = data::Transforms::parse(options.augment);
  const data::Mixing mixing = changes.mixing();
  data::ImageOptions how;
  how.augment = changes.without_mixing();
  how.mean = {0.5, 0.5, 0.5};
  how.resize = data::Transforms::parse(options.preprocess);
  std::shared_ptr<data::Dataset> set = data::open_dataset(options.spec, data::Split::Train), tested;
  how.input = set->input_shape();
  if (const auto images = set->images()) {
    how.input = {how.input[0], options.size, options.size};
    data::ImageOptions testing = how;
    testing.augment = {};
    tested = data::image_dataset(images, testing);
    how.resize = how.resize.middle_only();
    set = data::image_dataset(images, how);
  } else if (how.augment.any()) {
    set = data::augmented(set, how.augment, how.mean);
  }
  if (how.input.rank() != 3 || set->input_dtype() != DType::UInt8)
    throw UsageError(fmt::format("{} contains no images", set->describe()));
  const int channels = static_cast<int>(how.input[0]), height = static_cast<int>(how.input[1]),
            width = static_cast<int>(how.input[2]), gap = 4;
  if (tested == nullptr) tested = set;
  const int rows = static_cast<int>(std::min<std::int64_t>(options.rows, set->size())),
            views = static_cast<int>(tested->views()), columns = views + options.columns - 1;
  io::Image sheet{columns * (width + gap) + gap, rows * (height + gap) + gap, channels, {}};
  sheet.pixels.assign(at(0, sheet.height, sheet.width) * static_cast<std::size_t>(channels), 48);
  std::vector<std::int64_t> numbers, labels(static_cast<std::size_t>(rows));
  for (int row = 0; row < rows; ++row) numbers.push_back(row * set->size() / rows);
  const auto bytes = static_cast<std::size_t>(how.input.numel());
  const auto seed = static_cast<std::uint64_t>(options.seed);
  std::vector<unsigned char> planes(bytes * numbers.size() * static_cast<std::size_t>(views));
  // Draws `count` columns from `planes`, which contains one image per row and column.
  const auto draw = [&](int left, int count) {
    for (int k = 0; k < rows * count; ++k) {
      const auto first = planes.begin() + static_cast<std::ptrdiff_t>(bytes) * k;
      paste(sheet, {first, first + static_cast<std::ptrdiff_t>(bytes)}, width, height,
            gap + (left + k % count) * (width + gap), gap + k / count * (height + gap), 1);
    }
  };
  tested->get(numbers, planes.data(), labels.data());
  draw(0, views);
  planes.resize(bytes * numbers.size());
  for (int epoch = 0; epoch < options.columns - 1; ++epoch) {
    set->get_augmented(numbers, seed, epoch, planes.data(), labels.data());
    if (mixing.any()) mix(planes, how.input, data::draw_mix(mixing, height, width, seed, epoch, 0));
    draw(views + epoch, 1);
  }
  io::save_png(options.file, sheet);
  fmt::print(
      "{}: {} x {} pixels, {} samples in rows: as in evaluation, then with {} in {} epochs\n",
      options.file, sheet.width, sheet.height, rows, changes.text(), options.columns - 1);
  return kOk;
}

// ---- info

struct InfoOptions {
  std::string spec, task = "classification", tokenizer;
  bool json = false, strict = false;
};

struct Statistics {
  double mean = 0, deviation = 0;  // of the finite values
  std::int64_t not_finite = 0;     // values that are NaN or infinite
  std::string first_not_finite{};  // the sample of the first
  std::vector<std::int64_t> counts;
};

double element(const unsigned char* bytes, DType dtype, std::int64_t i) {
  if (dtype == DType::UInt8) return bytes[i] / 255.0;
  if (dtype == DType::Float32) return reinterpret_cast<const float*>(bytes)[i];
  if (dtype == DType::Float64) return reinterpret_cast<const double*>(bytes)[i];
  if (dtype == DType::Float16)
    return static_cast<float>(reinterpret_cast<const float16*>(bytes)[i]);
  return static_cast<float>(reinterpret_cast<const bfloat16*>(bytes)[i]);
}

// Tokens have no mean.
bool has_pixels_or_numbers(const data::Dataset& set) {
  return is_floating(set.input_dtype()) || set.input_dtype() == DType::UInt8;
}

// Computed over all samples, not estimated from some.
Statistics statistics(const data::Dataset& set) {
  Statistics s;
  // Token sequences and spans have several targets per sample.
  const bool one_class = set.classes() > 0 && set.target_shape().rank() == 0;
  if (one_class) s.counts.resize(static_cast<std::size_t>(set.classes()));
  const std::int64_t numel = set.input_shape().numel();
  const std::size_t input_bytes = static_cast<std::size_t>(numel) * item_size(set.input_dtype()),
                    target_bytes = static_cast<std::size_t>(set.target_shape().numel()) *
                                   item_size(set.target_dtype());
  constexpr std::int64_t kBytesAtOnce = 1 << 24, kMostAtOnce = 256;
  const std::int64_t at_once = std::clamp<std::int64_t>(
      kBytesAtOnce / std::max<std::int64_t>(1, static_cast<std::int64_t>(input_bytes)), 1,
      kMostAtOnce);
  const auto words = [&](std::size_t each) {
    return (each * static_cast<std::size_t>(at_once) + 7) / 8;
  };
  std::vector<double> room(words(input_bytes));
  std::vector<std::int64_t> targets(words(target_bytes)), numbers;
  const auto* bytes = reinterpret_cast<const unsigned char*>(room.data());
  double sum = 0, squares = 0;
  const bool has_values = has_pixels_or_numbers(set);
  const auto images = set.images();
  std::int64_t seen = 0;
  for (std::int64_t first = 0; first < set.size(); first += at_once) {
    numbers.resize(static_cast<std::size_t>(std::min(at_once, set.size() - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    set.get(numbers, room.data(), targets.data());
    const std::vector<std::string> broken = images ? set.broken() : std::vector<std::string>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      // An undecodable image was replaced by another one: skip it.
      if (images && std::binary_search(broken.begin(), broken.end(), images->name(numbers[i])))
        continue;
      ++seen;
      // Samples that do not count have a negative target.
      if (one_class && targets[i] >= 0) ++s.counts[static_cast<std::size_t>(targets[i])];
      for (std::int64_t k = 0; has_values && k < numel; ++k) {
        const double value = element(bytes + i * input_bytes, set.input_dtype(), k);
        if (std::isfinite(value)) {
          sum += value, squares += value * value;
        } else if (++s.not_finite == 1) {
          s.first_not_finite = set.sample_name(numbers[i]);
        }
      }
    }
  }
  const std::int64_t values = seen * numel - s.not_finite;
  if (!has_values || (values == 0 && s.not_finite > 0)) {
    s.mean = s.deviation = std::numeric_limits<double>::quiet_NaN();
    return s;
  }
  const double count = static_cast<double>(std::max<std::int64_t>(1, values));
  s.mean = sum / count;
  s.deviation = std::sqrt(std::max(squares / count - s.mean * s.mean, 0.0));
  return s;
}

// "area; town (3 words: Aix, Bonn, Cork)": the inputs that a network gets from a table.
std::string columns_text(const data::TableColumns& table) {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    const data::TableColumn& column = table.columns[k];
    std::string text = column.name.empty() ? std::to_string(column.number) : column.name;
    if (!column.values.empty()) {
      const std::size_t shown = std::min(kShown, column.values.size());
      const std::vector<std::string> first(
          column.values.begin(), column.values.begin() + static_cast<std::ptrdiff_t>(shown));
      text += fmt::format(" ({} words: {}{})", column.values.size(), join(first, ", "),
                          shown < column.values.size() ? ", …" : "");
    }
    parts.push_back(std::move(text));
  }
  return "columns " + join(parts, "; ");
}

constexpr std::size_t kMostColumnsShown = 100;
constexpr int kTitle = 10;  // width of "validation"

void print_split(const char* title, const data::Dataset* set) {
  const std::string bold = stdout_terminal().paint(TextStyle::Bold, pad_right(title, kTitle));
  if (set == nullptr) {
    fmt::print("{}  none\n", bold);
    return;
  }
  const std::string indent(kTitle + 2, ' ');
  const auto wrapped = [](const std::string& text) {
    fmt::print("{}", wrap(text, stdout_terminal().width, kTitle + 2));
  };
  const Statistics s = statistics(*set);
  fmt::print("{}  {}\n", bold, printable(set->describe()));
  fmt::print("{}{}, input {} {}", indent, part_size_text(set->size(), 0), set->input_shape().str(),
             name(set->input_dtype()));
  if (!s.counts.empty() || !set->text_unit().empty())
    fmt::print(", {} class{}", set->classes(), set->classes() == 1 ? "" : "es");
  fmt::print("\n");
  if (has_pixels_or_numbers(*set))
    fmt::print("{}{} mean {}, standard deviation {}\n", indent,
               set->input_dtype() == DType::UInt8 ? "pixels 0 to 1:" : "values:",
               figure_text(s.mean), figure_text(s.deviation));
  if (s.not_finite > 0)
    wrapped(printable(fmt::format(
        "{} {} NaN or infinite and not in these figures: the first in {}; training refuses such "
        "samples",
        thousands(s.not_finite), s.not_finite == 1 ? "value is" : "values are",
        s.first_not_finite)));
  if (const auto table = set->table(); table && table->columns.size() <= kMostColumnsShown)
    wrapped(printable(columns_text(*table)));
  if (const std::vector<std::string> broken = set->broken(); !broken.empty())
    wrapped(broken_text(broken));
  if (s.counts.empty() || s.counts.size() > 30) return;
  const std::vector<std::string> names = set->class_names();
  std::vector<std::string> parts;
  for (std::size_t c = 0; c < s.counts.size(); ++c)
    parts.push_back(fmt::format("{}: {}", c < names.size() ? names[c] : std::to_string(c),
                                thousands(s.counts[c])));
  wrapped("samples per class: " + printable(join(parts, ", ")));
}

std::vector<std::string> note_lines(const data::Dataset* set) {
  std::vector<std::string> lines;
  if (set != nullptr)
    for (const Note& note : set->notes()) lines.push_back(to_string(note));
  return lines;
}

Json json_of(const data::Dataset* given) {
  if (given == nullptr) return nullptr;
  const data::Dataset& set = *given;
  const Statistics s = statistics(set);
  const Shape input = set.input_shape();
  return {{"describe", set.describe()},
          {"size", set.size()},
          {"dtype", name(set.input_dtype())},
          {"input", std::vector<std::int64_t>(input.begin(), input.end())},
          {"classes", set.classes()},
          {"mean", s.mean},
          {"std", s.deviation},
          {"not_finite", s.not_finite},
          {"counts", s.counts},
          {"label", set.table() ? set.table()->label_text() : ""},
          {"broken", set.broken()},
          {"notes", note_lines(given)}};
}

int info(const InfoOptions& options) {
  data::SourceOptions how;
  train::find_task(options.task)->set_reading(how);
  if (!options.tokenizer.empty())
    how.tokenizer =
        std::make_shared<const data::Tokenizer>(data::Tokenizer::open(options.tokenizer));
  how.strict = options.strict;
  const data::Source source(options.spec, how);
  const auto train = source.open(data::Split::Train),
             validation = source.open(data::Split::Validation),
             test = source.open(data::Split::Test);
  if (options.json) {
    print(Json{{"train", json_of(train.get())},
               {"validation", json_of(validation.get())},
               {"test", json_of(test.get())}},
          2);
    return kOk;
  }
  if (const auto table = train->table(); table != nullptr && !table->label_text().empty())
    fmt::print("{}", wrap("label: " + printable(table->label_text()), stdout_terminal().width, 7));
  print_split("train", train.get());
  print_split("validation", validation.get());
  print_split("test", test.get());
  std::vector<std::string> said;  // several parts may report the same note
  for (const auto& set : {train, validation, test})
    for (const std::string& line : note_lines(set.get()))
      if (std::find(said.begin(), said.end(), line) == said.end()) said.push_back(line);
  for (const std::string& line : said)
    fmt::print("{}", wrap("note: " + printable(line), stdout_terminal().width, 6));
  return kOk;
}

// ---- tables

void add_spec(Command& command, std::string& spec) {
  command.positional(spec, "SPEC", kDataSpecHelp).suggestions = {"digits", "scenes", "mnist"};
}

Command sheet_command() {
  auto options = std::make_shared<SheetOptions>();
  Command command;
  command.name = "sheet";
  command.summary = "draw samples of every class into one PNG";
  command.about =
      "Writes a contact sheet: one row per class with its first samples from left to right. Look "
      "at data before you train on it.";
  command.examples = {
      {"tenon data sheet digits digits.png", "200 synthetic digits."},
      {"tenon data sheet scenes scenes.png", "Colour images of ten objects."},
      {"tenon data sheet mnist mnist.png --columns 30 --scale 1", "MNIST, smaller and more."}};
  add_spec(command, options->spec);
  command.positional(options->file, "FILE.png", "image to write").completes = Completes::Files;
  command.option(options->columns, "--columns", "N", "samples of each class", "20");
  command.option(options->scale, "--scale", "N", "magnification: output pixels per image pixel",
                 "2");
  command.flag(options->train, "--train", "draw the training part instead of the test part");
  command.run = [options] { return sheet(*options); };
  return command;
}

Command show_command() {
  auto options = std::make_shared<ShowOptions>();
  Command command;
  command.name = "show";
  command.summary = "draw augmented images into one PNG";
  command.about =
      "Writes a sheet with one row per training sample: the image as in evaluation, then as "
      "augmented in the first epochs. Augmentation depends on the seed, the epoch and the sample "
      "alone, so the sheet shows the images that a run with this seed trains on. LIST names "
      "transforms, with parameters after '=', for example jitter=0.4:0.4:0.4:0.1. mixup and cutmix "
      "mix the images of a column here instead of a batch. Transforms:\n";
  for (const data::Transforms::Known& known : data::Transforms::known())
    command.about += fmt::format("\n{}: {}{}.", known.usage, known.about,
                                 known.defaults.empty() ? "" : "; default " + known.defaults);
  command.examples = {
      {"tenon data show folder:photos sheet.png", "Default augmentation of photographs."},
      {"tenon data show folder:photos sheet.png --augment flip,rotate,randaugment",
       "Any list of transforms."},
      {"tenon data show scenes sheet.png --augment crop=4,flip,jitter=0.4", "Synthetic images."}};
  add_spec(command, options->spec);
  command.positional(options->file, "FILE.png", "image to write").completes = Completes::Files;
  command.option(options->augment, "--augment", "LIST", "augmentation, as in tenon train",
                 "resized_crop,flip");
  command.option(options->preprocess, "--preprocess", "LIST",
                 "preprocessing of image files in evaluation; resize,ten_crop draws all ten crops",
                 "resize,center_crop");
  command.option(options->rows, "--rows", "N", "samples", "6");
  command.option(options->columns, "--columns", "N",
                 "images per sample, where ten crops count as one", "8");
  command.option(options->size, "--size", "N", "side length of image files", "128");
  command.option(options->seed, "--seed", "N", "random seed of the augmentation", "0");
  command.run = [options] { return show(*options); };
  return command;
}

Command info_command() {
  auto options = std::make_shared<InfoOptions>();
  Command command;
  command.name = "info";
  command.summary = "describe a data source";
  command.about =
      "Opens a data source and prints for its training, validation and test part the number of "
      "samples, shape and type, mean and standard deviation, and the number of samples per class. "
      "Notes list what was skipped or assumed, and the classes that a part lacks.";
  command.examples = {
      {"tenon data info digits", "The synthetic digits."},
      {"tenon data info csv:flowers.csv", "A table with the class in the last column."},
      {"tenon data info csv:houses.csv,label=price,drop=id,split=0.2 --task regression",
       "Regression on a table without column id; a fifth of it is the test part."},
      {"tenon data info folder:photos,group=prefix",
       "Photographs named patient3_017.jpg; all images of a patient are in one part."},
      {"tenon data info lines:texts.txt --tokenizer vocab.txt",
       "Lines of text with a class each."}};
  add_spec(command, options->spec);
  command
      .option(options->task, "--task", "NAME", "kind of label, numeric for regression",
              "classification")
      .choices = train::task_names();
  command
      .option(options->tokenizer, "--tokenizer", "FILE",
              "tokenizer for text; required for lines: and spans:")
      .completes = Completes::Files;
  command.flag(options->json, "--json", "print JSON");
  command.flag(options->strict, "--strict", "treat notes as errors");
  command.run = [options] { return info(*options); };
  return command;
}

}  // namespace

Command data_command() {
  Command command;
  command.name = "data";
  command.summary = "download datasets, inspect a data source";
  command.about =
      "All commands name a data source in the same way:\ndigits, scenes: synthetic images, no "
      "download; digits:5000,1000 (fewer), scenes:2000,500,size=224 (larger)\nrandom: random "
      "vectors with random classes, for benchmarks; size=N, classes=N\nmnist, cifar10, cifar100: "
      "downloaded with 'tenon data fetch'; or mnist:DIR, cifar10:DIR (the binary version), idx:DIR "
      "(MNIST's format)\ncsv:FILE: table; label=NAME or column=NUMBER, drop=NAME, category=NAME, "
      "date=NAME, shape=CxHxW, header=yes or no, decimal=comma, thousands=CHAR, encoding=latin1, "
      "separator=CHAR, comment=CHAR\nnpy:INPUTS,TARGETS: NumPy arrays\ntext:FILE: text for "
      "language models; by=chars, words, pieces or bytes, length=N\nnumbers: number words for "
      "translation; below=N, to=french or to=german\npairs:FILE: lines of SOURCE TAB "
      "TRANSLATION\nlines:FILE: lines of CLASS TAB TEXT; spans:FILE: lines of QUESTION TAB TEXT "
      "TAB ANSWER TAB POSITION; both need --tokenizer\nfolder:DIR: images of any size in a folder "
      "per class, or in train/, val/ and test/ with such folders; list:FILE: lines of "
      "PATH,CLASS; shards:PATTERN: WebDataset tar files. Options: size=SIDE, grey, broken=error; "
      "for videos frames=N or every=SECONDS\n\nSamples are split into a training, a validation and "
      "a test part: "
      "validation=SHARE (0.1), split=SHARE (0.1) or test=PATH or fold=I/K for the test part, "
      "seed=N, stratify=no, group=NAME, chronological.";
  command.children = {data_fetch_command(), sheet_command(), show_command(), info_command()};
  return command;
}

}  // namespace tenon::cli
