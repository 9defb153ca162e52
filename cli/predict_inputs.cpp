// What 'tenon predict' predicts: samples of a dataset, rows of tables, lines of text, arrays,
// images and videos, and which of them a file holds.
#include "predict_inputs.h"

#include <fmt/core.h>
#include <tenon/compute.h>
#include <tenon/data.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/ops.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "errors.h"
#include "progress.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

Tensor glyph_tensor(const Glyph& glyph) {
  return Tensor::from_data(glyph.pixels.data(), Shape({1, 1, glyph.height, glyph.width}),
                           DType::UInt8);
}

// The image format that the model takes.
struct ImageSize {
  int height, width;
  bool colour;
};

ImageSize image_size(const train::TrainedModel& model, const std::string& file) {
  const models::Info& info = model.info();
  const Shape& input = info.input;
  if (input.rank() == 3 && (input[0] == 1 || input[0] == 3))
    return {static_cast<int>(input[1]), static_cast<int>(input[2]), input[0] == 3};
  if (input.numel() == 784) return {28, 28, false};
  throw ShapeError(
      fmt::format(
          "{}: {} takes inputs of {}, not images; {}", file, model.settings().model, input.str(),
          model.task().output_form() == train::OutputForm::Answer
              ? "give --question, and --text or a file that ends in .txt"
          : info.vocabulary > 0 ? "give texts with --text, or a file of lines that ends in .txt"
          : model.table() != nullptr ? "give a table as csv:FILE if its name does not end in .csv"
                                     : "use --data"),
      {.file = file});
}

// Prints how many samples were not printed.
void print_not_shown(std::int64_t samples, const std::string& name, const PredictOptions& options) {
  if (options.json || samples <= options.count) return;
  const std::string from =
      options.start > 0 ? fmt::format(" from --start {} on", options.start) : "";
  const std::string text =
      fmt::format("{} of {}{} are not shown: --count {} shows all{}",
                  part_size_text(samples - options.count, samples), printable(name), from, samples,
                  options.all() ? "" : "; --json prints and --out FILE.csv writes all");
  fmt::print("{}\n", wrap(text, stdout_terminal().width, 0));
}

// Prints how many predictions are correct, and of which samples.
void print_right(std::int64_t right, std::int64_t labelled, std::int64_t samples,
                 const std::string& name) {
  if (labelled == 0) return;
  const std::string text =
      fmt::format("{} of {} right ({} of {})", thousands(right), thousands(labelled),
                  part_size_text(labelled, samples), printable(name));
  fmt::print("{}\n", wrap(text, stdout_terminal().width, 0));
}

// Adds the source to sample names that are only numbers.
std::string name_within(const std::string& source, const std::string& name) {
  return name.starts_with("sample ") ? fmt::format("{}, {}", source, name) : name;
}

// An array without labels as a dataset [N, …]. A sample has the name that --data gives it: the
// file, `unit` and a number.
void predict_array(const SetPredictor& predict, const std::string& file, const Tensor& inputs,
                   const char* unit,
                   const std::function<Glyph(const Tensor& input)>& glyph_of = {}) {
  if (inputs.rank() == 0 || inputs.size(0) == 0)
    throw ShapeError(fmt::format("{}: {} contains no samples", file, inputs.shape().str()),
                     {.file = file});
  const auto set = data::from_tensors(inputs, zeros({inputs.size(0), 0}).compute());
  predict(
      *set, file,
      [&](const train::Prediction& p) { return fmt::format("{}, {} {}", file, unit, p.index + 1); },
      glyph_of);
}

Glyph grey_glyph(const Tensor& input) {
  return {static_cast<int>(input.size(-1)), static_cast<int>(input.size(-2)),
          input.to_vector<std::uint8_t>(), ""};
}

void predict_idx(const SetPredictor& predict, const std::string& file) {
  const auto [height, width, colour] = image_size(predict.model, file);
  if (colour)
    throw ShapeError(fmt::format("{}: IDX files contain grey images here, and {} takes colour",
                                 file, predict.model.settings().model),
                     {.file = file});
  const Tensor images = io::load_idx(file);
  if (images.rank() != 3 || images.dtype() != DType::UInt8 || images.size(1) != height ||
      images.size(2) != width)
    throw ShapeError(fmt::format("{}: it contains {} {}, the model takes uint8 images of {} x {}",
                                 file, name(images.dtype()), images.shape().str(), height, width),
                     {.file = file});
  predict_array(predict, file, unsqueeze(images, 1).compute(), "image", grey_glyph);
}

// IDX begins with two zero bytes, the type, the number of axes, and the first size. MP4 and MOV
// begin with a box size, which may also have two zero bytes, and four letters.
bool is_idx(std::string_view head) {
  if (head.size() < 8 || !head.starts_with(std::string_view("\0\0", 2))) return false;
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(head[k]); };
  const bool known = byte(2) == 0x08 || byte(2) == 0x09 || (byte(2) >= 0x0b && byte(2) <= 0x0e);
  const bool box = std::all_of(head.begin() + 4, head.begin() + 8, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ' ';
  });
  return known && byte(3) >= 1 && byte(3) <= 8 && !box;
}

// IDX may be gzip-compressed, and no image format begins like gzip.
bool looks_like_idx(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored))
    (void)io::read_file(file);  // throws with the reason
  std::ifstream in(file, std::ios::binary);
  char head[8] = {};
  in.read(head, sizeof head);
  const std::string_view bytes(head, static_cast<std::size_t>(in.gcount()));
  return is_idx(bytes) || bytes.starts_with("\x1f\x8b");
}

void predict_table(const SetPredictor& predict, const std::string& file) {
  const auto set = predict.model.open_rows(file);
  predict(*set, file, [&](const train::Prediction& p) { return name_within(file, p.name); });
}

// For small images, the pixels to draw; for all images, the description of the preprocessing. Of
// several crops the centre is drawn.
Glyph glyph_of(const Tensor& fitted, std::string how) {
  constexpr std::int64_t kMiddle = 4;
  const Tensor input = fitted.rank() == 5 ? select(fitted, 1, kMiddle) : fitted;
  Glyph glyph{static_cast<int>(input.size(3)), static_cast<int>(input.size(2)), {}, std::move(how)};
  if (glyph.width > kLargestDrawn) return glyph;
  const std::vector<std::uint8_t> planes = input.to_vector<std::uint8_t>();
  const std::size_t plane = planes.size() / static_cast<std::size_t>(input.size(1));
  for (std::size_t i = 0; i < plane; ++i) {
    unsigned sum = 0;
    for (std::size_t k = i; k < planes.size(); k += plane) sum += planes[k];
    glyph.pixels.push_back(static_cast<std::uint8_t>(sum / static_cast<unsigned>(input.size(1))));
  }
  return glyph;
}

void predict_video(const SetPredictor& predict, const std::string& file) {
  const train::TrainedModel& model = predict.model;
  if (!model.fits_images() || model.info().input.rank() != 3)
    throw NotSupported(
        fmt::format("{}: video frames need a model that takes image files of any size", file),
        {.file = file});
  const auto set = model.fit(data::open_video(
      file, {.count = static_cast<int>(std::min<std::int64_t>(predict.options.count, 100'000))}));
  const auto images = set->images();
  const std::int64_t before = predict.output.taken();
  predict(
      *set, file, [&](const train::Prediction& p) { return images->name(p.index); },
      [&](const Tensor& input) { return glyph_of(input, model.fitting()); });
  if (predict.output.taken() == before)
    throw FormatError(fmt::format("{}: none of its frames can be decoded", file), {.file = file});
}

Predicted image_of_file(const train::TrainedModel& model, const std::string& file) {
  const auto [height, width, colour] = image_size(model, file);
  Notes notes;
  const io::Image image = io::load_image(file, model.image_reading(colour ? 3 : 1), &notes);
  print_notes(notes);
  const auto predicted = [&](const Tensor& input, Glyph glyph) {
    return Predicted{
        .name = file, .glyph = std::move(glyph), .values = model.predict(input).to_vector<float>()};
  };
  if (model.fits_images() && model.info().input.rank() == 3) {
    const Tensor input = model.fit(image);
    return predicted(input, glyph_of(input, fmt::format("{} x {}, {}", image.width, image.height,
                                                        model.fitting())));
  }
  Fitted fitted;
  Glyph glyph;
  if (colour) {
    fitted = fit(image, width, height);
    glyph = fitted.grey;
    if (width > kLargestDrawn) glyph.pixels.clear();
  } else {
    glyph = prepare(image, width, height, file);
  }
  const std::string size = fmt::format("{} x {}", image.width, image.height);
  glyph.how = glyph.how.empty() ? size : size + ", " + glyph.how;
  const Tensor input =
      colour ? Tensor::from(fitted.planes, {1, 3, height, width}) : glyph_tensor(glyph);
  return predicted(input, std::move(glyph));
}

void predict_lines(const SetPredictor& predict, const std::string& file) {
  const PredictOptions& options = predict.options;
  std::vector<train::TextLine> lines = lines_of(predict.model, file, options);
  const std::int64_t all = std::ssize(lines);
  if (!options.all()) lines.resize(static_cast<std::size_t>(std::min(all, options.count)));
  take_notes(predict.model.notes_on_texts(lines, options.part.allows_seen()), options);
  const std::int64_t right = -predict.output.right(), labelled = -predict.output.labelled();
  for (std::size_t k = 0; k < lines.size(); ++k) {
    Predicted sample = text_of(predict.model, lines[k].name, lines[k].text);
    sample.label = lines[k].label;
    predict.output.add(sample, static_cast<std::int64_t>(k) < options.count);
  }
  if (options.json) return;
  print_right(right + predict.output.right(), labelled + predict.output.labelled(),
              options.start + all, file);
  print_not_shown(all, file, options);
}

// The file of a data source, "rows.csv" for "csv:rows.csv,separator=;": the longest prefix that
// exists, which may contain commas.
std::string file_of(const std::string& name) {
  if (source_kind(name).empty()) return name;
  const std::string rest = name.substr(name.find(':') + 1);
  std::error_code ignored;
  for (std::size_t end = rest.size(); end != std::string::npos && end > 0;
       end = rest.rfind(',', end - 1))
    if (std::filesystem::exists(rest.substr(0, end), ignored)) return rest.substr(0, end);
  return rest.substr(0, rest.find(','));
}

}  // namespace

void SetPredictor::operator()(const data::Dataset& set, const std::string& name, const Named& named,
                              const std::function<Glyph(const Tensor& input)>& glyph_of) const {
  if (options.start >= set.size())
    throw UsageError(
        fmt::format("--start: {} has {}, numbered from 0", name, part_size_text(set.size(), 0)));
  if (options.part.strict) refuse_notes(set.notes());
  std::int64_t shown = 0;
  const std::int64_t right = -output.right(), labelled = -output.labelled();
  // With --strict, results are held back until it is certain that no note is an error.
  std::vector<std::pair<Predicted, bool>> held;
  model.predict(set, options.start, options.all() ? -1 : options.count,
                [&](train::Prediction&& p, const Tensor& input) {
                  Predicted sample{.name = named(p),
                                   .values = std::move(p.values),
                                   .label = p.label,
                                   .target = std::move(p.target)};
                  const bool show = shown < options.count;
                  if (show && !options.json && !options.plain && glyph_of)
                    sample.glyph = glyph_of(input);
                  if (options.part.strict)
                    held.emplace_back(std::move(sample), show);
                  else
                    output.add(sample, show);
                  ++shown;
                });
  if (!set.broken().empty()) fmt::print(stderr, "left out: {}\n", broken_text(set.broken()));
  Notes notes = set.notes();  // decoding may have added some, and found broken images
  if (!own)
    add_seen(model.seen_samples(set, options.start, options.all() ? -1 : options.count), name,
             options, notes);
  take_notes(notes, options);
  for (const auto& [sample, show] : held) output.add(sample, show);
  if (options.json) return;
  print_right(right + output.right(), labelled + output.labelled(), set.size(), name);
  print_not_shown(set.size() - options.start, name, options);
}

void take_notes(const Notes& notes, const PredictOptions& options) {
  if (options.part.strict) refuse_notes(notes);
  print_notes(notes);
}

void add_seen(const std::optional<train::SeenSamples>& seen, const std::string& name,
              const PredictOptions& options, Notes& notes) {
  if (seen && seen->seen > 0)
    notes.push_back(train::note_on_seen(*seen, name, options.part.allows_seen()));
}

std::string source_kind(const std::string& name) {
  const std::string kind = name.substr(0, std::min(name.find(':'), name.size()));
  std::error_code ignored;
  const bool known = kind != name && data::source_kind(kind) != nullptr;
  return known && !std::filesystem::exists(name, ignored) ? kind : "";
}

std::vector<train::TextLine> lines_of(const train::TrainedModel& model, const std::string& file,
                                      const PredictOptions& options) {
  train::TextLines read = model.read_texts(file);
  take_notes(read.notes, options);
  const std::int64_t count = std::ssize(read.lines);
  if (options.start > 0 && options.start >= count)
    throw UsageError(fmt::format("--start: {} has {} line{}, numbered from 0", file,
                                 thousands(count), count == 1 ? "" : "s"));
  read.lines.erase(read.lines.begin(), read.lines.begin() + options.start);
  return std::move(read.lines);
}

Predicted text_of(const train::TrainedModel& model, const std::string& name,
                  const std::string& text) {
  return {.name = name.empty() ? text : name,
          .text = name.empty() ? "" : text,
          .values = model.predict_text(text).to_vector<float>()};
}

void predict_source(SetPredictor predict, const std::string& source) {
  const PredictOptions& options = predict.options;
  const train::Selection selection = predict.model.select_data(source, options.part.split());
  predict.own = selection.own;
  print_notes(selection.notes);
  const auto set = predict.model.open_set(selection, options.part.strict);
  const std::string what = part_text(selection.part, selection.data);
  if (!options.json)
    fmt::print("{}\n\n",
               wrap(fmt::format("{}: {}", printable(what), part_size_text(set->size(), 0)),
                    stdout_terminal().width, 0));
  const Shape shape = set->input_shape();
  const bool drawn = shape.rank() == 3 && set->input_dtype() == DType::UInt8;
  const auto glyph = [&](const Tensor& input) {
    return shape[0] == 1 ? grey_glyph(input) : glyph_of(input, "");
  };
  predict(
      *set, the_part_text(selection.part, selection.data),
      [&](const train::Prediction& p) { return name_within(selection.data, p.name); },
      drawn && (shape[0] == 1 || shape[0] == 3) ? glyph
                                                : std::function<Glyph(const Tensor& input)>());
}

void predict_file(const SetPredictor& predict, const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw IoError(
        fmt::format("{}: this is a folder; give image files, or --data folder:{}", file, file),
        {.file = file});
  const std::string kind = source_kind(file);
  if (kind == "lines" || (kind.empty() && file.ends_with(".txt")))
    return predict_lines(predict, file);
  if (kind == "csv" || (kind.empty() && file.ends_with(".csv")))
    return predict_table(predict, file);
  if (!kind.empty()) return predict_source(predict, file);
  if (file.ends_with(".npy")) return predict_array(predict, file, io::load_npy(file), "row");
  if (io::looks_like_video(file)) return predict_video(predict, file);
  if (looks_like_idx(file)) return predict_idx(predict, file);
  predict.output.add(image_of_file(predict.model, file), true);
  if (const auto seen = predict.model.seen_image(io::read_file(file))) {
    predict.images.samples += seen->samples, predict.images.compared += seen->compared;
    predict.images.seen += seen->seen, predict.images.every = seen->every;
  }
}

void write_file(const SetPredictor& predict, const std::string& file) {
  const std::string kind = source_kind(file);
  if (!kind.empty() && kind != "csv" && kind != "lines")
    throw UsageError(fmt::format("--write: {} is not a file", file), "--out FILE.csv names one");
  const std::string beside = predictions_file(file_of(file));
  std::int64_t rows = 0;
  if (kind == "csv" || (kind.empty() && file.ends_with(".csv"))) {
    rows = predict.model.predict_csv(file, beside, [&](const data::Dataset& set) {
      Notes notes = set.notes();
      add_seen(predict.model.seen_samples(set), file, predict.options, notes);
      take_notes(notes, predict.options);
    });
  } else {
    predict_file(predict, file);
    rows = predict.output.write_table(beside);
  }
  if (predict.options.json)
    predict.output.add_json({{"name", file}, {"rows", rows}, {"written", beside}});
  else
    fmt::print("{}: {} {}, with predictions in {}\n", printable(file), thousands(rows),
               rows == 1 ? "row" : "rows", printable(beside));
}

}  // namespace tenon::cli
