// Shared by the tasks and the Trainer: the task of a Trainer, and checks of data and outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tenon/task.h>
#include <tenon/train.h>

namespace tenon::train {

/// The task of a Trainer: TrainOptions::task, else the loss's, else one that depends on the data.
std::shared_ptr<const Task> task_of(const TrainOptions& options, const nn::Loss& loss);
/// The task for this data: of one that depends on the data, classification if the data has classes
/// and regression if it has none; else `task` itself.
const Task& task_for(const Task& task, const data::Dataset& set);

/// Throws ShapeError unless the samples have the network's input shape, or for a network with
/// vector input the same number of values. Names a network that takes them.
void require_input(const Task& task, const TaskData& data);
/// Throws the ShapeError of Task::check_outputs() about its `output`: the data has
/// Settings::classes targets or classes for a sample (`noun`, "classes" or "target"). `advice` ends
/// the message.
[[noreturn]] void refuse_outputs(const TaskData& data, const Shape& output, const std::string& noun,
                                 const std::string& advice = "");
/// Throws ShapeError unless scores are [N, C] with C >= `classes`.
void require_scores(const Tensor& scores, std::int64_t classes, bool may_be_maps = false);

/// Whether a target has a number for each output.
inline bool is_numeric(OutputForm form) {
  return form == OutputForm::Labels || form == OutputForm::Values;
}

/// Whether samples are tokens, int64.
bool has_tokens(const data::Dataset& set);
/// sum / count; NaN for a count of 0.
double quotient(double sum, double count);

}  // namespace tenon::train
