// Predictions as text, JSON and tables.
#include "predict_output.h"

#include <fmt/core.h>
#include <tenon/io.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "errors.h"
#include "progress.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

constexpr int kLeastBeside = 44;  // smallest width of the text beside an image

std::vector<int> ranking(const std::vector<float>& probabilities) {
  std::vector<int> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int c) {  // NaN sorts last
    const float p = probabilities[static_cast<std::size_t>(c)];
    return std::isnan(p) ? -std::numeric_limits<float>::infinity() : p;
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b); });
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

// If the output is NaN, the order of the classes is arbitrary.
bool is_right(const Predicted& sample) {
  const int best = ranking(sample.values)[0];
  return sample.label == best && std::isfinite(sample.values[static_cast<std::size_t>(best)]);
}

// A line of a text file is shown as well.
std::string sample_heading(const Predicted& sample) {
  return printable(sample.text.empty() ? sample.name : sample.name + ": " + sample.text);
}

// Text beside the image: name, result, most likely classes. `noun`: what is predicted.
std::vector<std::string> verdict(const Predicted& sample, const std::string& noun,
                                 const std::vector<std::string>& names, int top) {
  const std::vector<float>& probabilities = sample.values;
  const Terminal& terminal = stdout_terminal();
  const std::vector<int> order = ranking(probabilities);
  const double sure = static_cast<double>(probabilities[static_cast<std::size_t>(order[0])]);
  std::vector<std::string> lines = {terminal.paint(TextStyle::Bold, sample_heading(sample))};
  std::string said = fmt::format("{} {}, {}", noun, shown_name(names, order[0]), percent(sure));
  if (!std::isfinite(sure))
    said = terminal.paint(TextStyle::Red, "no class: the output of the network is not finite");
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

void print_sample(const Predicted& sample, const train::TrainedModel& model, int top, bool plain) {
  const std::vector<std::string> words =
      verdict(sample, model.info().masked ? "word" : "class", model.class_names(), top);
  std::vector<std::string> image;
  if (!plain && !sample.glyph.pixels.empty()) image = draw(sample.glyph);
  int width = image.empty() ? 0 : sample.glyph.width + 2;
  if (width + kLeastBeside > stdout_terminal().width) {  // text below the image
    for (const std::string& line : image) fmt::print("{}\n", line);
    image.clear();
    width = 0;
  }
  for (std::size_t i = 0; i < std::max(words.size(), image.size()); ++i) {
    std::string line = image.empty() ? "" : pad_right(i < image.size() ? image[i] : "", width);
    if (i < words.size()) line += words[i];
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
  fmt::print("\n");
}

std::string values_text(const std::vector<float>& values) {
  std::vector<std::string> words;
  words.reserve(values.size());
  for (const float value : values) words.push_back(quantity_text(static_cast<double>(value)));
  return join(words, ", ");
}

void print_values(const Predicted& sample) {
  fmt::print("{}  {}", stdout_terminal().paint(TextStyle::Bold, sample_heading(sample)),
             values_text(sample.values));
  if (!sample.target.empty()) fmt::print("  (it is {})", values_text(sample.target));
  fmt::print("\n");
}

// Whether a prediction is printed as its numbers: quantities, or a probability for each label.
bool is_numeric(const train::TrainedModel& model) {
  const train::OutputForm form = model.task().output_form();
  return form == train::OutputForm::Values || form == train::OutputForm::Labels;
}

std::string number_text(float value) { return fmt::format("{}", value); }

std::string line_of(const std::vector<std::string>& fields, char separator) {
  std::string out;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) out += separator;
    out += io::csv_field(field, separator);
  }
  return out + "\n";
}

Json json_of(const Predicted& sample, const train::TrainedModel& model, int top) {
  constexpr std::size_t kMostListed =
      10'000;  // vocabularies are larger: list the most likely tokens
  Json json{{"name", sample.name}};
  if (!sample.text.empty()) json["text"] = sample.text;
  if (is_numeric(model)) {
    json["values"] = sample.values;
    if (!sample.target.empty()) json["target"] = sample.target;
    return json;
  }
  const std::vector<std::string>& names = model.class_names();
  const std::vector<int> order = ranking(sample.values);
  const int best = order[0];
  json["class"] = best;
  json["class_name"] = name_of(names, best);
  json["probability"] = sample.values[static_cast<std::size_t>(best)];
  if (sample.label >= 0) {
    json["label"] = sample.label;
    json["label_name"] = name_of(names, sample.label);
    json["right"] = is_right(sample);
  }
  if (!sample.glyph.how.empty()) json["prepared"] = sample.glyph.how;
  if (sample.values.size() <= kMostListed) {
    json["probabilities"] = sample.values;
    return json;
  }
  json["likeliest"] = Json::array();
  for (std::size_t k = 0; k < std::min(order.size(), static_cast<std::size_t>(top)); ++k)
    json["likeliest"].push_back(
        {{"class_name", name_of(names, order[k])},
         {"probability", sample.values[static_cast<std::size_t>(order[k])]}});
  return json;
}

}  // namespace

std::string predictions_file(const std::string& file) {
  return (file.ends_with(".csv") ? file.substr(0, file.size() - 4) : file) + ".predictions.csv";
}

PredictOutput::PredictOutput(const train::TrainedModel& model, OutputOptions options)
    : model_(model), options_(std::move(options)), json_(std::make_shared<Json>(Json::array())) {
  const std::string& file = options_.file;
  if (!file.empty() && !file.ends_with(".csv") && !file.ends_with(".txt") &&
      !file.ends_with(".json"))
    throw UsageError(fmt::format("--out: {} ends in none of .csv, .txt and .json", file));
}

void PredictOutput::add(const Predicted& sample, bool shown) {
  ++taken_;
  if (!is_numeric(model_) && sample.label >= 0) {
    ++labelled_;
    right_ += is_right(sample);
  }
  const bool to_json = options_.file.ends_with(".json");
  if (options_.json || to_json) json_->push_back(json_of(sample, model_, options_.top));
  if (options_.table || (!options_.file.empty() && !to_json)) {
    width_ = sample.values.size();
    rows_.push_back(fields(sample));
  }
  if (options_.json || !shown) return;
  if (is_numeric(model_))
    print_values(sample);
  else
    print_sample(sample, model_, options_.top, options_.plain);
}

PredictOutput::Fields PredictOutput::fields(const Predicted& sample) const {
  Fields out{sample.name};
  if (is_numeric(model_)) {
    for (const float value : sample.values) out.push_back(number_text(value));
    for (const float value : sample.target) out.push_back(number_text(value));
    return out;
  }
  const std::vector<std::string>& names = model_.class_names();
  const int best = ranking(sample.values)[0];
  out.push_back(name_of(names, best));
  out.push_back(number_text(sample.values[static_cast<std::size_t>(best)]));
  out.push_back(sample.label < 0 ? "" : name_of(names, sample.label));
  return out;
}

std::string PredictOutput::table(std::size_t from, char separator) const {
  Fields head{"name"};
  if (is_numeric(model_)) {
    for (const char* what : {"prediction", "target"})
      for (std::size_t k = 1; k <= width_; ++k)
        head.push_back(width_ == 1 ? what : fmt::format("{}_{}", what, k));
  } else {
    head = {"name", "prediction", "probability", "label"};
  }
  std::string out = line_of(head, separator);
  for (std::size_t k = from; k < rows_.size(); ++k) {
    Fields row = rows_[k];
    row.resize(head.size());  // unknown targets are empty
    out += line_of(row, separator);
  }
  return out;
}

std::int64_t PredictOutput::write_table(const std::string& file) {
  io::write_file(file, table(written_, ','));
  const std::size_t rows = rows_.size() - written_;
  written_ = rows_.size();
  return static_cast<std::int64_t>(rows);
}

void PredictOutput::write_file() const {
  const std::string& file = options_.file;
  io::write_file(file, file.ends_with(".json") ? json_text(*json_, 2) + "\n"
                                               : table(0, file.ends_with(".csv") ? ',' : '\t'));
}

void PredictOutput::add_json(const Json& row) { json_->push_back(row); }

void PredictOutput::print_json() const { print(*json_); }

}  // namespace tenon::cli
