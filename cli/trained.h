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
  std::string preprocess;  ///< how images are fitted, where not as the run says; or ""
  std::string background;  ///< of transparent images, where not as the run says; or ""
};

/// Adds RUN, --weights, --tokenizer and --classes.
void add_trained(Command& command, TrainedOptions& options);
/// Adds --preprocess and --background.
void add_image(Command& command, TrainedOptions& options);
/// Which part of data is read, and what its notes are.
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

/// Opens it; what was done to other people's weights is said on stderr.
train::TrainedModel open_trained(const TrainedOptions& options, bool strict = false);

/// Whether the model's predictions are translations.
bool translates(const train::TrainedModel& model);

/// What else the model is for, as a hint to who asked for what it does not do: "it tells classes of
/// images: tenon predict RUN photo.jpg".
std::string use_of(const train::TrainedModel& model, const TrainedOptions& options);

}  // namespace tenon::cli
