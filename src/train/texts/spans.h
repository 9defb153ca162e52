// Answers in texts: spans from start and end scores, and their exact match and F1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/nn.h>
#include <tenon/train.h>

#include "data/text/span_dataset.h"

namespace tenon::train {

/// The network as a function from windows, int64 [N, 2, length], to scores of the first and last
/// token of an answer, float32 [N, 2, length].
CompiledFunction compiled_answer_scores(const nn::AnyModule& net);
/// The answer to each question of the dataset: among all its windows, the span of up to 30 tokens
/// with the highest sum of start and end score. With `may_lack`, the answer is empty if [CLS]
/// scores higher in every window.
std::vector<Answer> answers_of(const CompiledFunction& scores_of, const data::SpanDataset& set,
                               bool may_lack);

/// SQuAD's metrics of an answer, the best over all reference answers: exact match, and F1 of the
/// words, both without case, punctuation and articles.
struct SpanMeasure {
  double exact = 0, f1 = 0;
};
SpanMeasure measure_answer(const std::string& given, const std::vector<std::string>& right);
/// Whether any question of the dataset has no answer.
bool lacks_answers(const data::SpanDataset& set);
/// Mean over the dataset's questions. Empty answers are allowed if a question of the dataset has no
/// answer.
SpanMeasure measure_spans(const nn::AnyModule& net, const data::SpanDataset& set);

}  // namespace tenon::train
