// The data that an opened model keeps for its requests.
#pragma once

#include <tenon/train.h>

#include "train/evaluating/predictor.h"
#include "train/evaluating/text_predictor.h"
#include "train/settings/resolved.h"

namespace tenon::train {

struct TrainedModel::Opened {
  ResolvedModel model;
  Predictor predict;
  TextPredictor texts;
};

}  // namespace tenon::train
