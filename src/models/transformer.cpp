// The Transformer for translation (Vaswani et al., "Attention is all you need", 2017): encoder and
// decoder with layer norm after each residual addition (post-norm), sinusoidal positions, and one
// matrix shared by both embeddings and the output layer.
//
// Parameter names and shapes are those of PyTorch's nn.Transformer, without its two final norms,
// which the paper does not have; the embedding is not part of nn.Transformer.
#include <cmath>
#include <vector>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/transformer.h>

#include "base/index.h"
#include "base/str.h"
#include "models/network_family.h"
#include "models/size_writer.h"

namespace tenon::models {
namespace {

struct TransformerSizes {
  std::int64_t layers = 0, heads = 0, width = 0, hidden = 0;
};

constexpr double kDropout = 0.1;
// The padding token; equal to data::kPad, which this folder does not include.
constexpr std::int64_t kPad = 0;

class TransformerModel : public Translator {
 public:
  TransformerModel(const TransformerSizes& s, std::int64_t vocabulary, const OptionalGenerator& g)
      : sizes_(s),
        generator_(g),
        embedding_(child("embedding", nn::Embedding(vocabulary, s.width, {}, {.generator = g}))),
        encoder_(child("encoder", nn::TransformerEncoder(s.layers, s.width, s.heads, parts(s, g)))),
        decoder_(
            child("decoder", nn::TransformerDecoder(s.layers, s.width, s.heads, parts(s, g)))) {
    for (const nn::NamedTensor& p : named_parameters())
      if (p.tensor.rank() > 1)
        set_value(p.tensor, nn::init::xavier_uniform(p.tensor.shape(), 1, g));
    const double deviation = 1 / std::sqrt(static_cast<double>(s.width));
    set_value(embedding_.weight(), nn::init::normal({vocabulary, s.width}, 0, deviation, g));
  }

  Tensor forward(const Tensor& pairs) const override {
    if (pairs.rank() != 3 || pairs.size(1) != 2)
      throw ShapeError(cat("Transformer: the input is ", pairs.shape(),
                           ", must be [N, 2, L]: sources and translations"));
    const Tensor source = select(pairs, 1, 0), target = select(pairs, 1, 1);
    const nn::AttentionMask padding{.key_padding = eq(source, kPad)}, past{.causal = true};
    const Tensor memory = encoder_(embed(source), padding);  // draws its dropout first
    return scores(decoder_(embed(target), memory, past, padding));
  }
  std::string describe() const override { return "Transformer"; }

  // The mask of padded keys, then keys and values of each layer.
  std::vector<Tensor> encode(const Tensor& source) const override {
    const nn::AttentionMask padding{.key_padding = eq(source, kPad)};
    const Tensor memory = encoder_(embed(source), padding);
    std::vector<Tensor> out{padding.key_padding};
    for (const nn::DecoderCache& cache : decoder_.start(memory, 1)) {
      out.push_back(cache.memory.keys);
      out.push_back(cache.memory.values);
    }
    return out;
  }
  std::vector<Tensor> initial_state(std::int64_t batch, std::int64_t positions) const override {
    const Shape shape{batch, sizes_.heads, positions, sizes_.width / sizes_.heads};
    return std::vector<Tensor>(2 * at(sizes_.layers), zeros(shape));
  }
  Decoder::Next decode(const Tensor& tokens, const Tensor& position,
                       const std::vector<Tensor>& encoded,
                       const std::vector<Tensor>& state) const override {
    std::vector<nn::DecoderCache> caches;
    for (std::size_t k = 0; k + 1 < state.size(); k += 2)
      caches.push_back({{state[k], state[k + 1]}, {encoded[k + 1], encoded[k + 2]}});
    const Tensor positions = nn::sinusoid_positions(state[0].size(2), sizes_.width);
    const Tensor x =
        scaled(unsqueeze(tokens, 1)) + index_select(positions, 0, reshape(position, {1}));
    const nn::TransformerDecoder::Decoded made =
        decoder_(x, caches, position, nn::AttentionMask{.key_padding = encoded[0]});
    Decoder::Next next{scores(squeeze(made.output, 1)), {}};
    for (const nn::DecoderCache& cache : made.caches) {
      next.state.push_back(cache.self.keys);
      next.state.push_back(cache.self.values);
    }
    return next;
  }

 private:
  static nn::TransformerOptions parts(const TransformerSizes& s, const OptionalGenerator& g) {
    return {.dim_feedforward = s.hidden, .dropout = kDropout, .batch_first = true, .generator = g};
  }
  Tensor scaled(const Tensor& tokens) const {
    return embedding_(tokens) * std::sqrt(static_cast<double>(sizes_.width));
  }
  Tensor embed(const Tensor& tokens) const {
    const Tensor x = scaled(tokens) + nn::sinusoid_positions(tokens.size(1), sizes_.width);
    return dropout(x, kDropout, is_training(), generator_);
  }
  Tensor scores(const Tensor& x) const { return linear(x, embedding_.weight()); }

  TransformerSizes sizes_;
  OptionalGenerator generator_;
  nn::Embedding embedding_;
  nn::TransformerEncoder encoder_;
  nn::TransformerDecoder decoder_;
};

}  // namespace

void set_transformer_sizes(io::TomlValue& keys, const std::string& name, const std::string& text) {
  SizeWriter sizes(keys, name, text, {"layers", "heads", "width", "hidden"});
  for (const char* key : {"layers", "heads", "width", "hidden"}) sizes.whole(key);
  sizes.require_heads();
}

nn::AnyModule build_transformer(const NetworkFacts& facts, const Options& o) {
  return TransformerModel({whole_variable(facts, "layers"), whole_variable(facts, "heads"),
                           whole_variable(facts, "width"), whole_variable(facts, "hidden")},
                          o.classes, o.generator);
}

}  // namespace tenon::models
