// Requests for one text: its class, a masked token, the next token, or the answer to a question.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/text/span_dataset.h"
#include "train/evaluating/opened.h"
#include "train/runs/run_data.h"
#include "train/texts/generate.h"
#include "train/texts/spans.h"

namespace tenon::train {

Tensor TrainedModel::predict_text(const std::string& text) const {
  const models::Info& info = this->info();
  if (!given_net_ && net_.as<models::Decoder>() != nullptr) return next_token(tokens_of(text));
  const OutputForm form = task_->output_form();
  const bool hidden_token = form == OutputForm::HiddenToken,
             one_class = form == OutputForm::Classes || hidden_token;
  if (tokenizer_ == nullptr || given_net_ || !info.takes_tokens() || !one_class)
    throw make_error<ValueError>(
        FileName{file_}, ": model '", settings().model,
        form == OutputForm::Answer        ? "' finds answers in texts: ask it a question"
        : form == OutputForm::Translation ? "' translates texts: use translate()"
                                          : "' takes no text");
  const ContextScope scope(context_);
  const std::size_t tab = hidden_token ? std::string::npos : text.find('\t');
  data::TypedTokens row;
  if (tab == std::string::npos)
    row.tokens = data::encode_within(*tokenizer_, text, text_length(opened_->model));
  else
    row = data::encode_pair_within(*tokenizer_, std::string_view(text).substr(0, tab),
                                   std::string_view(text).substr(tab + 1),
                                   text_length(opened_->model));
  std::vector<std::int64_t>& tokens = row.tokens;
  const std::int64_t length = std::ssize(tokens);
  if (length == 0) throw ValueError("predict: the text is empty");
  tokens.insert(tokens.end(), row.types.begin(), row.types.end());
  const Tensor given =
      Tensor::from(tokens, row.types.empty() ? Shape{1, length} : Shape{1, 2, length});
  if (!hidden_token) return opened_->texts.text(given);
  const auto hidden = std::find(tokens.begin(), tokens.end(), tokenizer_->number("[MASK]"));
  if (hidden == tokens.end())
    throw ValueError(cat("predict: model '", settings().model,
                         "' predicts the word at [MASK], and the text has no [MASK]"));
  return opened_->texts.token_at(given, hidden - tokens.begin());
}

void TrainedModel::require_spans() const {
  if (tokenizer_ == nullptr || given_net_ || task_->output_form() != OutputForm::Answer)
    throw make_error<ValueError>(FileName{file_}, ": model '", settings().model,
                                 "' does not answer questions");
}

Answer TrainedModel::answer(const std::string& question, const std::string& text) const {
  require_spans();
  const ContextScope scope(context_);
  data::SpanOptions options;
  options.length = std::min(options.length, info().input[0]);
  options.question = std::min(options.question, options.length / 3);
  options.stride = std::min(options.stride, options.length / 4);
  const data::SpanDataset set({{"the question", question, data::span_text(*tokenizer_, text)}},
                              *tokenizer_, options, "a question");
  return answers_of(opened_->texts.answer_scores(), set, false)[0];
}

std::vector<AskedQuestion> TrainedModel::answers(const Selection& data, std::int64_t start,
                                                 std::int64_t count) const {
  require_spans();
  const ContextScope scope(context_);
  const std::shared_ptr<data::Dataset> opened = open_set(data);
  const auto* set = opened->as<data::SpanDataset>();
  if (set == nullptr)
    throw ShapeError(
        cat("'", data.data, "' has no questions: give a file of questions, as in spans:FILE"));
  const data::SpanDataset part = set->part(start, count < 0 ? std::ssize(set->questions()) : count);
  const std::vector<Answer> given =
      answers_of(opened_->texts.answer_scores(), part, lacks_answers(*set));
  std::vector<AskedQuestion> out;
  out.reserve(given.size());
  for (std::size_t k = 0; k < given.size(); ++k) {
    const data::SpanQuestion& asked = part.questions()[k];
    const SpanMeasure measure = measure_answer(given[k].text, asked.answers);
    out.push_back({cat(data.data, ", question ", start + static_cast<std::int64_t>(k) + 1),
                   asked.question, given[k], asked.answers, measure.exact, measure.f1});
  }
  return out;
}

Tensor TrainedModel::next_token(const std::vector<std::int64_t>& tokens) const {
  const auto* net = net_.as<models::Decoder>();
  if (net == nullptr)
    throw make_error<ValueError>(FileName{file_}, ": model '", settings().model,
                                 "' is not a language model");
  if (tokens.empty()) throw ValueError("predict: the text is empty");
  check_tokenizer(tokenizer_.get(), settings());
  const std::int64_t known = std::ssize(tokens),
                     seen = net->context() > 0 ? std::min(known, net->context()) : known;
  const ContextScope scope(context_);
  const Tensor given =
      Tensor::from(std::vector<std::int64_t>(tokens.end() - seen, tokens.end()), {1, seen});
  return given_net_ ? next_token_probabilities(net_, given).compute()
                    : opened_->texts.next_token(given);
}

std::vector<std::int64_t> TrainedModel::tokens_of(const std::string& text) const {
  if (tokenizer_ != nullptr) return tokenizer_->encode(text, false);
  if (text_unit_.empty())
    throw make_error<ValueError>(FileName{file_}, ": model '", settings().model,
                                 "' has no vocabulary: give a tokenizer");
  return vocabulary_->encode(text);
}

std::string TrainedModel::text_of(std::span<const std::int64_t> tokens) const {
  if (tokenizer_ != nullptr)
    return tokenizer_->decode(std::vector<std::int64_t>(tokens.begin(), tokens.end()));
  if (text_unit_.empty())
    throw make_error<ValueError>(FileName{file_}, ": model '", settings().model,
                                 "' has no vocabulary");
  return vocabulary_->decode(tokens);
}

}  // namespace tenon::train
