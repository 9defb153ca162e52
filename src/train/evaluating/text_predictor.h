// Predictions for single texts.
//
// As in Predictor, the networks are compiled functions with a program for each number of tokens. A
// request only runs a program.
#pragma once

#include <cstdint>
#include <memory>

#include <tenon/compute.h>
#include <tenon/nn.h>
#include <tenon/task.h>

namespace tenon::train {

/// Token probabilities [1, tokens] after the last token of int64 [1, length], not computed.
Tensor next_token_probabilities(const nn::AnyModule& net, const Tensor& tokens);

/// Computes in the current context, on whose device the tokens must be.
class TextPredictor {
 public:
  TextPredictor(const nn::AnyModule& net, const std::shared_ptr<const Task>& task);
  /// The task's predictions [classes] for tokens, int64 [1, length] or [1, 2, length].
  Tensor text(const Tensor& tokens) const { return text_({tokens})[0]; }
  /// Token probabilities [tokens] at one position of int64 [1, length].
  Tensor token_at(const Tensor& tokens, std::int64_t position) const;
  /// Token probabilities [tokens] after the last token of int64 [1, length].
  Tensor next_token(const Tensor& tokens) const { return next_token_({tokens})[0]; }
  /// Scores float32 [N, 2, length] of the first and last token of an answer.
  const CompiledFunction& answer_scores() const { return answer_scores_; }

 private:
  CompiledFunction text_, token_at_, next_token_, answer_scores_;
};

}  // namespace tenon::train
