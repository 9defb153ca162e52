// Compiles a network for the requests of single texts.
#include "train/evaluating/text_predictor.h"

#include <vector>

#include <tenon/creation.h>
#include <tenon/ops.h>

#include "train/texts/spans.h"

namespace tenon::train {

Tensor next_token_probabilities(const nn::AnyModule& net, const Tensor& tokens) {
  const Tensor scores = net(tokens);
  return softmax(cast(reshape(select(scores, 1, -1), {scores.size(2)}), DType::Float32));
}

TextPredictor::TextPredictor(const nn::AnyModule& net, const std::shared_ptr<const Task>& task)
    : text_(compile([net, task](const std::vector<Tensor>& in) {
        const Tensor scores = net(in[0]);
        return std::vector<Tensor>{task->predictions(reshape(scores, {scores.numel()}))};
      })),
      token_at_(compile([net](const std::vector<Tensor>& in) {
        const Tensor scores = net(in[0]);
        return std::vector<Tensor>{
            softmax(reshape(index_select(scores, 1, in[1]), {scores.size(2)}))};
      })),
      next_token_(compile([net](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{next_token_probabilities(net, in[0])};
      })),
      answer_scores_(compiled_answer_scores(net)) {}

Tensor TextPredictor::token_at(const Tensor& tokens, std::int64_t position) const {
  return token_at_({tokens, Tensor::from(std::vector<std::int64_t>{position}, {1})})[0];
}

}  // namespace tenon::train
