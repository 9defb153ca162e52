// Masked language models: the targets are the hidden tokens, and data::kIgnoredTarget elsewhere.
#include <tenon/data.h>

#include "train/tasks/tokens.h"

namespace tenon::train {
namespace {

class MaskedLanguage final : public Language {
 public:
  std::string name() const override { return "masked_language"; }
  TaskWords words(const models::Info&) const override {
    return {.does = "predicts masked words",
            .command = "predict",
            .arguments = "--text 'the [MASK] sea'",
            .purpose = "predict the masked word",
            .evaluation = "accuracy on masked words"};
  }
  void set_reading(data::SourceOptions& options) const override { options.hide_words = true; }
  std::string network_for(const data::Dataset&) const override { return ""; }
  OutputForm output_form() const override { return OutputForm::HiddenToken; }

 protected:
  bool has_padding() const override { return true; }
};

}  // namespace

std::shared_ptr<const Task> masked_language_task() { return std::make_shared<MaskedLanguage>(); }

}  // namespace tenon::train
