// tenon predict: what a trained model sees in pictures, IDX files or held-out examples.
#include <fmt/core.h>
#include <tenon/data.h>
#include <tenon/eval.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/pictures.h>
#include <tenon/train.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "picture.h"
#include "predict_language.h"
#include "progress.h"
#include "terminal.h"
#include "trained.h"
#include "tuning.h"

namespace tenon::cli {
namespace {

struct PredictOptions {
  TrainedOptions trained;
  std::string data;
  std::vector<std::string> files, texts, questions;
  std::int64_t count = 5, start = 0;
  int top = 3, threads = 0;
  std::string device = "cpu", tune = "read";
  bool json = false, plain = false, write = false;
};

// Something to classify, with what is known of it.
constexpr int kLeastBeside = 44;  // columns that words beside a picture take

struct Sample {
  std::string name;
  Tensor input;  ///< uint8 [1, C, H, W], or values as the data source has them
  Glyph glyph;   ///< empty when there is nothing to draw
  std::int64_t label = -1;
  std::vector<float> target{};  ///< of a regression, where it is known
};

Tensor glyph_tensor(const Glyph& glyph) {
  return Tensor::from_data(glyph.pixels.data(), Shape({1, 1, glyph.height, glyph.width}),
                           DType::UInt8);
}

// Pictures that the model takes.
struct PictureSize {
  int height, width;
  bool colour;
};

PictureSize picture_size(const train::TrainedModel& model, const std::string& file) {
  const models::Info info = model.settings().model_info();
  const Shape& input = info.input;
  if (input.rank() == 3 && (input[0] == 1 || input[0] == 3))
    return {static_cast<int>(input[1]), static_cast<int>(input[2]), input[0] == 3};
  if (input.numel() == 784) return {28, 28, false};
  throw ShapeError(fmt::format(
      "{}: {} takes inputs of {}, not pictures; {}", file, model.settings().model, input.str(),
      info.finds_spans()    ? "ask it with --question, of --text or a file that ends in .txt"
      : info.vocabulary > 0 ? "give texts with --text, or a file of lines that ends in .txt"
                            : "use --data"));
}

// A picture of this size is small enough to be drawn beside the words.
constexpr int kLargestDrawn = 64;

std::vector<Sample> samples_of_idx(const train::TrainedModel& model, const std::string& file,
                                   const PredictOptions& options) {
  const auto [height, width, colour] = picture_size(model, file);
  if (colour)
    throw ShapeError(fmt::format("{}: IDX files hold grey pictures here, and {} takes colour", file,
                                 model.settings().model));
  const Tensor pictures = io::load_idx(file);
  if (pictures.rank() != 3 || pictures.dtype() != DType::UInt8 || pictures.size(1) != height ||
      pictures.size(2) != width)
    throw ShapeError(fmt::format("{}: it holds {} {}, the model takes uint8 pictures of {} x {}",
                                 file, name(pictures.dtype()), pictures.shape().str(), height,
                                 width));
  if (options.start >= pictures.size(0))
    throw UsageError(
        fmt::format("--start: {} holds {} pictures, numbered from 0", file, pictures.size(0)));
  std::vector<Sample> samples;
  const auto* bytes = static_cast<const std::uint8_t*>(pictures.data());
  const std::int64_t numel = std::int64_t{height} * width,
                     end = std::min(pictures.size(0), options.start + options.count);
  for (std::int64_t i = options.start; i < end; ++i) {
    Glyph glyph{width, height, {bytes + i * numel, bytes + (i + 1) * numel}, ""};
    samples.push_back({fmt::format("{} #{}", file, i), glyph_tensor(glyph), glyph, -1, {}});
  }
  return samples;
}

// IDX begins with two zero bytes, gzip with 1f 8b; no picture does.
bool looks_like_idx(const std::string& file) {
  const std::string bytes = io::read_file(file);
  return bytes.starts_with(std::string_view("\0\0", 2)) || bytes.starts_with("\x1f\x8b");
}

// "rows.csv" gives "rows.predictions.csv".
std::string file_beside(const std::string& file) {
  return (file.ends_with(".csv") ? file.substr(0, file.size() - 4) : file) + ".predictions.csv";
}

// Rows without a label.
std::vector<Sample> samples_of_table(const train::TrainedModel& model, const std::string& file,
                                     const PredictOptions& options) {
  const auto set = data::open_csv(file, {.labelled = false, .columns = model.table()});
  const std::int64_t columns = set->input_shape().numel(),
                     wanted = model.settings().model_info().input.numel();
  if (columns != wanted)
    throw ShapeError(fmt::format(
        "{}: its rows give {} inputs, and {} takes {}{}", file, columns, model.settings().model,
        wanted, columns == wanted + 1 ? fmt::format("; with labels: --data csv:{}", file) : ""));
  if (options.start >= set->size())
    throw UsageError(fmt::format("--start: {} holds {} rows, numbered from 0", file, set->size()));
  std::vector<Sample> samples;
  for (std::int64_t i = options.start; i < std::min(set->size(), options.start + options.count);
       ++i) {
    std::vector<float> row(static_cast<std::size_t>(columns));
    float target = 0;
    set->get({&i, 1}, row.data(), &target);
    samples.push_back(
        {fmt::format("{} row {}", file, i), Tensor::from(row, {1, columns}), {}, -1, {}});
  }
  return samples;
}

// Lines of a text file.
std::vector<std::string> lines_of(const std::string& file, const PredictOptions& options) {
  const std::string text = io::read_file(file);
  std::vector<std::string> out;
  std::int64_t line = 0;
  for (std::size_t from = 0; from < text.size() && std::ssize(out) < options.count; ++line) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    if (line >= options.start && end > from) out.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

// Of pictures small enough, what is drawn beside the words; of all of them, what was done. Of
// several crops the middle is drawn.
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

std::vector<Sample> samples_of_video(const train::TrainedModel& model, const std::string& file,
                                     const PredictOptions& options) {
  if (!model.fits_pictures() || model.settings().model_info().input.rank() != 3)
    throw NotSupported(
        fmt::format("{}: frames of videos are for models of pictures of any size", file));
  const auto set = model.fit(data::open_video(
      file, {.count = static_cast<int>(std::min<std::int64_t>(options.count, 100'000))}));
  const auto pictures = set->pictures();
  Shape shape({1});
  for (const std::int64_t size : set->input_shape()) shape.push_back(size);
  std::vector<std::uint8_t> input(static_cast<std::size_t>(shape.numel()));
  std::vector<Sample> samples;
  std::int64_t label = 0;
  for (std::int64_t k = 0; k < set->size(); ++k) {
    set->get({&k, 1}, input.data(), &label);
    if (label == data::kIgnoredTarget) continue;
    const Tensor fitted = Tensor::from_data(input.data(), shape, DType::UInt8);
    samples.push_back({pictures->name(k), fitted, glyph_of(fitted, model.fitting()), -1, {}});
  }
  if (!set->broken().empty()) fmt::print(stderr, "left out: {}\n", broken_text(set->broken()));
  if (samples.empty())
    throw FormatError(fmt::format("{}: none of its frames can be decoded", file));
  return samples;
}

std::vector<Sample> samples_of_file(const train::TrainedModel& model, const std::string& file,
                                    const PredictOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw IoError(fmt::format("{}: this is a folder; give picture files", file));
  if (file.ends_with(".csv")) return samples_of_table(model, file, options);
  if (looks_like_idx(file)) return samples_of_idx(model, file, options);
  if (io::looks_like_video(file)) return samples_of_video(model, file, options);
  const auto [height, width, colour] = picture_size(model, file);
  Notes notes;
  const io::Image image = io::load_image(file, model.image_reading(colour ? 3 : 1), &notes);
  for (const Note& note : notes) fmt::print(stderr, "{}\n", to_string(note));
  if (model.fits_pictures() && model.settings().model_info().input.rank() == 3) {
    const Tensor input = model.fit(image);
    return {
        {file,
         input,
         glyph_of(input, fmt::format("{} x {}, {}", image.width, image.height, model.fitting())),
         -1,
         {}}};
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
  return {{file, input, glyph, -1, {}}};
}

std::vector<Sample> samples_of_data(const train::TrainedModel& model,
                                    const PredictOptions& options) {
  const auto set = model.test_set(options.data);
  if (options.start >= set->size())
    throw UsageError(
        fmt::format("--start: {} has {} test samples, numbered from 0", options.data, set->size()));
  const Shape shape = set->input_shape();
  const auto bytes = static_cast<std::size_t>(shape.numel()) * item_size(set->input_dtype());
  Shape batch({1});
  for (const std::int64_t size : shape) batch.push_back(size);
  std::vector<Sample> samples;
  std::vector<std::string> broken;
  for (std::int64_t i = options.start; i < std::min(set->size(), options.start + options.count);
       ++i) {
    std::vector<std::uint8_t> input(bytes);
    std::vector<std::byte> target(static_cast<std::size_t>(set->target_shape().numel()) *
                                  item_size(set->target_dtype()));
    set->get({&i, 1}, input.data(), target.data());
    const Tensor truth = Tensor::from_data(target.data(), set->target_shape(), set->target_dtype());
    if (set->pictures() != nullptr && truth.item<std::int64_t>() == data::kIgnoredTarget) {
      broken.push_back(set->pictures()->name(i));
      continue;
    }
    Sample sample{fmt::format("{} test #{}", options.data, i),
                  Tensor::from_data(input.data(), batch, set->input_dtype()),
                  {},
                  set->classes() > 0 && truth.numel() == 1 ? truth.item<std::int64_t>() : -1,
                  {}};
    if (model.is_regression()) sample.target = truth.to(DType::Float32).to_vector<float>();
    if (shape.rank() == 3 && shape[0] == 1 && set->input_dtype() == DType::UInt8)
      sample.glyph = {static_cast<int>(shape[2]), static_cast<int>(shape[1]), input, ""};
    if (shape.rank() == 3 && shape[0] == 3 && set->input_dtype() == DType::UInt8)
      sample.glyph = glyph_of(sample.input, "");
    samples.push_back(std::move(sample));
  }
  if (!broken.empty()) fmt::print(stderr, "left out: {}\n", broken_text(broken));
  return samples;
}

std::vector<int> ranking(const std::vector<float>& probabilities) {
  std::vector<int> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return probabilities[static_cast<std::size_t>(a)] > probabilities[static_cast<std::size_t>(b)];
  });
  return order;
}

std::string class_bar(double share) {
  const Terminal& terminal = stdout_terminal();
  const int full = static_cast<int>(std::lround(share * 24));
  std::string text;
  for (int i = 0; i < 24; ++i)
    text += i < full ? (terminal.utf8 ? "█" : "#") : (terminal.utf8 ? " " : ".");
  return terminal.paint(TextStyle::Green, text);
}

std::string name_of(const std::vector<std::string>& names, std::int64_t number) {
  const auto at = static_cast<std::size_t>(number);
  return at < names.size() ? names[at] : std::to_string(number);
}

std::string shown_name(const std::vector<std::string>& names, std::int64_t number) {
  return printable(name_of(names, number));
}

// Where the network gives NaN, every order of the classes is as good as another.
bool is_right(const Sample& sample, const std::vector<float>& probabilities) {
  const int best = ranking(probabilities)[0];
  return sample.label == best && std::isfinite(probabilities[static_cast<std::size_t>(best)]);
}

// The words beside the picture: name, verdict, the likeliest classes.
std::vector<std::string> verdict(const Sample& sample, const std::vector<float>& probabilities,
                                 const std::vector<std::string>& names, int top) {
  const Terminal& terminal = stdout_terminal();
  const std::vector<int> order = ranking(probabilities);
  const double sure = static_cast<double>(probabilities[static_cast<std::size_t>(order[0])]);
  std::vector<std::string> lines = {terminal.paint(TextStyle::Bold, printable(sample.name))};
  std::string said = fmt::format("class {}, {}", shown_name(names, order[0]), percent(sure));
  if (!std::isfinite(sure))
    said = terminal.paint(TextStyle::Red, "no class: what the network gives is not finite");
  else if (sample.label >= 0)
    said += sample.label == order[0]
                ? terminal.paint(TextStyle::Green, "  right")
                : terminal.paint(TextStyle::Red,
                                 fmt::format("  wrong: it is {}", shown_name(names, sample.label)));
  if (sure < 0.6) said += terminal.paint(TextStyle::Yellow, "  (unsure)");
  lines.push_back(said);
  lines.emplace_back();
  const std::size_t shown = std::min(order.size(), static_cast<std::size_t>(top));
  int widest = 3;
  for (std::size_t i = 0; i < shown; ++i)
    widest = std::max(widest, columns(shown_name(names, order[i])));
  for (std::size_t i = 0; i < shown; ++i) {
    const double share = static_cast<double>(probabilities[static_cast<std::size_t>(order[i])]);
    lines.push_back(fmt::format("{} {} {:>8}", pad_left(shown_name(names, order[i]), widest),
                                class_bar(share), percent(share)));
  }
  if (!sample.glyph.how.empty()) {
    lines.emplace_back();
    const std::string how =
        wrap(sample.glyph.how, std::max(kLeastBeside, terminal.width - sample.glyph.width - 3), 0);
    for (std::size_t start = 0; start < how.size(); start = how.find('\n', start) + 1)
      lines.push_back(
          terminal.paint(TextStyle::Dim, how.substr(start, how.find('\n', start) - start)));
  }
  return lines;
}

void print_sample(const Sample& sample, const std::vector<float>& probabilities,
                  const std::vector<std::string>& names, const PredictOptions& options) {
  const std::vector<std::string> words = verdict(sample, probabilities, names, options.top);
  std::vector<std::string> picture;
  if (!options.plain && !sample.glyph.pixels.empty()) picture = draw(sample.glyph);
  int width = picture.empty() ? 0 : sample.glyph.width + 2;
  if (width + kLeastBeside > stdout_terminal().width) {  // the words stand below
    for (const std::string& line : picture) fmt::print("{}\n", line);
    picture.clear();
    width = 0;
  }
  for (std::size_t i = 0; i < std::max(words.size(), picture.size()); ++i) {
    std::string line =
        picture.empty() ? "" : pad_right(i < picture.size() ? picture[i] : "", width);
    if (i < words.size()) line += words[i];
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
  fmt::print("\n");
}

Json json_of(const Sample& sample, const std::vector<float>& probabilities,
             const std::vector<std::string>& names, int top) {
  constexpr std::size_t kMostListed = 10'000;  // a vocabulary's are more: its likeliest are given
  const int best = ranking(probabilities)[0];
  Json json{{"name", sample.name},
            {"class", best},
            {"class_name", name_of(names, best)},
            {"probability", probabilities[static_cast<std::size_t>(best)]}};
  if (sample.label >= 0) {
    json["label"] = sample.label;
    json["right"] = is_right(sample, probabilities);
  }
  if (!sample.glyph.how.empty()) json["prepared"] = sample.glyph.how;
  if (probabilities.size() <= kMostListed) {
    json["probabilities"] = probabilities;
    return json;
  }
  const std::vector<int> order = ranking(probabilities);
  json["likeliest"] = Json::array();
  for (std::size_t k = 0; k < std::min(order.size(), static_cast<std::size_t>(top)); ++k)
    json["likeliest"].push_back(
        {{"class_name", name_of(names, order[k])},
         {"probability", probabilities[static_cast<std::size_t>(order[k])]}});
  return json;
}

std::string values_text(const std::vector<float>& values) {
  std::vector<std::string> words;
  words.reserve(values.size());
  for (const float value : values) words.push_back(quantity_text(static_cast<double>(value)));
  return join(words, ", ");
}

void print_values(const Sample& sample, const std::vector<float>& values) {
  fmt::print("{}  {}", stdout_terminal().paint(TextStyle::Bold, printable(sample.name)),
             values_text(values));
  if (!sample.target.empty()) fmt::print("  (it is {})", values_text(sample.target));
  fmt::print("\n");
}

Json json_of_values(const Sample& sample, const std::vector<float>& values) {
  Json json{{"name", sample.name}, {"values", values}};
  if (!sample.target.empty()) json["target"] = sample.target;
  return json;
}

TextQuestions questions_of(const PredictOptions& o) {
  return {o.texts, o.questions, o.data, o.start, o.count, o.top, o.json};
}

// Answers to every question from every text, or to those of a set.
int run_answers(const train::TrainedModel& model, const PredictOptions& options) {
  const bool texts_given = !options.texts.empty() || !options.files.empty();
  const bool asked = !options.questions.empty() && texts_given && options.data.empty(),
             of_set = options.questions.empty() && !texts_given && !options.data.empty();
  if (!asked && !of_set)
    throw UsageError(
        fmt::format("tenon predict: {} finds answers in texts", model.settings().model),
        fmt::format("tenon predict {} --question 'Who?' --text 'The text that says it.', or --data "
                    "spans:FILE",
                    shell_word(options.trained.run)));
  TextQuestions all = questions_of(options);
  for (const std::string& file : options.files) all.texts.push_back(io::read_file(file));
  return predict_answers(model, all);
}

// The token behind each text, or its translation.
int run_language(const train::TrainedModel& model, const PredictOptions& options) {
  TextQuestions asked = questions_of(options);
  for (const std::string& file : options.files) {
    if (!file.ends_with(".txt"))
      throw UsageError(
          fmt::format("{}: {} {} texts", file, model.settings().model,
                      model.is_translator() ? "translates" : "goes on from"),
          fmt::format("give --text WORDS or lines in a file that ends in .txt; tenon generate {} "
                      "--prompt WORDS writes on",
                      shell_word(options.trained.run)));
    for (std::string& line : lines_of(file, options)) asked.texts.push_back(std::move(line));
  }
  if (!options.questions.empty())
    throw UsageError(
        fmt::format("--question: {} finds no answers in texts", model.settings().model),
        use_of(model, options.trained));
  return predict_language(model, asked);
}

void check(const PredictOptions& options) {
  if (options.files.empty() && options.data.empty() && options.texts.empty() &&
      options.questions.empty())
    throw UsageError("tenon predict: nothing to predict",
                     "give FILE... (PNG, JPEG, PGM, IDX, CSV, TXT), --text WORDS, or held-out "
                     "examples with --data digits, text:FILE or numbers");
  if (options.count < 1) throw UsageError("--count: give 1 or more");
  if (options.start < 0) throw UsageError("--start: numbers begin at 0");
  if (options.top < 1) throw UsageError("--top: give 1 or more");
  if (options.write && (options.files.empty() || !options.data.empty()))
    throw UsageError("--write: give tables to predict", "as in tenon predict RUN rows.csv --write");
}

// What is for tables and pictures.
void refuse_with_texts(const train::TrainedModel& model, const PredictOptions& options) {
  const std::string& name = model.settings().model;
  if (options.write)
    throw UsageError(fmt::format("--write: {} reads texts, not tables", name),
                     "--json gives what it tells to programs");
  if (!options.trained.picture.empty())
    throw UsageError(fmt::format("--picture: {} reads texts, not pictures", name));
}

int run_predict(const PredictOptions& options) {
  check(options);
  use_threads(options.threads);
  set_device(options.device);
  set_tuning(options.tune);
  const train::TrainedModel model = open_trained(options.trained);
  const models::Info info = model.settings().model_info();
  set_precision(precision_from_name(model.settings().precision));
  if (info.takes_tokens())
    refuse_with_texts(model, options);
  else if (!options.texts.empty() && options.questions.empty())
    throw UsageError(fmt::format("--text: {} reads no text", model.settings().model),
                     use_of(model, options.trained));
  if (info.tokens && !info.masked && !info.finds_spans()) return run_language(model, options);
  if (info.finds_spans()) return run_answers(model, options);
  if (info.tokens && info.masked && !options.data.empty())
    throw UsageError(
        fmt::format("--data {}: {} tells the word at [MASK] of a text; tenon eval {} --data {} "
                    "measures it on held-out words",
                    options.data, model.settings().model, shell_word(options.trained.run),
                    shell_word(options.data)),
        fmt::format("tenon predict {} --text 'a text with a [MASK] in it'",
                    shell_word(options.trained.run)));
  if (!options.questions.empty())
    throw UsageError(
        fmt::format("--question: {} finds no answers in texts", model.settings().model),
        use_of(model, options.trained));
  Json json = Json::array();
  std::int64_t labelled = 0, right = 0;
  const auto show = [&](const Sample& sample) {
    if (model.is_regression()) {
      const std::vector<float> values = model.predict(sample.input).to_vector<float>();
      if (options.json)
        json.push_back(json_of_values(sample, values));
      else
        print_values(sample, values);
      return;
    }
    const std::vector<float> probabilities = model.predict(sample.input).to_vector<float>();
    labelled += sample.label >= 0;
    right += is_right(sample, probabilities);
    if (options.json)
      json.push_back(json_of(sample, probabilities, model.class_names(), options.top));
    else
      print_sample(sample, probabilities, model.class_names(), options);
  };
  const auto show_text = [&](const std::string& text) {
    const std::vector<float> shares = model.predict_text(text).to_vector<float>();
    const Sample sample{text, {}, {}, -1, {}};
    if (options.json)
      json.push_back(json_of(sample, shares, model.class_names(), options.top));
    else
      print_sample(sample, shares, model.class_names(), options);
  };
  for (const std::string& text : options.texts) show_text(text);
  int code = kOk;
  for (const std::string& file : options.files) {
    try {
      if (options.write) {
        const std::string beside = file_beside(file);
        const std::int64_t rows = model.predict_csv(file, beside);
        if (options.json)
          json.push_back({{"name", file}, {"rows", rows}, {"written", beside}});
        else
          fmt::print("{}: {} rows, with predictions in {}\n", file, thousands(rows), beside);
        continue;
      }
      if (file.ends_with(".txt")) {
        for (const std::string& line : lines_of(file, options)) show_text(line);
        continue;
      }
      for (const Sample& sample : samples_of_file(model, file, options)) show(sample);
    } catch (const Error& error) {  // one bad file does not keep the others from being read
      code = report(error);
    }
  }
  if (!options.data.empty())
    for (const Sample& sample : samples_of_data(model, options)) show(sample);
  if (options.json) print(json);
  if (labelled > 0 && !options.json) fmt::print("{} of {} right\n", right, labelled);
  return code;
}

}  // namespace

Command predict_command() {
  auto options = std::make_shared<PredictOptions>();
  Command command;
  command.name = "predict";
  command.summary = "what a trained model sees in pictures, rows and texts";
  command.about =
      "Classifies pictures (PNG, JPEG, PGM), IDX files or held-out examples, and draws them in the "
      "terminal beside the likeliest classes. For a network of colour pictures the middle of a "
      "photograph is scaled to the size it takes. For one of grey digits a photograph or a scan of "
      "one digit is prepared first: dark ink on light paper is inverted, uneven light taken away, "
      "the ink cut out, scaled and centred as the training data is; a picture that already has the "
      "network's input size and a dark background is taken as it is. The output says what was "
      "done. A model of language tells the "
      "likeliest tokens behind a text, one that translates the translation.";
  command.examples = {
      {"tenon predict runs/lenet5 seven.jpg", "A photograph of a handwritten digit."},
      {"tenon predict runs/lenet5 --data digits --count 5",
       "Five held-out examples, with the truth."},
      {"tenon predict runs/lenet5 t10k-images-idx3-ubyte.gz --start 100 --count 3",
       "Three pictures of an IDX file."},
      {"tenon predict runs/mlp-4-16-1 rows.csv", "Rows of a table, without the label's column."},
      {"tenon predict runs/mlp-4-16-1 rows.csv --write", "All of them, into rows.predictions.csv."},
      {"tenon predict runs/bert_classifier --text 'a fine evening'", "The class of a text."},
      {"tenon predict runs/bert_spans --question 'Who wrote it?' --text 'It was written by Ann.'",
       "An answer that stands in a text."},
      {"tenon predict runs/gpt2 --text 'To be'", "The likeliest tokens behind it."},
      {"tenon predict runs/transformer --data numbers --count 3",
       "Held-out translations, with the truth."},
      {"tenon predict runs/lenet5 *.png --json", "Many files, for programs."}};
  add_trained(command, options->trained);
  add_picture(command, options->trained);
  command
      .positional(
          options->files, "FILE",
          "PNG, JPEG, GIF and others, IDX, a video, CSV of rows without a label, or .txt of "
          "lines",
          false)
      .completes = Completes::Files;
  command.option(options->texts, "--text", "WORDS",
                 "a text for a model that reads texts, with [MASK] for one that tells words, or a "
                 "tab between two texts; may be given again and again");
  command.option(
      options->questions, "--question", "WORDS",
      "what a model that finds answers in texts is asked about each --text or .txt file");
  command.option(options->data, "--data", "SPEC",
                 "held-out examples of digits, mnist[:DIR], idx:DIR, csv:FILE, npy:X,Y, text:FILE, "
                 "lines:FILE, "
                 "numbers, pairs:FILE or spans:FILE");
  command.option(options->count, "--count", "N",
                 "examples of --data, pictures of an IDX file, rows of a table, lines of a .txt "
                 "file, or frames of a video",
                 "5");
  command.option(options->start, "--start", "N", "the first of them", "0");
  command.option(options->top, "--top", "N", "classes or tokens to show for each", "3");
  command.option(options->device, "--device", "NAME", "cpu, cuda or cuda:N", "cpu");
  add_tune_option(command, options->tune);
  command.option(options->threads, "--threads", "N", "threads", "all CPUs");
  command.flag(options->plain, "--no-picture", "do not draw");
  command.flag(options->write, "--write",
               "tables: all rows, with predictions, into FILE.predictions.csv beside each");
  command.flag(options->json, "--json", "print JSON");
  command.run = [options] { return run_predict(*options); };
  return command;
}

}  // namespace tenon::cli
