// The model of eval, predict and generate: a run, or a network with pretrained weights.
#pragma once

#include <tenon/train.h>

#include <cstdint>
#include <optional>
#include <string>

#include "args.h"

namespace tenon::cli {

struct TrainedOptions {
  std::string run;        ///< a run folder, model.safetensors, or with `weights` a network's name
  std::string weights;    ///< a file of weights, or ""
  std::string tokenizer;  ///< of text, with `weights`
  std::int64_t classes = 0;
  std::string preprocess;  ///< how images are fitted; "": as the run says
  std::string background;  ///< of transparent images; "": as the run says
};

/// Adds RUN, --weights, --tokenizer and --classes.
void add_trained(Command& command, TrainedOptions& options);
/// Adds --preprocess and --background.
void add_image(Command& command, TrainedOptions& options);
/// The part of the data that is read, and how its notes are treated.
struct PartOptions {
  std::string part;  ///< train, validation, test or all; "": chosen by TrainedModel::select_data()
  bool strict = false;
  std::string allow;  ///< notes that `strict` accepts: seen, or "" for none
  std::optional<data::Split> split() const;
  bool allows_seen() const { return allow == "seen"; }
};
/// Adds --part, --strict and --allow.
void add_part(Command& command, PartOptions& options);
/// "test part of csv:rows.csv", "all of csv:rows.csv"
std::string part_text(data::Split part, const std::string& data);
/// The same within a sentence: "the test part of digits", "all of csv:rows.csv".
std::string the_part_text(data::Split part, const std::string& data);
/// "200 of 2,000 samples"; `of` 0: not known
std::string part_size_text(std::int64_t samples, std::int64_t of);
/// Prints notes of the data on stderr.
void print_notes(const Notes& notes);

/// Opens the model. Notes about conversions of published weights are printed on stderr; `strict`
/// refuses a file with such notes.
train::TrainedModel open_trained(const TrainedOptions& options, bool strict = false);

/// Whether the model's predictions are translations.
bool translates(const train::TrainedModel& model);

/// The use of the model, as a hint after a request that the model cannot serve: "it tells classes
/// of images: tenon predict RUN photo.jpg".
std::string use_of(const train::TrainedModel& model, const TrainedOptions& options);

}  // namespace tenon::cli
