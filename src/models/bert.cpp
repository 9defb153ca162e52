// BERT: a bidirectional Transformer encoder with three heads.
//
// Devlin, Chang, Lee and Toutanova, "BERT: pre-training of deep bidirectional transformers for
// language understanding", 2019. Parameter names and shapes are Hugging Face's: those of
// BertForMaskedLM, BertForSequenceClassification and BertForQuestionAnswering. Layer norm comes
// after each residual addition (post-norm). Inputs are tokens [N, L], or [N, 2, L]: tokens and
// their types (0 for the first text, 1 for the second). Token 0 is padding ([PAD]) and is masked
// out.
#include <optional>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"
#include "models/activations.h"
#include "models/bert_embeddings.h"
#include "models/head.h"
#include "models/network_family.h"
#include "models/size_writer.h"

namespace tenon::models {
namespace {

constexpr double kBertDeviation = 0.02, kMostBertDropout = 0.99;

struct BertSizes {
  std::int64_t layers = 0, heads = 0, width = 0, hidden = 0, context = 0, vocabulary = 0;
  std::string activation{};
  double eps = 0, dropout = 0, attention_dropout = 0, head_dropout = 0;
};

constexpr std::int64_t kTextTypes = 2, kPadToken = 0;

nn::LayerNorm bert_norm(std::int64_t width, double eps) {
  return nn::LayerNorm({width}, {.eps = eps});
}

nn::Linear bert_linear(std::int64_t in, std::int64_t out, const OptionalGenerator& g) {
  return {
      in,
      out,
      {.generator = g, .weight_init = [](const Shape& shape, const OptionalGenerator& generator) {
         return nn::init::normal(shape, 0, kBertDeviation, generator);
       }}};
}

nn::Embedding bert_embedding(std::int64_t count, std::int64_t width, const OptionalGenerator& g) {
  nn::Embedding out(count, width, {}, {.generator = g});
  set_value(out.weight(), nn::init::normal({count, width}, 0, kBertDeviation, g));
  return out;
}

}  // namespace

BertInput bert_input(const Tensor& input, std::int64_t context) {
  const bool typed = input.rank() == 3 && input.size(1) == kTextTypes;
  if (!(typed || input.rank() == 2) || input.size(-1) > context)
    throw ShapeError(cat("BERT: the tokens are ", input.shape(),
                         ", must be [N, L], or [N, 2, L] with types, and L up to ", context,
                         ", the context it was built with"));
  const auto row = [&](std::int64_t k) { return squeeze(slice(input, 1, k, k + 1), 1); };
  const Tensor tokens = typed ? row(0) : input;
  // The first position is never masked: a text begins with [CLS], and a row of padding alone must
  // still attend to something.
  const Tensor seen = logical_or(ne(tokens, kPadToken), eq(arange(0, tokens.size(1)), 0));
  return {tokens, typed ? std::optional(row(1)) : std::nullopt, unsqueeze(unsqueeze(seen, 1), 1)};
}

BertEmbeddings::BertEmbeddings(const Sizes& s, const OptionalGenerator& g)
    : words_(child("word_embeddings", bert_embedding(s.vocabulary, s.width, g))),
      places_(child("position_embeddings", bert_embedding(s.context, s.width, g))),
      types_(child("token_type_embeddings", bert_embedding(kTextTypes, s.width, g))),
      norm_(child("LayerNorm", bert_norm(s.width, s.eps))),
      dropout_(child("dropout", nn::Dropout(s.dropout, g))) {}

Tensor BertEmbeddings::forward(const Tensor& tokens, const std::optional<Tensor>& types) const {
  const Tensor words = words_(tokens);  // the padding token's embedding gets no gradient
  const Tensor of_words = where(unsqueeze(ne(tokens, kPadToken), 2), words, detach(words));
  const Tensor of_types = types ? types_(*types) : slice(types_.weight(), 0, 0, 1);
  return dropout_(norm_(of_words + of_types + places_(arange(0, tokens.size(1)))));
}

namespace {

// Bidirectional self-attention; `seen` [N, 1, 1, L] masks the keys.
class BertSelfAttention : public nn::ModuleOf<BertSelfAttention> {
 public:
  BertSelfAttention(const BertSizes& s, const OptionalGenerator& g)
      : heads_(s.heads),
        dropout_(s.attention_dropout),
        generator_(g),
        query_(child("query", bert_linear(s.width, s.width, g))),
        key_(child("key", bert_linear(s.width, s.width, g))),
        value_(child("value", bert_linear(s.width, s.width, g))) {}

  Tensor forward(const Tensor& x, const Tensor& seen) const {
    const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    const auto of_heads = [&](const Tensor& part) {  // [N, L, C] to [N, heads, L, C / heads]
      return transpose(reshape(part, {batch, length, heads_, width / heads_}), 1, 2);
    };
    const Tensor y = scaled_dot_product_attention(
        of_heads(query_(x)), of_heads(key_(x)), of_heads(value_(x)), seen,
        {.dropout_p = is_training() ? dropout_ : 0, .generator = generator_});
    return reshape(transpose(y, 1, 2), {batch, length, width});
  }

 private:
  std::int64_t heads_;
  double dropout_;
  OptionalGenerator generator_;
  nn::Linear query_, key_, value_;
};

// The end of an attention or feed-forward sublayer: linear projection to the layer's width,
// residual addition, layer norm.
class BertSum : public nn::ModuleOf<BertSum> {
 public:
  BertSum(const BertSizes& s, std::int64_t in, const OptionalGenerator& g)
      : dense_(child("dense", bert_linear(in, s.width, g))),
        norm_(child("LayerNorm", bert_norm(s.width, s.eps))),
        dropout_(child("dropout", nn::Dropout(s.dropout, g))) {}
  Tensor forward(const Tensor& x, const Tensor& residual) const {
    return norm_(dropout_(dense_(x)) + residual);
  }

 private:
  nn::Linear dense_;
  nn::LayerNorm norm_;
  nn::Dropout dropout_;
};

class BertAttention : public nn::ModuleOf<BertAttention> {
 public:
  BertAttention(const BertSizes& s, const OptionalGenerator& g)
      : self_(child("self", BertSelfAttention(s, g))),
        output_(child("output", BertSum(s, s.width, g))) {}
  Tensor forward(const Tensor& x, const Tensor& seen) const { return output_(self_(x, seen), x); }

 private:
  BertSelfAttention self_;
  BertSum output_;
};

class BertIntermediate : public nn::Module {
 public:
  BertIntermediate(const BertSizes& s, const OptionalGenerator& g)
      : activation_(s.activation), dense_(child("dense", bert_linear(s.width, s.hidden, g))) {}
  Tensor forward(const Tensor& x) const override { return activated(activation_, dense_(x)); }

 private:
  std::string activation_;
  nn::Linear dense_;
};

class BertLayer : public nn::ModuleOf<BertLayer> {
 public:
  BertLayer(const BertSizes& s, const OptionalGenerator& g)
      : attention_(child("attention", BertAttention(s, g))),
        intermediate_(child("intermediate", BertIntermediate(s, g))),
        output_(child("output", BertSum(s, s.hidden, g))) {}
  Tensor forward(const Tensor& x, const Tensor& seen) const {
    const Tensor y = attention_(x, seen);
    return output_(intermediate_(y), y);
  }

 private:
  BertAttention attention_;
  BertIntermediate intermediate_;
  BertSum output_;
};

class BertEncoder : public nn::ModuleOf<BertEncoder> {
 public:
  BertEncoder(const BertSizes& s, const OptionalGenerator& g) {
    for (std::int64_t k = 0; k < s.layers; ++k) layers_.append(BertLayer(s, g));
    child("layer", layers_);
  }
  Tensor forward(const Tensor& x, const Tensor& seen) const {
    Tensor y = x;
    for (std::int64_t k = 0; k < layers_.size(); ++k) y = (*layers_[k].as<BertLayer>())(y, seen);
    return y;
  }

 private:
  nn::ModuleList layers_;
};

// Pools a text: its first position's features through a linear layer and tanh.
class BertPooler : public nn::Module {
 public:
  BertPooler(const BertSizes& s, const OptionalGenerator& g)
      : dense_(child("dense", bert_linear(s.width, s.width, g))) {}
  Tensor forward(const Tensor& x) const override {
    return tanh(dense_(squeeze(slice(x, 1, 0, 1), 1)));
  }

 private:
  nn::Linear dense_;
};

// Tokens to features [N, L, width], or with a pooler to features of whole texts [N, width].
class BertModel : public nn::Module {
 public:
  BertModel(const BertSizes& s, bool pooled, const OptionalGenerator& g)
      : sizes_(s),
        embeddings_(child("embeddings",
                          BertEmbeddings({s.vocabulary, s.context, s.width, s.eps, s.dropout}, g))),
        encoder_(child("encoder", BertEncoder(s, g))) {
    if (pooled) pooler_ = child("pooler", BertPooler(s, g));
  }

  const Tensor& word_matrix() const { return embeddings_.word_matrix(); }

  Tensor forward(const Tensor& input) const override {
    const BertInput given = bert_input(input, sizes_.context);
    const Tensor y = encoder_(embeddings_(given.tokens, given.types), given.seen);
    return pooler_ ? (*pooler_)(y) : y;
  }

 private:
  BertSizes sizes_;
  BertEmbeddings embeddings_;
  BertEncoder encoder_;
  std::optional<BertPooler> pooler_;
};

// ---- Heads

class BertTransform : public nn::Module {
 public:
  BertTransform(const BertSizes& s, const OptionalGenerator& g)
      : activation_(s.activation),
        dense_(child("dense", bert_linear(s.width, s.width, g))),
        norm_(child("LayerNorm", bert_norm(s.width, s.eps))) {}
  Tensor forward(const Tensor& x) const override {
    return norm_(activated(activation_, dense_(x)));
  }

 private:
  std::string activation_;
  nn::Linear dense_;
  nn::LayerNorm norm_;
};

// Scores of every token for every position; the output layer shares the token embedding.
class BertPredictions : public nn::Module {
 public:
  BertPredictions(const BertSizes& s, const Tensor& word_matrix, const OptionalGenerator& g)
      : bias_(parameter("bias", zeros({s.vocabulary}))),
        transform_(child("transform", BertTransform(s, g))),
        decoder_(child("decoder", nn::Linear(s.width, s.vocabulary,
                                             {.bias = false, .tied_weight = word_matrix}))) {}
  Tensor forward(const Tensor& x) const override { return decoder_(transform_(x)) + bias_; }

 private:
  Tensor bias_;
  BertTransform transform_;
  nn::Linear decoder_;
};

class BertHeads : public nn::Module {
 public:
  BertHeads(const BertSizes& s, const Tensor& word_matrix, const OptionalGenerator& g)
      : predictions_(child("predictions", BertPredictions(s, word_matrix, g))) {}
  Tensor forward(const Tensor& x) const override { return predictions_(x); }

 private:
  BertPredictions predictions_;
};

class BertForMaskedLM : public nn::Module {
 public:
  BertForMaskedLM(const BertSizes& s, const OptionalGenerator& g)
      : bert_(child("bert", BertModel(s, false, g))),
        cls_(child("cls", BertHeads(s, bert_.word_matrix(), g))) {}
  Tensor forward(const Tensor& input) const override { return cls_(bert_(input)); }
  std::string describe() const override { return "BertForMaskedLM"; }

 private:
  BertModel bert_;
  BertHeads cls_;
};

class BertForSequenceClassification : public nn::Module {
 public:
  BertForSequenceClassification(const BertSizes& s, const Options& o)
      : bert_(child("bert", BertModel(s, true, o.generator))),
        dropout_(child("dropout", nn::Dropout(s.head_dropout, o.generator))),
        classifier_(child("classifier", o.head.empty() ? nn::AnyModule(bert_linear(
                                                             s.width, o.classes, o.generator))
                                                       : nn::AnyModule(head_of(s.width, o)))) {}
  Tensor forward(const Tensor& input) const override { return classifier_(dropout_(bert_(input))); }
  std::string describe() const override { return "BertForSequenceClassification"; }

 private:
  BertModel bert_;
  nn::Dropout dropout_;
  nn::AnyModule classifier_;
};

// Scores [N, 2, L] of each position as the first and as the last token of an answer.
class BertForQuestionAnswering : public nn::Module {
 public:
  BertForQuestionAnswering(const BertSizes& s, const OptionalGenerator& g)
      : bert_(child("bert", BertModel(s, false, g))),
        qa_outputs_(child("qa_outputs", bert_linear(s.width, 2, g))) {}
  Tensor forward(const Tensor& input) const override {
    return transpose(qa_outputs_(bert_(input)), 1, 2);
  }
  std::string describe() const override { return "BertForQuestionAnswering"; }

 private:
  BertModel bert_;
  nn::Linear qa_outputs_;
};

// ---- The three tasks, by the names of the networks

bool is_classifier(const std::string& name) { return name.ends_with("_classifier"); }
bool is_span_model(const std::string& name) { return name.ends_with("_spans"); }

BertSizes bert_sizes(const NetworkFacts& facts) {
  BertSizes s;
  s.layers = whole_variable(facts, "layers");
  s.heads = whole_variable(facts, "heads");
  s.width = whole_variable(facts, "width");
  s.hidden = whole_variable(facts, "hidden");
  s.context = whole_variable(facts, "context");
  s.vocabulary = facts.info.vocabulary;
  s.activation = facts.activation;
  s.eps = facts.variables.value("eps");
  s.dropout = facts.variables.value("dropout");
  s.attention_dropout = facts.variables.value("attention_dropout");
  if (is_classifier(facts.name)) s.head_dropout = facts.variables.value("head_dropout");
  return s;
}

}  // namespace

void set_bert_sizes(io::TomlValue& keys, const std::string& name, const std::string& text) {
  const bool classes = is_classifier(name), spans = is_span_model(name);
  std::vector<std::string> taken{"layers",     "heads", "width",   "hidden",           "context",
                                 "activation", "eps",   "dropout", "attention_dropout"};
  if (classes || spans) taken.emplace_back("vocabulary");
  if (classes) taken.emplace_back("head_dropout");
  SizeWriter sizes(keys, name, text, taken);
  sizes.transformer();
  sizes.own_whole("vocabulary");
  for (const char* share : {"dropout", "attention_dropout", "head_dropout"})
    sizes.number(share, 0, kMostBertDropout);
  // Each position is a class: an answer may begin or end at any of them.
  if (spans)
    keys.set("classes", io::toml_integer(static_cast<std::int64_t>(sizes.value("context"))));
}

// For masked language modelling the classes are the vocabulary.
nn::AnyModule build_bert(const NetworkFacts& facts, const Options& o) {
  const bool classes = is_classifier(facts.name), spans = is_span_model(facts.name);
  BertSizes s = bert_sizes(facts);
  if (!classes && !spans) s.vocabulary = o.classes;
  nn::AnyModule net = nn::Identity();
  if (classes)
    net = BertForSequenceClassification(s, o);
  else if (spans)
    net = BertForQuestionAnswering(s, o.generator);
  else
    net = BertForMaskedLM(s, o.generator);
  for (const auto& [name, value] : net.named_parameters())
    if (name.ends_with(".bias")) set_value(value, zeros(value.shape()));
  return net;
}

}  // namespace tenon::models
