// Checks that several tasks make of data and outputs, with advice on networks that fit.
#include <limits>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

// Advice for an error: a network that takes the data, for this task or another one.
std::string other_network(const Task& task, const TaskData& data) {
  if (has_tokens(data.set)) {
    std::string reader = "gpt2";
    for (const std::string& name : task_names())
      if (std::string network = find_task(name)->network_for(data.set); !network.empty())
        reader = std::move(network);
    return cat(": choose a model for such texts, such as ", reader, " ('tenon models')");
  }
  if (!data.settings.network.empty()) return ": change 'input' in the file, or use other data";
  const bool for_images = data.model.input.rank() == 3 && data.set.input_shape().rank() == 3;
  if (for_images) return ": choose another model";
  if (const std::string network = task.network_for(data.set); !network.empty())
    return cat(": use ", network);
  for (const std::string& name : task_names())
    if (const std::string network = find_task(name)->network_for(data.set); !network.empty())
      return cat(": use ", network, " and --task ", name);
  return ": choose another model";
}

}  // namespace

void require_input(const Task& task, const TaskData& data) {
  const Shape input = data.set.input_shape(), &wanted = data.model.input;
  // A network with vector input flattens its input.
  if (wanted.rank() == 1 ? input.numel() == wanted.numel() : input == wanted) return;
  throw make_error<ShapeError>("model '", data.settings.model, "' takes ", wanted,
                               ", but a sample of '", data.settings.data, "' is ", input,
                               other_network(task, data));
}

void refuse_outputs(const TaskData& data, const Shape& output, const std::string& noun,
                    const std::string& advice) {
  const Settings& settings = data.settings;
  // The output is for two samples.
  const std::int64_t wanted = settings.classes, given = output.numel() / 2;
  throw ShapeError(
      cat("model '", settings.model, "' gives ", given, given == 1 ? " number" : " numbers",
          " for a sample, where '", settings.data, "' has ", wanted, " ", noun,
          settings.network.empty()
              ? ": choose a model with as many outputs"
              : cat(": end the file's layers with ", output.rank() > 2 ? "\"flatten\" and " : "",
                    "{ linear = \"classes\" }"),
          settings.network.empty() && data.model.input.rank() == 1
              ? cat(", as mlp:", data.set.input_shape().numel(), "-64-", wanted)
              : std::string(),
          advice));
}

void require_scores(const Tensor& scores, std::int64_t classes, bool may_be_maps) {
  const bool fits = scores.rank() == 2 || (may_be_maps && scores.rank() > 2);
  if (!fits || scores.size(1) < classes)
    throw make_error<ShapeError>("the network gives ", scores.shape(), " where the data has ",
                                 classes, " classes: choose a model with as many outputs");
}

bool has_tokens(const data::Dataset& set) { return set.input_dtype() == DType::Int64; }

double quotient(double sum, double count) {
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tenon::train
