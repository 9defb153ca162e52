// Language models that predict the next token.
#include <cmath>

#include <tenon/error.h>
#include <tenon/train.h>

#include "base/str.h"
#include "train/tasks/tasks.h"
#include "train/tasks/tokens.h"

namespace tenon::train {
namespace {

bool has_windows(const data::Dataset& set) {
  return set.input_shape().rank() == 1 && has_tokens(set) &&
         set.target_shape() == set.input_shape() && set.classes() > 0;
}

}  // namespace

std::shared_ptr<const Task> language_task() { return std::make_shared<Language>(); }

TaskWords Language::words(const models::Info&) const {
  return {.does = "continues texts",
          .command = "generate",
          .arguments = "--prompt TEXT",
          .first = "--tokens 300",
          .purpose = "generate text",
          .evaluation = "loss and perplexity on held-out text"};
}

void Language::check_data(const TaskData& data, data::Split part) const {
  if (part != data::Split::Train) return;
  const Settings& settings = data.settings;
  const Shape input = data.set.input_shape(), &context = data.model.input;
  if (!has_windows(data.set))
    throw ShapeError(cat("model '", settings.model, "' needs text, but a sample of '",
                         settings.data, "' is ", data.set.input_dtype(), " ", input,
                         ": give a text file, as in --data text:FILE"));
  if (input[0] > context[0])
    throw ShapeError(cat("model '", settings.model, "' sees ", context[0],
                         " tokens, but the windows of '", settings.data, "' have ", input[0],
                         ": give the data a shorter length, as in text:FILE,length=", context[0]));
}

std::string Language::network_for(const data::Dataset& set) const {
  return has_windows(set) ? "gpt2" : "";
}

std::vector<EvaluationRow> Language::rows(const Evaluation& evaluation) const {
  return {{.title = "perplexity",
           .key = "perplexity",
           .value = std::exp(evaluation.loss),
           .form = MetricForm::Quantity,
           .headline = true},
          {"tokens right", "accuracy", evaluation.accuracy, MetricForm::Share}};
}

}  // namespace tenon::train
