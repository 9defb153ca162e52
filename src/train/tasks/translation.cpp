// Translation: pairs of texts. An evaluation also translates by beam search.
#include <tenon/error.h>
#include <tenon/models.h>
#include <tenon/train.h>

#include "base/str.h"
#include "train/tasks/tasks.h"
#include "train/tasks/tokens.h"
#include "train/texts/translate.h"

namespace tenon::train {
namespace {

bool has_pairs(const data::Dataset& set) {
  const Shape input = set.input_shape();
  return input.rank() == 2 && input[0] == 2 && has_tokens(set) &&
         set.target_shape() == Shape{input[1]} && set.classes() > 0;
}

class Translation final : public TokenTask {
 public:
  std::string name() const override { return "translation"; }
  TaskWords words(const models::Info&) const override {
    return {.does = "translates texts",
            .command = "generate",
            .arguments = "--prompt TEXT",
            .purpose = "a translation",
            .evaluation = "share of held-out texts translated exactly"};
  }
  // The pairs may have any length.
  void check_data(const TaskData& data, data::Split part) const override {
    if (part != data::Split::Train || has_pairs(data.set)) return;
    throw ShapeError(cat("model '", data.settings.model,
                         "' needs pairs of texts, but a sample of '", data.settings.data, "' is ",
                         data.set.input_dtype(), " ", data.set.input_shape(),
                         ": use the data source numbers, or a file, as in --data pairs:FILE"));
  }
  std::string network_for(const data::Dataset& set) const override {
    return has_pairs(set) ? "transformer" : "";
  }
  void measure_network(const nn::AnyModule& net, const data::Dataset& set,
                       Evaluation& out) const override {
    if (const auto* translator = net.as<models::Translator>())
      out.exact = exact_share(*translator, set);
  }
  std::vector<EvaluationRow> rows(const Evaluation& evaluation) const override {
    std::vector<EvaluationRow> out;
    if (evaluation.exact)
      out.push_back({"exact", "exact", *evaluation.exact, MetricForm::Share, true});
    out.push_back({"tokens right", "accuracy", evaluation.accuracy, MetricForm::Share});
    return out;
  }
  OutputForm output_form() const override { return OutputForm::Translation; }

 protected:
  bool has_padding() const override { return true; }
};

}  // namespace

std::shared_ptr<const Task> translation_task() { return std::make_shared<Translation>(); }

}  // namespace tenon::train
