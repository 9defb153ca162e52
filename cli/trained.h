// Trained models as eval and predict take them: a run, or a network with other people's weights.
#pragma once

#include <tenon/train.h>

#include <cstdint>
#include <string>

#include "args.h"

namespace tenon::cli {

struct TrainedOptions {
  std::string run;        ///< a run folder, model.safetensors, or with `weights` a network's name
  std::string weights;    ///< a file of weights, or ""
  std::string tokenizer;  ///< of text, with `weights`
  std::int64_t classes = 0;
  std::string picture;  ///< how pictures are fitted, where not as the run says; or ""
};

/// Adds RUN, --weights, --tokenizer and --classes.
void add_trained(Command& command, TrainedOptions& options);
/// Adds --picture.
void add_picture(Command& command, TrainedOptions& options);
/// Opens it; what was done to other people's weights is said on stderr.
train::TrainedModel open_trained(const TrainedOptions& options);

/// What else the model is for, as a hint to who asked for what it does not do: "it tells classes of
/// pictures: tenon predict RUN photo.jpg".
std::string use_of(const train::TrainedModel& model, const TrainedOptions& options);

}  // namespace tenon::cli
