// Question answering: the targets are the positions of an answer's first and last token. An
// evaluation also measures the answers themselves.
#include <tenon/error.h>
#include <tenon/train.h>

#include "base/str.h"
#include "data/text/span_dataset.h"
#include "train/tasks/tokens.h"
#include "train/texts/spans.h"

namespace tenon::train {
namespace {

const data::SpanDataset* spans_of(const data::Dataset& set) { return set.as<data::SpanDataset>(); }

class Spans final : public TokenTask {
 public:
  std::string name() const override { return "spans"; }
  TaskWords words(const models::Info&) const override {
    return {.does = "finds answers in texts",
            .command = "predict",
            .arguments = "--question WHO --text TEXT",
            .purpose = "find an answer in a text",
            .evaluation = "share of answers found, exact and F1"};
  }
  // Parts may have windows of different lengths.
  void check_data(const TaskData& data, data::Split) const override {
    const Settings& settings = data.settings;
    const Shape &input = data.set.input_shape(), &context = data.model.input;
    if (spans_of(data.set) == nullptr)
      throw ShapeError(cat("model '", settings.model, "' learns to find answers in texts, but '",
                           settings.data,
                           "' has no answers: give a file of questions, as in --data spans:FILE"));
    if (input[1] > context[0])
      throw ShapeError(cat("model '", settings.model, "' sees ", context[0],
                           " tokens, but questions and parts of texts of '", settings.data,
                           "' have ", input[1],
                           ": make the parts shorter, as in spans:FILE,length=", context[0]));
  }
  std::string network_for(const data::Dataset& set) const override {
    return spans_of(set) != nullptr ? "bert_spans" : "";
  }
  void measure_network(const nn::AnyModule& net, const data::Dataset& set,
                       Evaluation& out) const override {
    const data::SpanDataset* spans = spans_of(set);
    if (spans == nullptr) return;
    const SpanMeasure measure = measure_spans(net, *spans);
    out.exact = measure.exact;
    out.f1 = measure.f1;
  }
  std::vector<EvaluationRow> rows(const Evaluation& evaluation) const override {
    std::vector<EvaluationRow> out;
    if (evaluation.exact)
      out.push_back({"exact", "exact", *evaluation.exact, MetricForm::Share, true});
    if (evaluation.f1)
      out.push_back({"F1 of words", "f1", *evaluation.f1, MetricForm::Share, true});
    out.push_back({"ends right", "accuracy", evaluation.accuracy, MetricForm::Share});
    return out;
  }
  OutputForm output_form() const override { return OutputForm::Answer; }
};

}  // namespace

std::shared_ptr<const Task> spans_task() { return std::make_shared<Spans>(); }

}  // namespace tenon::train
