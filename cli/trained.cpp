// Opens the model that eval, predict and generate are given.
#include "trained.h"

#include <fmt/core.h>

#include <cstdio>

#include <tenon/models.h>

#include "commands.h"
#include "errors.h"
#include "terminal.h"

namespace tenon::cli {

void add_trained(Command& command, TrainedOptions& options) {
  Positional& run = command.positional(
      options.run, "RUN",
      "run folder or model.safetensors; with --weights, the name of a network, such as vgg16");
  run.completes = Completes::Folders;
  run.suggestions = models::names();
  command
      .option(options.weights, "--weights", "FILE",
              "weights for the network RUN: .safetensors, .pt or .pth (also with torchvision's or "
              "Hugging Face's tensor names), or a Hugging Face folder, whose config.json gives "
              "sizes and classes")
      .completes = Completes::Files;
  command
      .option(options.tokenizer, "--tokenizer", "FILE",
              "with --weights, tokenizer of a text network: tokenizer.json, vocab.txt, vocab.json "
              "or their folder")
      .completes = Completes::Files;
  command.option(options.classes, "--classes", "N", "with --weights, number of outputs",
                 "as published");
}

void add_image(Command& command, TrainedOptions& options) {
  command.option(options.preprocess, "--preprocess", "LIST",
                 "preprocessing of images, for example resize,ten_crop (average of ten crops)",
                 "the run's own");
  command.option(
      options.background, "--background", "COLOUR",
      "background of transparent images: white, black, grey, #rrggbb or none (ignore transparency)",
      "the run's own");
}

void add_part(Command& command, PartOptions& options) {
  command
      .option(options.part, "--part", "NAME", "part of the data to use",
              "test for the run's data, all for other files")
      .choices = {"train", "validation", "test", "all"};
  command.flag(options.strict, "--strict",
               "treat notes as errors: data that would be skipped, converted or assumed");
  command
      .option(options.allow, "--allow", "NOTES",
              "notes on samples that equal training samples, accepted with --strict", "none")
      .choices = {"seen"};
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

std::string the_part_text(data::Split part, const std::string& data) {
  return (part == data::Split::All ? "" : "the ") + part_text(part, data);
}

std::string part_size_text(std::int64_t samples, std::int64_t of) {
  if (of > samples) return fmt::format("{} of {} samples", thousands(samples), thousands(of));
  return fmt::format("{} sample{}", thousands(samples), samples == 1 ? "" : "s");
}

void print_notes(const Notes& notes) {
  for (const Note& note : notes) print_note(to_string(note));
}

namespace {

train::TrainedModel open_model(const TrainedOptions& options, bool strict) {
  if (options.classes < 0)
    throw UsageError(fmt::format("--classes: {} is negative", options.classes));
  if (options.weights.empty()) {
    if (!options.tokenizer.empty())
      throw UsageError("--tokenizer is for --weights", "a run folder has its own tokenizer");
    if (options.classes > 0)
      throw UsageError("--classes is for --weights", "a run folder has its own number of classes");
    return train::TrainedModel::open(options.run);
  }
  train::Settings settings = train::Settings::resolve(options.run, "", {});
  settings.classes = options.classes;
  settings.tokenizer = options.tokenizer;
  settings.strict = strict;
  train::TrainedModel model = train::TrainedModel::with_weights(settings, options.weights);
  fmt::print(stderr, "{}\n", printable(model.weights_note()));
  return model;
}

}  // namespace

bool translates(const train::TrainedModel& model) {
  return model.task().output_form() == train::OutputForm::Translation;
}

std::string use_of(const train::TrainedModel& model, const TrainedOptions& options) {
  const models::Info& info = model.info();
  const auto by = [&](const std::string& what, const std::string& command,
                      const std::string& rest) {
    return fmt::format("it {}: tenon {} {} {}", what, command, shell_word(options.run), rest);
  };
  const train::TaskWords words = model.task().words(info);
  if (!words.arguments.empty()) return by(words.does, words.command, words.arguments);
  // Networks with vector input also take the pixels of images.
  const bool rows = info.input.rank() != 3 &&
                    (model.table() != nullptr || model.settings().data.starts_with("npy:"));
  return by(words.does, words.command, rows ? "rows.csv" : "photo.jpg");
}

train::TrainedModel open_trained(const TrainedOptions& options, bool strict) {
  train::TrainedModel model = open_model(options, strict);
  const char* option = "--preprocess";
  try {
    if (!options.preprocess.empty()) model.set_preprocess(options.preprocess);
    option = "--background";
    if (!options.background.empty()) model.set_background(options.background);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("{}: {}", option, error.what()));
  }
  return model;
}

}  // namespace tenon::cli
