// BERT's embeddings, for the built-in network and for network files.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/nn.h>

namespace tenon::models {

/// The name under which layers of a network file find BertInput::seen.
constexpr char kSeen[] = "seen";

struct BertInput {
  Tensor tokens;                ///< [N, L]
  std::optional<Tensor> types;  ///< [N, L]; none: all tokens are of type 0
  Tensor seen;  ///< bool [N, 1, 1, L]: false for padding, except at the first position
};
/// Splits the input of BERT: tokens [N, L], or [N, 2, L] with token types, L up to `context`.
/// Throws ShapeError for another shape.
BertInput bert_input(const Tensor& input, std::int64_t context);

/// Sum of token, position and type embeddings, then layer norm: features [N, L, width].
class BertEmbeddings : public nn::ModuleOf<BertEmbeddings> {
 public:
  struct Sizes {
    std::int64_t vocabulary = 0, context = 0, width = 0;
    double eps = 1e-12, dropout = 0.1;
  };
  BertEmbeddings(const Sizes& sizes, const OptionalGenerator& g);
  const Tensor& word_matrix() const { return words_.weight(); }
  Tensor forward(const Tensor& tokens, const std::optional<Tensor>& types) const;

 private:
  nn::Embedding words_, places_, types_;
  nn::LayerNorm norm_;
  nn::Dropout dropout_;
};

}  // namespace tenon::models
