// The Transformer for translation (Vaswani et al., "Attention is all you need", 2017): encoder and
// decoder with layer norm after each residual addition (post-norm), sinusoidal positions, and one
// matrix shared by both embeddings and the output layer.
//
// Parameter names and shapes are those of PyTorch's nn.Transformer, without its two final norms,
// which the paper does not have; the embedding is outside of it.
#include <cmath>
#include <vector>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/transformer.h>

#include "base/index.h"
#include "base/str.h"
#include "models/entry.h"

namespace tenon::models {
namespace {

struct TransformerSizes {
  std::int64_t layers = 6, heads = 8, width = 512, hidden = 2048;
};

constexpr std::int64_t kWords = 37'000, kPlaces = 64;
constexpr double kDropout = 0.1;
// What fills a sequence up: data::kPad, a room that this one does not see.
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
    const Tensor memory = encoder_(embed(source), padding);  // its dropout draws first
    return scores(decoder_(embed(target), memory, past, padding));
  }
  std::string describe() const override { return "Transformer"; }

  // Which keys are hidden, then keys and values of each layer.
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
  std::vector<Tensor> initial_state(std::int64_t batch, std::int64_t places) const override {
    const Shape shape{batch, sizes_.heads, places, sizes_.width / sizes_.heads};
    return std::vector<Tensor>(2 * at(sizes_.layers), zeros(shape));
  }
  Decoder::Next decode(const Tensor& tokens, const Tensor& place,
                       const std::vector<Tensor>& encoded,
                       const std::vector<Tensor>& state) const override {
    std::vector<nn::DecoderCache> caches;
    for (std::size_t k = 0; k + 1 < state.size(); k += 2)
      caches.push_back({{state[k], state[k + 1]}, {encoded[k + 1], encoded[k + 2]}});
    const Tensor positions = nn::sinusoid_positions(state[0].size(2), sizes_.width);
    const Tensor x = scaled(unsqueeze(tokens, 1)) + index_select(positions, 0, reshape(place, {1}));
    const nn::TransformerDecoder::Decoded made =
        decoder_(x, caches, place, nn::AttentionMask{.key_padding = encoded[0]});
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

TransformerSizes transformer_sizes(const std::string& text) {
  TransformerSizes s;
  bool hidden = false;
  for (const auto& [key, value] :
       named_sizes("transformer", text, {"layers", "heads", "width", "hidden"})) {
    (key == "layers"  ? s.layers
     : key == "heads" ? s.heads
     : key == "width" ? s.width
                      : s.hidden) = value;
    hidden = hidden || key == "hidden";
  }
  if (!hidden) s.hidden = 4 * s.width;
  require_heads("transformer", text, s.width, s.heads);
  return s;
}

nn::AnyModule transformer(const std::string& sizes, const Options& o) {
  return TransformerModel(transformer_sizes(sizes), o.classes, o.generator);
}

// Of attention, 4 w² + 4 w; of the feed-forward part, 2 w h + w + h; of a norm, 2 w.
std::int64_t transformer_parameters(const TransformerSizes& s, std::int64_t vocabulary) {
  const std::int64_t w = s.width, attention = 4 * w * w + 4 * w,
                     feed = 2 * w * s.hidden + w + s.hidden;
  return s.layers * (3 * attention + 2 * feed + 5 * 2 * w) + vocabulary * w;
}

// The highest rate of the paper's schedule is (4000 width)^-1/2, for batches of 25,000 tokens.
// Those of 128 short pairs have a tenth of that: their gradients are noisier, and training with the
// paper's rate left the minimum again. A rate 2.3 times lower (the root of 5.4) does not.
double highest_rate(const TransformerSizes& s) {
  constexpr double kSteps = 4000 * 5.4;
  return 1 / std::sqrt(kSteps * static_cast<double>(s.width));
}

Info sized_transformer(const Info& standard, const std::string& text) {
  const TransformerSizes sizes = transformer_sizes(text);
  Info out = standard;
  out.name = cat("transformer:", text);
  out.parameters = transformer_parameters(sizes, standard.classes);
  out.recipe.lr = highest_rate(sizes);
  return out;
}

std::string transformer_toml(const std::string& sizes, const Options&) {
  const TransformerSizes s = transformer_sizes(sizes);
  return cat("variables = { layers = ", s.layers, ", heads = ", s.heads, ", width = ", s.width,
             ", hidden = ", s.hidden, " }\n") +
         R"toml(encoder = [                          # what it gives is "memory", where the source is filled up "padding"
  { embedding = "width", name = "embedding" }, { scale = "sqrt(width)" }, "sinusoid_positions", { dropout = 0.1 },
  { sequence = [ { sequence = [ { repeat = "layers", layers = [
    { transformer_encoder_layer = "heads", hidden = "hidden", padding = "padding" },
  ] } ], name = "layers" } ], name = "encoder" },
]
layers = [                           # they see what is written so far
  { embedding = "width", tie = "embedding.weight" }, { scale = "sqrt(width)" }, "sinusoid_positions", { dropout = 0.1 },
  { sequence = [ { sequence = [ { repeat = "layers", layers = [
    { transformer_decoder_layer = "heads", hidden = "hidden", padding = "padding" },
  ] } ], name = "layers" } ], name = "decoder" },
  { linear = "classes", bias = false, tie = "embedding.weight" },
]
init = [
  { parameters = "*", values = "xavier_uniform" },
  { parameters = "embedding.weight", values = { normal = "1 / sqrt(width)" } },
]
)toml";
}

}  // namespace

std::vector<Entry> transformer_entries() {
  Info info{
      "transformer",
      "the base Transformer, for translation; transformer:layers=2,heads=4,width=64,hidden=256",
      {2, kPlaces},
      kWords,
      transformer_parameters({}, kWords),
      {.epochs = 10,
       .batch = 128,
       .optimizer = "adam",
       .lr = highest_rate({}),
       .momentum = 0,
       .schedule = "inverse_sqrt",
       .warmup = 2,
       .data = "numbers",
       .label_smoothing = 0.1,
       .beta2 = 0.98,
       .eps = 1e-9}};
  info.tokens = info.pairs = true;
  return {{info, transformer, sized_transformer, false, false, transformer_toml}};
}

}  // namespace tenon::models
