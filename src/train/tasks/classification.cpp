// Classification: cross-entropy, and the metrics of metrics::ClassMetrics.
#include <optional>

#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "base/str.h"
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

constexpr char kAccuracy[] = "accuracy";

bool has_one_class(const data::Dataset& set) {
  return set.classes() > 0 && set.target_shape().rank() == 0;
}

// Texts, or pairs of texts, as tokens.
bool has_texts(const data::Dataset& set) {
  const Shape input = set.input_shape();
  return has_tokens(set) && (input.rank() == 1 || (input.rank() == 2 && input[0] == 2));
}

void check_texts(const TaskData& data) {
  const Settings& settings = data.settings;
  const Shape input = data.set.input_shape(), &context = data.model.input;
  if (!has_texts(data.set) || !has_one_class(data.set))
    throw ShapeError(cat("model '", settings.model,
                         "' needs texts with a class each, but a sample of '", settings.data,
                         "' is ", data.set.input_dtype(), " ", input,
                         ": give a file of lines CLASS TAB TEXT, as in --data lines:FILE"));
  if (input[input.rank() - 1] > context[0])
    throw ShapeError(cat(
        "model '", settings.model, "' sees ", context[0], " tokens, but lines of '", settings.data,
        "' have ", input[input.rank() - 1], ": cut them, as in lines:FILE,length=", context[0]));
}

// The network may have more outputs than the data has classes.
class ClassMeter final : public Meter {
 public:
  explicit ClassMeter(std::int64_t classes) : classes_(classes) {}
  void add(const MeasuredBatch& batch) override {
    require_scores(batch.scores, classes_);
    if (!metrics_) metrics_.emplace(static_cast<int>(batch.scores.size(1)));
    metrics_->add(batch.scores, batch.target, batch.ignored);
  }
  void finish(Evaluation& out) const override {
    if (metrics_) {
      out.confusion = metrics_->confusion();
      out.accuracy = out.confusion.accuracy();
      out.top3_accuracy = metrics_->top_k_accuracy(3);
      out.top5_accuracy = metrics_->top_k_accuracy(5);
      out.log_loss = metrics_->log_loss();
      out.roc_auc = metrics_->roc_auc();
      out.average_precision = metrics_->average_precision();
    }
    out.metrics.set(kAccuracy, out.accuracy);
  }

 private:
  std::int64_t classes_;
  std::optional<metrics::ClassMetrics> metrics_;
};

}  // namespace

std::shared_ptr<const Task> classification_task() { return std::make_shared<Classification>(); }

std::string Classification::name() const { return "classification"; }

TaskWords Classification::words(const models::Info& model) const {
  constexpr char kEvaluation[] = "accuracy, confusion matrix, errors by class";
  if (model.takes_tokens())
    return {.does = "classifies texts",
            .command = "predict",
            .arguments = "--text TEXT",
            .purpose = "classify a text",
            .evaluation = kEvaluation};
  return {.does = "classifies inputs", .command = "predict", .evaluation = kEvaluation};
}

void Classification::check_data(const TaskData& data, data::Split part) const {
  if (part != data::Split::Train) return;
  if (data.model.takes_tokens()) return check_texts(data);
  require_input(*this, data);
  if (data.set.classes() < 1)
    throw ShapeError(cat("'", data.settings.data, "' has no classes: its targets are ",
                         data.set.target_dtype(), " ", data.set.target_shape(),
                         "; for numeric targets, use --task regression",
                         data.set.target_shape().numel() > 1
                             ? ", or --task multi_label if each is a label from 0 to 1"
                             : "",
                         data.set.target_shape().rank() > 1
                             ? "; a class for each pixel needs a task of your own (register_task())"
                             : ""));
}

std::int64_t Classification::outputs(const data::Dataset& set) const { return set.classes(); }

void Classification::check_outputs(const TaskData& data, const Shape& output) const {
  const std::int64_t given = output.numel() / 2, wanted = data.settings.classes;
  if (output.rank() == 2 && given >= wanted) return;
  // More classes than samples suggest that the targets are numbers, such as prices.
  refuse_outputs(
      data, output, "classes",
      wanted > data.set.size() ? "; or, for numeric targets, use --task regression" : "");
}

std::int64_t Classification::least_scores(const data::Dataset& set) const { return set.classes(); }

std::string Classification::network_for(const data::Dataset& set) const {
  if (!has_one_class(set)) return "";
  if (has_tokens(set)) return "bert_classifier";
  return cat("mlp:", set.input_shape().numel(), "-64-", set.classes());
}

nn::Loss Classification::loss(const TaskNetwork& network) const {
  const double label_smoothing = network.label_smoothing;
  if (!network.model.rubbish_score) return nn::CrossEntropyLoss{label_smoothing};
  return [label_smoothing, rubbish = *network.model.rubbish_score](const Tensor& scores,
                                                                   const Tensor& target) {
    const Tensor all = concat({scores, full({scores.size(0), 1}, rubbish, scores.dtype())}, 1);
    return cross_entropy(all, target, Reduction::Mean, label_smoothing);
  };
}

Tensor Classification::mean_over_views(const Tensor& scores, std::int64_t views,
                                       DType targets) const {
  return mean_of_views(scores, views, is_floating(targets));
}

// Classes [N] drawn with the probabilities of scores [N, classes]: the highest score after Gumbel
// noise is added.
Tensor Classification::drawn_targets(const Tensor& scores, const Tensor& target) const {
  if (is_floating(target.dtype()) || scores.rank() != 2) return target;
  const Tensor noise = neg(log(neg(log(rand(scores.shape())))));
  return cast(argmax(cast(scores, DType::Float32) + noise, 1), target.dtype());
}

// A class for each sample of scores [N, classes], or for each position of scores [N, classes, …].
Tensor Classification::random_targets(const Shape& scores) const {
  if (scores.rank() < 2)
    throw ShapeError(cat(name(), ": the network gives ", scores, ", must be [N, classes]"));
  Shape targets({scores[0]});
  for (int axis = 2; axis < scores.rank(); ++axis) targets.push_back(scores[axis]);
  return randint(0, scores[1], targets);
}

// Ignored targets never count as correct.
Tensor Classification::correct(const Tensor& scores, const Tensor& target,
                               const Tensor& kept) const {
  if (is_floating(target.dtype()) || scores.rank() != target.rank() + 1)
    return scalar(0, DType::Int64);
  const int axis = scores.rank() == 2 ? -1 : 1;
  Tensor right = eq(argmax(scores, axis), cast(target, DType::Int64));
  if (kept.defined()) right = logical_and(right, kept);
  return sum(right);
}

bool Classification::has_training_accuracy(const data::Dataset& set) const {
  return has_one_class(set);
}

std::vector<MetricInfo> Classification::metrics() const {
  return {{.name = kAccuracy, .form = MetricForm::Share}};
}

std::string Classification::monitored() const { return kAccuracy; }

std::unique_ptr<Meter> Classification::meter(const data::Dataset& set) const {
  if (set.classes() < 1)
    throw ShapeError(cat("classification: ", set.describe(), " has no classes: its targets are ",
                         set.target_dtype(), " ", set.target_shape()));
  return std::make_unique<ClassMeter>(set.classes());
}

Tensor Classification::predictions(const Tensor& scores) const { return softmax(scores); }

}  // namespace tenon::train
