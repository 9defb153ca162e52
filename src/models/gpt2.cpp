// GPT-2: a Transformer decoder that predicts the next token.
//
// Radford et al., "Language models are unsupervised multitask learners", 2019. Parameter names and
// shapes are those of Hugging Face's GPT2LMHeadModel, whose linear layers store weights as [in,
// out]; the head shares the token embedding. Layer norm comes before each block (pre-norm).
#include <cmath>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "models/activations.h"
#include "models/conv1d.h"
#include "models/network_family.h"
#include "models/size_writer.h"

namespace tenon::models {
namespace {

using nn::Module;

constexpr double kMostDropout = 0.99;

struct GptSizes {
  std::int64_t layers = 0, heads = 0, width = 0, context = 0;
  std::int64_t hidden = 0;  // units of a feed-forward sublayer
  std::string activation{};
  double eps = 0, dropout = 0, attention_dropout = 0, embedding_dropout = 0;
};

constexpr double kDeviation = 0.02;

// A linear layer with normally distributed initial weights and zero biases.
Conv1D projection(std::int64_t in, std::int64_t out, double deviation, const OptionalGenerator& g) {
  return {in, out, true,
          [deviation](const Shape& shape, const OptionalGenerator& generator) {
            return nn::init::normal(shape, 0, deviation, generator);
          },
          g};
}

// Dropout in training mode. With p = 0 no random number is drawn.
Tensor dropped(const Tensor& x, double p, const Module& module, const OptionalGenerator& g) {
  return p > 0 && module.is_training() ? dropout(x, p, true, g) : x;
}

class Attention : public Module {
 public:
  Attention(const GptSizes& s, double residual, const OptionalGenerator& g)
      : heads_(s.heads),
        dropout_(s.dropout),
        of_scores_(s.attention_dropout),
        generator_(g),
        c_attn_(child("c_attn", projection(s.width, 3 * s.width, kDeviation, g))),
        c_proj_(child("c_proj", projection(s.width, s.width, residual, g))) {}

  Tensor forward(const Tensor& x) const override {
    const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    const auto of_heads = [&](const Tensor& part) {  // [N, T, C] to [N, heads, T, C / heads]
      return transpose(reshape(part, {batch, length, heads_, width / heads_}), 1, 2);
    };
    const std::vector<Tensor> qkv = chunk(c_attn_(x), 3, 2);
    const Tensor y = scaled_dot_product_attention(
        of_heads(qkv[0]), of_heads(qkv[1]), of_heads(qkv[2]), {},
        {.causal = true, .dropout_p = is_training() ? of_scores_ : 0, .generator = generator_});
    return dropped(c_proj_(reshape(transpose(y, 1, 2), {batch, length, width})), dropout_, *this,
                   generator_);
  }

  // One token [N, C], which attends to the tokens before it. cache[at] and cache[at + 1] are their
  // keys and values [N, heads, context, C / heads].
  Tensor decode(const Tensor& x, const Tensor& position, std::vector<Tensor>& cache,
                std::size_t at) const {
    const std::int64_t batch = x.size(0), width = x.size(1), context = cache[at].size(2);
    const std::vector<Tensor> qkv = chunk(c_attn_(x), 3, 1);
    const auto of_heads = [&](const Tensor& part) {
      return reshape(part, {batch, heads_, 1, width / heads_});
    };
    const Tensor positions = arange(0, context), here = unsqueeze(eq(positions, position), 1);
    Tensor &keys = cache[at], &values = cache[at + 1];
    keys = where(here, of_heads(qkv[1]), keys);
    values = where(here, of_heads(qkv[2]), values);
    const Tensor y =
        scaled_dot_product_attention(of_heads(qkv[0]), keys, values, le(positions, position));
    return c_proj_(reshape(y, {batch, width}));
  }
  std::string describe() const override { return cat("Attention(", heads_, " heads)"); }

 private:
  std::int64_t heads_;
  double dropout_, of_scores_;
  OptionalGenerator generator_;
  Conv1D c_attn_, c_proj_;
};

class FeedForward : public Module {
 public:
  FeedForward(const GptSizes& s, double residual, const OptionalGenerator& g)
      : activation_(s.activation),
        dropout_(s.dropout),
        generator_(g),
        c_fc_(child("c_fc", projection(s.width, s.hidden, kDeviation, g))),
        c_proj_(child("c_proj", projection(s.hidden, s.width, residual, g))) {}
  Tensor forward(const Tensor& x) const override {
    return dropped(c_proj_(activated(activation_, c_fc_(x))), dropout_, *this, generator_);
  }
  std::string describe() const override { return "MLP"; }

 private:
  std::string activation_;
  double dropout_;
  OptionalGenerator generator_;
  Conv1D c_fc_, c_proj_;
};

class Block : public Module {
 public:
  Block(const GptSizes& s, double residual, const OptionalGenerator& g)
      : ln_1_(child("ln_1", nn::LayerNorm({s.width}, {.eps = s.eps}))),
        attn_(child("attn", Attention(s, residual, g))),
        ln_2_(child("ln_2", nn::LayerNorm({s.width}, {.eps = s.eps}))),
        mlp_(child("mlp", FeedForward(s, residual, g))) {}
  Tensor forward(const Tensor& x) const override {
    const Tensor y = x + attn_(ln_1_(x));
    return y + mlp_(ln_2_(y));
  }
  Tensor decode(const Tensor& x, const Tensor& position, std::vector<Tensor>& cache,
                std::size_t at) const {
    const Tensor y = x + attn_.decode(ln_1_(x), position, cache, at);
    return y + mlp_(ln_2_(y));
  }
  std::string describe() const override { return "Block"; }

 private:
  nn::LayerNorm ln_1_;
  Attention attn_;
  nn::LayerNorm ln_2_;
  FeedForward mlp_;
};

// Token numbers [N, T] to features [N, T, width]. Initial weights of the layers that add to the
// residual stream are divided by the square root of the number of additions.
class Transformer : public Module {
 public:
  Transformer(const GptSizes& s, std::int64_t vocabulary, const OptionalGenerator& g)
      : context_(s.context),
        dropout_(s.embedding_dropout),
        generator_(g),
        wte_(child("wte", embedding(vocabulary, s.width, g))),
        wpe_(child("wpe", embedding(s.context, s.width, g))),
        h_(child("h", blocks(s, g))),
        ln_f_(child("ln_f", nn::LayerNorm({s.width}, {.eps = s.eps}))) {}

  const Tensor& token_embedding() const { return wte_.weight(); }

  Tensor forward(const Tensor& tokens) const override {
    if (tokens.rank() != 2 || tokens.size(1) > context_)
      throw ShapeError(cat("GPT-2: the tokens are ", tokens.shape(),
                           ", must be [N, T] with T up to ", context_,
                           ", the context it was built with"));
    Tensor x = dropped(wte_(tokens) + wpe_(arange(0, tokens.size(1))), dropout_, *this, generator_);
    for (std::int64_t k = 0; k < h_.size(); ++k) x = h_[k](x);
    return ln_f_(x);
  }
  Tensor decode(const Tensor& tokens, const Tensor& position, std::vector<Tensor>& cache) const {
    Tensor x = wte_(tokens) + wpe_(position);
    for (std::int64_t k = 0; k < h_.size(); ++k)
      x = h_[k].as<Block>()->decode(x, position, cache, 2 * at(k));
    return ln_f_(x);
  }
  std::string describe() const override { return "Transformer"; }

 private:
  static nn::Embedding embedding(std::int64_t count, std::int64_t width,
                                 const OptionalGenerator& g) {
    nn::Embedding out(count, width, {}, {.generator = g});
    set_value(out.weight(), nn::init::normal({count, width}, 0, kDeviation, g));
    return out;
  }
  static nn::ModuleList blocks(const GptSizes& s, const OptionalGenerator& g) {
    const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(s.layers));
    nn::ModuleList out;
    for (std::int64_t k = 0; k < s.layers; ++k) out.append(Block(s, residual, g));
    return out;
  }

  std::int64_t context_;
  double dropout_;
  OptionalGenerator generator_;
  nn::Embedding wte_, wpe_;
  nn::ModuleList h_;
  nn::LayerNorm ln_f_;
};

class Gpt2 : public Decoder {
 public:
  Gpt2(const GptSizes& s, std::int64_t vocabulary, const OptionalGenerator& g)
      : sizes_(s),
        transformer_(child("transformer", Transformer(s, vocabulary, g))),
        lm_head_(child("lm_head", nn::Linear(s.width, vocabulary,
                                             {.bias = false,
                                              .tied_weight = transformer_.token_embedding()}))) {}
  Tensor forward(const Tensor& tokens) const override { return lm_head_(transformer_(tokens)); }
  std::string describe() const override { return "GPT2LMHeadModel"; }

  std::int64_t context() const override { return sizes_.context; }
  std::vector<Tensor> initial_state(std::int64_t batch) const override {
    const Shape shape{batch, sizes_.heads, sizes_.context, sizes_.width / sizes_.heads};
    return std::vector<Tensor>(2 * at(sizes_.layers), zeros(shape));
  }
  Next decode(const Tensor& tokens, const Tensor& position,
              const std::vector<Tensor>& state) const override {
    Next next{{}, state};
    next.scores = lm_head_(transformer_.decode(tokens, position, next.state));
    return next;
  }

 private:
  GptSizes sizes_;
  Transformer transformer_;
  nn::Linear lm_head_;
};

GptSizes gpt2_sizes(const NetworkFacts& facts) {
  GptSizes s;
  s.layers = whole_variable(facts, "layers");
  s.heads = whole_variable(facts, "heads");
  s.width = whole_variable(facts, "width");
  s.context = whole_variable(facts, "context");
  s.hidden = whole_variable(facts, "hidden");
  s.activation = facts.activation;
  s.eps = facts.variables.value("eps");
  s.dropout = facts.variables.value("dropout");
  s.attention_dropout = facts.variables.value("attention_dropout");
  s.embedding_dropout = facts.variables.value("embedding_dropout");
  return s;
}

}  // namespace

void set_gpt2_sizes(io::TomlValue& keys, const std::string& name, const std::string& text) {
  SizeWriter sizes(keys, name, text,
                   {"layers", "heads", "width", "context", "hidden", "activation", "eps", "dropout",
                    "attention_dropout", "embedding_dropout"});
  sizes.transformer();
  for (const char* share : {"dropout", "attention_dropout", "embedding_dropout"})
    sizes.number(share, 0, kMostDropout);
}

nn::AnyModule build_gpt2(const NetworkFacts& facts, const Options& o) {
  return Gpt2(gpt2_sizes(facts), o.classes, o.generator);
}

}  // namespace tenon::models
