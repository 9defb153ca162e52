// Opening what eval and predict are given.
#include "trained.h"

#include <fmt/core.h>

#include <cstdio>

#include "commands.h"
#include "errors.h"
#include "terminal.h"

namespace tenon::cli {

void add_trained(Command& command, TrainedOptions& options) {
  Positional& run = command.positional(
      options.run, "RUN",
      "run folder, or a model.safetensors; with --weights a network's name, as vgg16");
  run.completes = Completes::Folders;
  run.suggestions = model_names();
  command
      .option(options.weights, "--weights", "FILE",
              "of the network that RUN names: .safetensors, .pt or .pth, by torchvision's or "
              "Hugging Face's names too, or a folder of Hugging Face's, whose config.json decides "
              "sizes and classes")
      .completes = Completes::Files;
  command
      .option(options.tokenizer, "--tokenizer", "FILE",
              "of a network with --weights that reads text: tokenizer.json, vocab.txt, vocab.json, "
              "or the folder of one")
      .completes = Completes::Files;
  command.option(options.classes, "--classes", "N", "outputs of a network with --weights",
                 "as published");
}

void add_picture(Command& command, TrainedOptions& options) {
  command.option(options.picture, "--picture", "LIST",
                 "how pictures are fitted, as resize,ten_crop: the mean of what is said of ten "
                 "crops",
                 "the run's own");
  command.option(options.background, "--background", "COLOUR",
                 "what transparent parts of images lie on: white, black, grey, #rrggbb or none",
                 "the run's own");
}

void add_part(Command& command, PartOptions& options) {
  command
      .option(options.part, "--part", "NAME", "part of the data: train, validation, test or all",
              "test of the run's own data, all of other files")
      .choices = {"train", "validation", "test", "all"};
  command.flag(options.strict, "--strict",
               "refuse data of which something is skipped, converted or assumed");
}

std::optional<data::Split> PartOptions::split() const {
  if (part == "train") return data::Split::Train;
  if (part == "validation") return data::Split::Validation;
  if (part == "test") return data::Split::Test;
  if (part == "all") return data::Split::All;
  return std::nullopt;
}

std::string part_text(data::Split part, const std::string& data) {
  return part == data::Split::All ? fmt::format("all of {}", data)
                                  : fmt::format("{} part of {}", data::name(part), data);
}

std::string part_size_text(std::int64_t samples, std::int64_t of) {
  if (of > samples) return fmt::format("{} of {} samples", thousands(samples), thousands(of));
  return fmt::format("{} sample{}", thousands(samples), samples == 1 ? "" : "s");
}

void print_notes(const Notes& notes) {
  for (const Note& note : notes) print_note(to_string(note));
}

namespace {

train::TrainedModel open_model(const TrainedOptions& options) {
  if (options.classes < 0)
    throw UsageError(fmt::format("--classes: {} is negative", options.classes));
  if (options.weights.empty()) {
    if (!options.tokenizer.empty())
      throw UsageError("--tokenizer is for --weights",
                       "a run keeps the tokenizer that it learnt by");
    if (options.classes > 0)
      throw UsageError("--classes is for --weights", "a run knows how many classes it has");
    return train::TrainedModel::open(options.run);
  }
  train::Settings settings = train::Settings::resolve(options.run, "", {});
  settings.classes = options.classes;
  settings.tokenizer = options.tokenizer;
  train::TrainedModel model = train::TrainedModel::with_weights(settings, options.weights);
  fmt::print(stderr, "{}\n", printable(model.weights_note()));
  return model;
}

}  // namespace

std::string use_of(const train::TrainedModel& model, const TrainedOptions& options) {
  const models::Info info = model.settings().model_info();
  const auto by = [&](const char* what, const char* command, const char* rest) {
    return fmt::format("it {}: tenon {} {} {}", what, command, shell_word(options.run), rest);
  };
  if (model.is_translator()) return by("translates texts", "generate", "--prompt TEXT");
  if (info.finds_spans())
    return by("finds answers in texts", "predict", "--question WHO --text TEXT");
  if (info.masked) return by("tells hidden words", "predict", "--text 'the [MASK] sea'");
  if (info.tokens) return by("goes on from texts", "generate", "--prompt TEXT");
  if (info.takes_tokens()) return by("tells classes of texts", "predict", "--text TEXT");
  const char* what = model.is_regression() ? "tells quantities" : "tells classes";
  // Networks of vectors take the pixels of pictures too.
  const bool rows = info.input.rank() != 3 &&
                    (model.table() != nullptr || model.settings().data.starts_with("npy:"));
  return by(what, "predict", rows ? "rows.csv" : "photo.jpg");
}

train::TrainedModel open_trained(const TrainedOptions& options) {
  train::TrainedModel model = open_model(options);
  const char* option = "--picture";
  try {
    if (!options.picture.empty()) model.set_picture(options.picture);
    option = "--background";
    if (!options.background.empty()) model.set_background(options.background);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("{}: {}", option, error.what()));
  }
  return model;
}

}  // namespace tenon::cli
