// BERT: a bidirectional Transformer encoder with three heads.
//
// Devlin, Chang, Lee and Toutanova, "BERT: pre-training of deep bidirectional transformers for
// language understanding", 2019. Parameter names and shapes are Hugging Face's: those of
// BertForMaskedLM, BertForSequenceClassification and BertForQuestionAnswering. Layer norm comes
// after each residual addition (post-norm). Inputs are tokens [N, L], or [N, 2, L]: tokens and
// their types (0 for the first text, 1 for the second). Token 0 is padding ([PAD]) and is masked
// out.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "models/bert_embeddings.h"
#include "models/entry.h"

namespace tenon::models {
namespace {

constexpr double kBertDropout = 0.1, kBertDeviation = 0.02, kBertEps = 1e-12,
                 kMostBertDropout = 0.99;

struct BertSizes {
  std::int64_t layers = 12, heads = 12, width = 768, hidden = 0, context = 512, vocabulary = 30'522;
  std::string activation = "gelu";
  double eps = kBertEps, dropout = kBertDropout, attention_dropout = kBertDropout,
         head_dropout = kBertDropout;
};

constexpr std::int64_t kTextTypes = 2, kFiller = 0;

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
  // A text begins with [CLS]: what has no tokens at all still has a place that is seen.
  const Tensor seen = logical_or(ne(tokens, kFiller), eq(arange(0, tokens.size(1)), 0));
  return {tokens, typed ? std::optional(row(1)) : std::nullopt, unsqueeze(unsqueeze(seen, 1), 1)};
}

BertEmbeddings::BertEmbeddings(const Sizes& s, const OptionalGenerator& g)
    : words_(child("word_embeddings", bert_embedding(s.vocabulary, s.width, g))),
      places_(child("position_embeddings", bert_embedding(s.context, s.width, g))),
      types_(child("token_type_embeddings", bert_embedding(kTextTypes, s.width, g))),
      norm_(child("LayerNorm", bert_norm(s.width, s.eps))),
      dropout_(child("dropout", nn::Dropout(s.dropout, g))) {}

Tensor BertEmbeddings::forward(const Tensor& tokens, const std::optional<Tensor>& types) const {
  const Tensor words = words_(tokens);  // the filler's does not learn
  const Tensor of_words = where(unsqueeze(ne(tokens, kFiller), 2), words, detach(words));
  const Tensor of_types = types ? types_(*types) : slice(types_.weight(), 0, 0, 1);
  return dropout_(norm_(of_words + of_types + places_(arange(0, tokens.size(1)))));
}

namespace {

// Every place looks at all that `seen` [N, 1, 1, L] allows.
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

// What a part of a layer ends with: brought to the layer's width, added to what came in,
// normalised.
class BertSum : public nn::ModuleOf<BertSum> {
 public:
  BertSum(const BertSizes& s, std::int64_t in, const OptionalGenerator& g)
      : dense_(child("dense", bert_linear(in, s.width, g))),
        norm_(child("LayerNorm", bert_norm(s.width, s.eps))),
        dropout_(child("dropout", nn::Dropout(s.dropout, g))) {}
  Tensor forward(const Tensor& x, const Tensor& came_in) const {
    return norm_(dropout_(dense_(x)) + came_in);
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

// The first place's features as those of the whole text.
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

// Tokens to features [N, L, width], or with a pooler to those of the texts [N, width].
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

// Scores of every word for every place, by the embedding of words.
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

// Scores [N, 2, L] of each place for the first and for the last of an answer.
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

// ---- The table

enum class BertTask { Words, Classes, Spans };

// Of masked words the vocabulary is the classes.
BertSizes bert_sizes(const std::string& name, const std::string& text, BertTask task,
                     BertSizes sizes) {
  std::vector<std::string> keys{"layers",     "heads", "width",   "hidden",           "context",
                                "activation", "eps",   "dropout", "attention_dropout"};
  if (task != BertTask::Words) keys.emplace_back("vocabulary");
  if (task == BertTask::Classes) keys.emplace_back("head_dropout");
  const NameValues given(name, text, keys);
  given.transformer(sizes);
  given.whole("vocabulary", sizes.vocabulary);
  if (given.number("dropout", 0, kMostBertDropout, sizes.dropout))
    sizes.attention_dropout = sizes.head_dropout = sizes.dropout;
  given.number("attention_dropout", 0, kMostBertDropout, sizes.attention_dropout);
  given.number("head_dropout", 0, kMostBertDropout, sizes.head_dropout);
  if (sizes.hidden == 0) sizes.hidden = 4 * sizes.width;
  return sizes;
}

std::int64_t bert_parameters(const BertSizes& s, BertTask task, std::int64_t classes) {
  const std::int64_t w = s.width, square = w * w + w;
  const std::int64_t layer = 4 * square + 2 * w * s.hidden + s.hidden + w + 4 * w;
  const std::int64_t body = (s.vocabulary + s.context + kTextTypes) * w + 2 * w + s.layers * layer;
  if (task == BertTask::Words) return body + square + 2 * w + s.vocabulary;
  if (task == BertTask::Spans) return body + 2 * (w + 1);
  return body + square + classes * (w + 1);
}

// The published sizes: 1e-4 from scratch (the paper's), 3e-5 for a new head on pretrained weights.
// Networks of a smaller hidden size bear a higher rate.
double bert_rate(const BertSizes& s, BertTask task) {
  const double published = task == BertTask::Words ? 1e-4 : 3e-5;
  return std::min(published * 768 / static_cast<double>(s.width), 1e-3);
}

struct BertPreset {
  const char *name, *about;
  BertTask task;
  bool large;
};
constexpr BertPreset kBertPresets[] = {
    {"bert", "BERT, 110 million parameters: masked words; bert:layers=4,heads=4,width=128",
     BertTask::Words, false},
    {"bert_large", "BERT, 335 million parameters: masked words", BertTask::Words, true},
    {"bert_classifier", "BERT with a classifier of texts", BertTask::Classes, false},
    {"bert_large_classifier", "large BERT with a classifier of texts", BertTask::Classes, true},
    {"bert_spans", "BERT with scores for the start and end of an answer", BertTask::Spans, false},
    {"bert_large_spans", "large BERT with scores for the start and end of an answer",
     BertTask::Spans, true}};

BertSizes large_bert() {
  BertSizes out;
  out.layers = 24;
  out.heads = 16;
  out.width = 1024;
  return out;
}

BertSizes preset_sizes(const BertPreset& p, const std::string& text) {
  return bert_sizes(p.name, text, p.task, p.large ? large_bert() : BertSizes());
}

template <int preset>
nn::AnyModule build_bert(const std::string& text, const Options& o) {
  const BertPreset& p = kBertPresets[preset];
  BertSizes s = preset_sizes(p, text);
  if (p.task == BertTask::Words) s.vocabulary = o.classes;
  nn::AnyModule net = nn::Identity();
  if (p.task == BertTask::Words)
    net = BertForMaskedLM(s, o.generator);
  else if (p.task == BertTask::Classes)
    net = BertForSequenceClassification(s, o);
  else
    net = BertForQuestionAnswering(s, o.generator);
  for (const auto& [name, value] : net.named_parameters())
    if (name.ends_with(".bias")) set_value(value, zeros(value.shape()));
  return net;
}

Info bert_info(const BertPreset& p, const std::string& text) {
  const BertSizes s = preset_sizes(p, text);
  Recipe recipe{.epochs = 3,
                .batch = 16,
                .optimizer = "adamw",
                .lr = bert_rate(s, p.task),
                .momentum = 0,
                .weight_decay = 0.01,
                .schedule = "linear",
                .warmup = 0.3};
  recipe.clip_norm = 1;
  const std::int64_t classes = p.task == BertTask::Words   ? s.vocabulary
                               : p.task == BertTask::Spans ? s.context
                                                           : 2;
  Info info{text.empty() ? p.name : cat(p.name, ":", text),
            p.about,
            {s.context},
            classes,
            bert_parameters(s, p.task, classes),
            recipe};
  info.tokens = p.task != BertTask::Classes;
  info.masked = p.task == BertTask::Words;
  info.vocabulary = s.vocabulary;
  return info;
}

template <int preset>
Info sized_bert(const Info&, const std::string& text) {
  return bert_info(kBertPresets[preset], text);
}

// In these @words stand for what the name says.
constexpr char kBertLayer[] = R"toml(init = [ { parameters = "*.bias", values = 0 } ]

[blocks.layer]
layers = [
  { keep = "before" },
  { sequence = [
    { sequence = [
      { linear = "width", init = { normal = 0.02 }, name = "query" }, { keep = "queries" }, { take = "before" },
      { linear = "width", init = { normal = 0.02 }, name = "key" }, { keep = "keys" }, { take = "before" },
      { linear = "width", init = { normal = 0.02 }, name = "value" },
      { attention = "heads", queries = "queries", keys = "keys", seen = "seen", dropout = @attention },
    ], name = "self" },
    { sequence = [
      { linear = "width", init = { normal = 0.02 }, name = "dense" }, { dropout = @dropout }, { add = "before" },
      { layer_norm = "width", eps = @eps, name = "LayerNorm" },
    ], name = "output" },
  ], name = "attention" },
  { keep = "before" },
  { sequence = [ { linear = "hidden", init = { normal = 0.02 }, name = "dense" }, @activation ], name = "intermediate" },
  { sequence = [
    { linear = "width", init = { normal = 0.02 }, name = "dense" }, { dropout = @dropout }, { add = "before" },
    { layer_norm = "width", eps = @eps, name = "LayerNorm" },
  ], name = "output" },
]
)toml";
constexpr char kWordsHead[] = R"toml(  { sequence = [ { sequence = [
    { sequence = [
      { linear = "width", init = { normal = 0.02 }, name = "dense" }, @activation,
      { layer_norm = "width", eps = @eps, name = "LayerNorm" },
    ], name = "transform" },
    { linear = "classes", bias = false, tie = "bert.embeddings.word_embeddings.weight", name = "decoder" },
    { bias = true, name = "bias" },
  ], name = "predictions" } ], name = "cls" },
)toml";
constexpr char kSpansHead[] =
    R"toml(  { linear = 2, init = { normal = 0.02 }, name = "qa_outputs" }, { transpose = [1, 2] },
)toml";

std::string filled_in(const std::string& text, const BertSizes& s) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = std::min(text.find('@', at), text.size());
    out.append(text, at, mark - at);
    at = mark;
    const std::pair<std::string_view, std::string> values[] = {
        {"@attention", cat(s.attention_dropout)},
        {"@activation", activation_toml(s.activation)},
        {"@head", cat(s.head_dropout)},
        {"@dropout", cat(s.dropout)},
        {"@eps", cat(s.eps)}};
    for (const auto& [word, value] : values)
      if (text.compare(at, word.size(), word) == 0) {
        out += value;
        at += word.size();
        break;
      }
  }
  return out;
}

template <int preset>
std::string bert_toml(const std::string& text, const Options& o) {
  const BertPreset& p = kBertPresets[preset];
  const BertSizes s = preset_sizes(p, text);
  const bool of_classes = p.task == BertTask::Classes;
  std::string out = cat("variables = { layers = ", s.layers, ", heads = ", s.heads,
                        ", width = ", s.width, ", hidden = ", s.hidden, " }\n");
  out += R"toml(layers = [
  { sequence = [
    { bert_embeddings = "width"@embeddings, name = "embeddings" },
    { sequence = [ { sequence = [ { repeat = "layers", layers = [ { block = "layer" } ] } ], name = "layer" } ], name = "encoder" },
)toml";
  if (of_classes)
    out +=
        R"toml(    { sequence = [ "first", { linear = "width", init = { normal = 0.02 }, name = "dense" }, "tanh" ], name = "pooler" },
)toml";
  out += "  ], name = \"bert\" },\n";
  if (!of_classes)
    out += p.task == BertTask::Words ? kWordsHead : kSpansHead;
  else if (o.head.empty())
    out +=
        "  { dropout = @head }, { linear = \"classes\", init = { normal = 0.02 }, name = "
        "\"classifier\" },\n";
  else
    out += cat("  { dropout = @head },\n  { sequence = [\n", head_toml(o, "    "),
               "  ], name = \"classifier\" },\n");
  const bool usual = s.eps == kBertEps && s.dropout == kBertDropout;
  const std::string mark = "@embeddings";
  out.replace(out.find(mark), mark.size(), usual ? "" : ", eps = @eps, dropout = @dropout");
  return filled_in(out + "]\n" + kBertLayer, s);
}

template <int preset>
Entry bert_entry() {
  const BertPreset& p = kBertPresets[preset];
  return {
      bert_info(p, ""), build_bert<preset>, sized_bert<preset>, false, p.task == BertTask::Classes,
      bert_toml<preset>};
}

}  // namespace

std::vector<Entry> bert_entries() {
  return {bert_entry<0>(), bert_entry<1>(), bert_entry<2>(),
          bert_entry<3>(), bert_entry<4>(), bert_entry<5>()};
}

}  // namespace tenon::models
