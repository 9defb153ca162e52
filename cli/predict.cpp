// tenon predict: its options, and which of them fit which model.
#include <fmt/core.h>
#include <tenon/compute.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/train.h>

#include <algorithm>
#include <memory>

#include "commands.h"
#include "errors.h"
#include "predict_inputs.h"
#include "predict_language.h"
#include "predict_output.h"
#include "terminal.h"
#include "trained.h"
#include "tuning.h"

namespace tenon::cli {
namespace {

TextQuestions questions_of(const PredictOptions& o) {
  TextQuestions out;
  for (const std::string& text : o.texts) out.texts.push_back({"", text});
  out.questions = o.questions;
  out.data = o.data;
  out.part = o.part;
  out.start = o.start;
  out.count = o.count;
  out.top = o.top;
  out.json = o.json;
  return out;
}

// Answers every question from every text, or the questions of a dataset.
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
  for (const std::string& file : options.files) all.texts.push_back({file, io::read_file(file)});
  return predict_answers(model, all);
}

// Predicts the next token of each text, or its translation.
int run_language(const train::TrainedModel& model, const PredictOptions& options) {
  TextQuestions asked = questions_of(options);
  for (const std::string& file : options.files) {
    if (!file.ends_with(".txt") && source_kind(file) != "lines")
      throw UsageError(fmt::format("{}: {} {} texts", file, model.settings().model,
                                   translates(model) ? "translates" : "continues"),
                       fmt::format("give --text WORDS or lines in a file that ends in .txt; tenon "
                                   "generate {} --prompt WORDS generates text",
                                   shell_word(options.trained.run)));
    std::int64_t line = 0;
    for (train::TextLine& one : lines_of(model, file, options))
      asked.texts.push_back({std::move(one.name), std::move(one.text), line++ < options.count});
    asked.left_out += std::max<std::int64_t>(0, line - options.count);
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
                     "give FILE... (PNG, JPEG, PGM, IDX, NPY, CSV, TXT), --text WORDS, or a data "
                     "source with --data digits, text:FILE or numbers");
  if (options.count < 1) throw UsageError("--count: give 1 or more");
  if (options.start < 0) throw UsageError("--start: numbers begin at 0");
  if (options.top < 1) throw UsageError("--top: give 1 or more");
  if (options.write && (options.files.empty() || !options.data.empty()))
    throw UsageError("--write: give files to predict", "as in tenon predict RUN rows.csv --write");
}

bool makes_text(train::OutputForm form) {
  return form == train::OutputForm::NextToken || form == train::OutputForm::Translation;
}

// Refuses options for classification and regression.
void refuse_with_language(const train::TrainedModel& model, const PredictOptions& options) {
  const std::string& name = model.settings().model;
  if (options.write || !options.out.empty())
    throw UsageError(fmt::format("{}: {} reads texts and does not classify them",
                                 options.write ? "--write" : "--out", name),
                     "--json prints its output for programs");
}

void refuse_unsuitable_options(const train::TrainedModel& model, const PredictOptions& options) {
  const models::Info& info = model.info();
  const std::string& name = model.settings().model;
  if (info.takes_tokens() && !options.trained.preprocess.empty())
    throw UsageError(fmt::format("--preprocess: {} reads texts, not images", name));
  if (!info.takes_tokens() && !options.texts.empty() && options.questions.empty())
    throw UsageError(fmt::format("--text: {} takes no text", name), use_of(model, options.trained));
  const train::OutputForm form = model.task().output_form();
  if (makes_text(form) || form == train::OutputForm::Answer)
    return refuse_with_language(model, options);
  if (form == train::OutputForm::HiddenToken && !options.data.empty())
    throw UsageError(
        fmt::format("--data {}: {} predicts the word at [MASK] of a text; tenon eval {} --data {} "
                    "measures it on held-out words",
                    options.data, name, shell_word(options.trained.run), shell_word(options.data)),
        fmt::format("tenon predict {} --text 'a text with a [MASK] in it'",
                    shell_word(options.trained.run)));
  if (!options.questions.empty())
    throw UsageError(fmt::format("--question: {} finds no answers in texts", name),
                     use_of(model, options.trained));
}

int run_predict(const PredictOptions& options) {
  check(options);
  use_threads(options.threads);
  set_device(options.device);
  set_tuning(options.tune);
  const train::TrainedModel model = open_trained(options.trained, options.part.strict);
  set_precision(precision_from_name(model.settings().precision));
  refuse_unsuitable_options(model, options);
  const train::OutputForm form = model.task().output_form();
  if (makes_text(form)) return run_language(model, options);
  if (form == train::OutputForm::Answer) return run_answers(model, options);
  PredictOutput output(model, {.top = options.top,
                               .json = options.json,
                               .plain = options.plain,
                               .table = options.write,
                               .file = options.out});
  train::SeenSamples images;
  const SetPredictor predict{model, options, output, images};
  std::vector<train::TextLine> given;
  for (const std::string& text : options.texts) given.push_back({"", text});
  take_notes(model.notes_on_texts(given, options.part.allows_seen()), options);
  for (const std::string& text : options.texts) output.add(text_of(model, "", text), true);
  int code = kOk;
  for (const std::string& file : options.files) {
    try {
      if (options.write)
        write_file(predict, file);
      else
        predict_file(predict, file);
    } catch (const Error& error) {  // an unreadable file does not stop the others
      code = report(error);
    }
  }
  Notes seen;
  add_seen(images, "the images", options, seen);
  take_notes(seen, options);
  if (!options.data.empty()) predict_source(predict, options.data);
  if (options.json) output.print_json();
  if (!options.out.empty()) {
    output.write_file();
    if (!options.json)
      fmt::print("{} written to {}\n", part_size_text(output.taken(), 0), printable(options.out));
  }
  return code;
}

void add_options(Command& command, PredictOptions& options) {
  add_trained(command, options.trained);
  add_image(command, options.trained);
  command
      .positional(
          options.files, "FILE",
          "image (PNG, JPEG, GIF and others), IDX, NPY, video, CSV with or without labels, or .txt "
          "(a text per line); options as in csv:FILE,separator=; or lines:FILE,encoding=latin1",
          false)
      .completes = Completes::Files;
  command.option(options.texts, "--text", "WORDS",
                 "text to predict; with [MASK] for a masked language model, with a tab between the "
                 "texts of a pair; can be repeated");
  command.option(options.questions, "--question", "WORDS",
                 "question whose answer is searched in each --text or .txt file; can be repeated");
  command.option(options.data, "--data", "SPEC", kDataSpecHelp);
  add_part(command, options.part);
  command.option(options.count, "--count", "N",
                 "samples to print of --data and of each file; frames of a video", "5");
  command.option(options.start, "--start", "N", "samples of --data and of each file to skip", "0");
  command.option(options.top, "--top", "N", "classes or tokens to show for each", "3");
  command.option(options.device, "--device", "NAME", "device: cpu, cuda or cuda:N", "cpu");
  add_tune_option(command, options.tune);
  command.option(options.threads, "--threads", "N", "compute threads", "all CPUs");
  command.flag(options.plain, "--no-image", "do not draw images");
  command.flag(
      options.write, "--write",
      "write all predictions of each file to FILE.predictions.csv beside it, of rows.csv to "
      "rows.predictions.csv");
  command
      .option(options.out, "--out", "FILE", "write all predictions to one .csv, .txt or .json file")
      .completes = Completes::Files;
  command.flag(options.json, "--json", "print JSON");
}

}  // namespace

Command predict_command() {
  auto options = std::make_shared<PredictOptions>();
  Command command;
  command.name = "predict";
  command.summary = "predict images, table rows and texts with a trained model";
  command.about =
      "Predicts images, videos, IDX files, arrays (.npy), tables, lines of text or a data "
      "source, and draws images in the terminal next to the most likely classes. It prints the "
      "first five samples, or --count of them; --json, --write and --out output all. For a network "
      "with colour input, the centre of a photograph is scaled to the input size. For a network of "
      "grey digits, a photograph or scan of one digit is preprocessed: dark ink on light paper is "
      "inverted, uneven lighting is removed, and the digit is cropped, scaled and centred as in "
      "the training data; an image that already has the input size and a dark background is used "
      "unchanged. The output states what was done. A language model prints the most likely next "
      "tokens of a text, a translation model the translation.";
  command.examples = {
      {"tenon predict runs/lenet5 seven.jpg", "A photograph of a handwritten digit."},
      {"tenon predict runs/lenet5 --data digits --count 5",
       "Five samples of the test part, with their labels."},
      {"tenon predict runs/lenet5 t10k-images-idx3-ubyte.gz --start 100 --count 3",
       "Three images of an IDX file."},
      {"tenon predict runs/mlp-4-16-1 rows.csv", "Rows of a table, with or without labels."},
      {"tenon predict runs/mlp-4-16-1 rows.csv --write",
       "All rows, written to rows.predictions.csv."},
      {"tenon predict runs/lenet5 *.png --out digits.csv", "Many files, written to one table."},
      {"tenon predict runs/bert_classifier --text 'a fine evening'", "The class of a text."},
      {"tenon predict runs/bert_spans --question 'Who wrote it?' --text 'By Ann.'",
       "An answer found in a text."},
      {"tenon predict runs/gpt2 --text 'To be'", "The most likely next tokens."},
      {"tenon predict runs/transformer --data numbers --count 3",
       "Held-out translations, with the reference."},
      {"tenon predict runs/lenet5 *.png --json", "Many files, as JSON for programs."}};
  add_options(command, *options);
  command.run = [options] { return run_predict(*options); };
  return command;
}

}  // namespace tenon::cli
