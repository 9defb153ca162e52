// BERT's embeddings, for the built-in network and for network files.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/nn.h>

namespace tenon::models {

/// Under which name a file's layers find BertInput::seen.
constexpr char kSeen[] = "seen";

struct BertInput {
  Tensor tokens;                ///< [N, L]
  std::optional<Tensor> types;  ///< [N, L]; none: all are of the first text
  Tensor seen;                  ///< bool [N, 1, 1, L]: not filled up, and always the first place
};
/// Out of tokens [N, L] or [N, 2, L], with the type of each, and L up to `context`. Throws
/// ShapeError.
BertInput bert_input(const Tensor& input, std::int64_t context);

/// Embeddings of words, places and types added up, normalised: to features [N, L, width].
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
