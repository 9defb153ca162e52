// Layer types of network files for tokens and sequences: embeddings, positions, recurrent layers,
// attention and Transformer layers. Most of them can also compute one position after another, by
// what they keep in FilePass::state.
#include <type_traits>

#include <tenon/functional.h>
#include <tenon/recurrent.h>
#include <tenon/transformer.h>

#include "base/str.h"
#include "models/bert_embeddings.h"
#include "models/file_kinds.h"
#include "models/file_modules.h"
#include "models/file_parts.h"

namespace tenon::models {
namespace {

constexpr std::int64_t kLargestTable = 1 << 26;

nn::AttentionMask mask_of(const FilePass& pass, const std::string& padding, bool causal) {
  nn::AttentionMask mask{.causal = causal};
  if (!padding.empty()) mask.key_padding = pass.kept(padding);
  return mask;
}

// Computes one position of an attention layer; its keys and values are state[first] and
// state[first + 1].
template <class M>
Tensor one_position(const M& module, const Tensor& x, FilePass& pass, std::size_t first) {
  const nn::CachedResult made =
      module(x, nn::KeyValueCache{pass.state[first], pass.state[first + 1]}, pass.position);
  pass.state[first] = made.cache.keys;
  pass.state[first + 1] = made.cache.values;
  return made.output;
}

// Decodes position by position with a cache of the module's keys and values.
template <class M>
void decode_with_cache(FileLayer& layer, const M& module) {
  layer.by_position = ByPosition::Bounded;
  layer.start = [module](std::int64_t batch, std::int64_t positions) {
    const nn::KeyValueCache cache = module.empty_cache(batch, positions);
    return std::vector<Tensor>{cache.keys, cache.values};
  };
}

// Converts a recurrent state between [layers, N, units] and [N, layers, units].
Tensor by_layers(const Tensor& state) { return transpose(state, 0, 1); }

void require_tokens(const LayerKeys& keys, const LayerContext& at) {
  if (is_floating(at.x.dtype()))
    keys.refuse(cat(keys.kind(), " takes token numbers [N, positions], not ", shape_text(at.x),
                    ": it must be the first layer of a network with tokens = true"));
}

FileLayer embedding_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t width = keys.own_whole("features", "{ embedding = 128 }");
  require_tokens(keys, at);
  if (const std::string tied = keys.text("tie"); !tied.empty()) {
    const FileTiedEmbedding module(at.parameter(tied));
    if (module.weight().rank() != 2 || module.weight().size(1) != width)
      keys.refuse(cat("embedding of ", width, " features: '", tied, "' is ",
                      module.weight().shape(), ", must be [tokens, ", width, "]"));
    return layer_of(module, ByPosition::Each);
  }
  const std::int64_t rows = keys.whole("rows", at.vocabulary == 0 ? at.classes : at.vocabulary, 1);
  const nn::Embedding module(rows, width, {.sparse = keys.boolean("sparse", false)},
                             {.generator = at.generator});
  replace_initial_value(keys, module, "weight", keys.draw("init"), at.generator);
  return layer_of(module, ByPosition::Each);
}

FileLayer bert_embeddings_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t width = keys.own_whole("features", "{ bert_embeddings = 128 }");
  require_tokens(keys, at);
  const std::int64_t positions = keys.whole("positions", at.x.size(1), at.x.size(1)),
                     rows = keys.whole("rows", at.vocabulary == 0 ? at.classes : at.vocabulary, 1);
  const double eps = keys.number("eps", 1e-12, 0, 1), dropout = keys.number("dropout", 0.1, 0, 1);
  const BertEmbeddings module({rows, positions, width, eps, dropout}, at.generator);
  return {module, [module, positions](const Tensor& x, FilePass& pass) {
            const BertInput input = bert_input(x, positions);
            pass.keep(kSeen, input.seen);
            return module(input.tokens, input.types);
          }};
}

FileLayer positions_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t positions = keys.own_whole("positions", "{ positions = 128 }");
  require_rank(keys, at, 3, kSequences);
  const FilePositions module(positions, at.x.size(2), at.generator);
  replace_initial_value(keys, module, "weight", keys.draw("init"), at.generator);
  return {module,
          [module](const Tensor& x, FilePass& pass) {
            return pass.is_one_position() ? module.at(x, pass.position) : module(x);
          },
          ByPosition::Bounded};
}

FileLayer sinusoid_positions_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  require_rank(keys, at, 3, kSequences);
  if (at.x.size(1) > kLargestTable / at.x.size(2))
    keys.refuse(cat("sinusoid_positions: a table for ", shape_text(at.x), " has more than ",
                    kLargestTable, " values"));
  const nn::AnyModule module = FileFunction("SinusoidPositions()", [](const Tensor& x) {
    return x + nn::sinusoid_positions(x.size(1), x.size(2));
  });
  return {module,
          [module](const Tensor& x, FilePass& pass) {
            if (!pass.is_one_position()) return module(x);
            const Tensor table = nn::sinusoid_positions(pass.positions, x.size(2));
            return x + index_select(table, 0, reshape(pass.position, {1}));
          },
          ByPosition::Bounded};
}

nn::RecurrentOptions recurrent_options(LayerKeys& keys, const LayerContext& at) {
  nn::RecurrentOptions options;
  options.num_layers = keys.whole("layers", 1, 1, 1000);
  options.bias = keys.boolean("bias", true);
  options.recurrent_bias = keys.boolean("recurrent_bias", true);
  options.batch_first = true;
  options.dropout = keys.number("dropout", 0, 0, 1);
  options.bidirectional = keys.boolean("bidirectional", false);
  if (keys.kind() == "lstm") options.proj_size = keys.whole("proj_size", 0, 0);
  if (keys.kind() == "rnn") options.nonlinearity = keys.word("nonlinearity", {"tanh", "relu"});
  options.generator = at.generator;
  return options;
}

// The state has one tensor [N, layers, units] for the hidden state, and a second one for the cell
// state of an LSTM.
template <class Layer>
FileLayer recurrent_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t units = keys.own_whole("units", "{ lstm = 128 }");
  require_rank(keys, at, 3, kSequences);
  const nn::RecurrentOptions options = recurrent_options(keys, at);
  const Layer module(at.x.size(2), units, options);
  const std::size_t first = at.state;
  FileLayer out{
      module, [module, first](const Tensor& x, FilePass& pass) {
        if (!pass.is_one_position()) return module(x).output;
        if constexpr (std::is_same_v<Layer, nn::LSTM>) {
          const nn::LstmResult y = module(
              x, nn::LstmState{by_layers(pass.state[first]), by_layers(pass.state[first + 1])});
          pass.state[first] = by_layers(y.state.hidden);
          pass.state[first + 1] = by_layers(y.state.cell);
          return y.output;
        } else {
          const nn::RecurrentResult y = module(x, by_layers(pass.state[first]));
          pass.state[first] = by_layers(y.hidden);
          return y.output;
        }
      }};
  if (options.bidirectional) return out;
  out.by_position = ByPosition::State;
  out.start = [units, options](std::int64_t batch, std::int64_t) {
    const std::int64_t hidden = options.proj_size == 0 ? units : options.proj_size;
    std::vector<Tensor> state{zeros({batch, options.num_layers, hidden})};
    if (std::is_same_v<Layer, nn::LSTM>) state.push_back(zeros({batch, options.num_layers, units}));
    return state;
  };
  return out;
}

FileLayer self_attention_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ self_attention = 8 }");
  require_rank(keys, at, 3, kSequences);
  nn::MultiheadAttentionOptions options;
  options.dropout = keys.number("dropout", 0, 0, 1);
  options.bias = keys.boolean("bias", true);
  options.batch_first = true;
  options.kv_heads = keys.whole("kv_heads", 0);
  options.generator = at.generator;
  const bool causal = keys.boolean("causal", false);
  const std::string padding = kept_name(keys, "padding", at);
  const nn::MultiheadAttention module(at.x.size(2), heads, options);
  const std::size_t first = at.state;
  FileLayer out{module, [=](const Tensor& x, FilePass& pass) {
                  if (!pass.is_one_position())
                    return module(x, x, x, mask_of(pass, padding, causal));
                  return one_position(module, x, pass, first);
                }};
  if (causal && padding.empty()) decode_with_cache(out, module);
  return out;
}

// [N, T, C] to [N, heads, T, C / heads].
Tensor of_heads(const Tensor& x, std::int64_t heads) {
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}
// [N, heads, T, C / heads] to [N, T, C].
Tensor side_by_side(const Tensor& y) {
  return reshape(transpose(y, 1, 2), {y.size(0), y.size(2), y.size(1) * y.size(3)});
}

// Attention on concatenated queries, keys and values, the output of one projection.
FileLayer packed_attention_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ packed_attention = 8 }");
  require_rank(keys, at, 3, "sequences [N, positions, 3 * features]");
  const bool causal = keys.boolean("causal", false);
  const double dropout = keys.number("dropout", 0, 0, 1);
  if (at.x.size(2) % (3 * heads) != 0)
    keys.refuse(cat("packed_attention: ", at.x.size(2), " features do not divide into queries, ",
                    "keys and values of ", heads, " heads"));
  const nn::AnyModule module = FilePackedAttention(heads, causal, dropout, at.generator);
  const std::size_t first = at.state;
  FileLayer out{module, [=](const Tensor& x, FilePass& pass) {
                  if (!pass.is_one_position()) return module(x);
                  const std::vector<Tensor> qkv = chunk(x, 3, 2);
                  Tensor &cached = pass.state[first], &values = pass.state[first + 1];
                  const Tensor positions = arange(0, cached.size(2)),
                               here = unsqueeze(eq(positions, pass.position), 1);
                  cached = where(here, of_heads(qkv[1], heads), cached);
                  values = where(here, of_heads(qkv[2], heads), values);
                  return side_by_side(scaled_dot_product_attention(
                      of_heads(qkv[0], heads), cached, values, le(positions, pass.position)));
                }};
  if (!causal) return out;
  out.by_position = ByPosition::Bounded;
  const std::int64_t size = at.x.size(2) / (3 * heads);
  out.start = [heads, size](std::int64_t batch, std::int64_t positions) {
    return std::vector<Tensor>(2, zeros({batch, heads, positions, size}));
  };
  return out;
}

// Attention with kept queries and keys; the values are the input.
FileLayer attention_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ attention = 8, queries = \"q\" }");
  require_rank(keys, at, 3, kSequences);
  const std::string queries = kept_name(keys, "queries", at), of_keys = kept_name(keys, "keys", at),
                    seen = kept_name(keys, "seen", at);
  if (queries.empty() || of_keys.empty())
    keys.refuse_missing(
        queries.empty() ? "queries" : "keys",
        "attention needs queries and keys, the names of kept values, as in { attention = "
        "8, queries = \"q\", keys = \"k\" }");
  for (const std::string& name : {queries, of_keys})
    if (const Tensor& part = at.pass->kept(name);
        part.rank() != 3 || part.size(2) != at.x.size(2) || part.size(2) % heads != 0)
      keys.refuse(
          cat("attention of ", heads, " heads: '", name, "' is ", shape_text(part),
              " and values are ", shape_text(at.x),
              ": both must have the same number of features, a multiple of the number of heads"));
  const FileAttention module(heads, keys.boolean("causal", false), keys.number("dropout", 0, 0, 1),
                             at.generator);
  return {module, [=](const Tensor& x, FilePass& pass) {
            return module(pass.kept(queries), pass.kept(of_keys), x,
                          seen.empty() ? Tensor() : pass.kept(seen));
          }};
}

nn::TransformerOptions transformer_options(LayerKeys& keys, const LayerContext& at) {
  nn::TransformerOptions options;
  options.dim_feedforward = keys.whole("hidden", 4 * at.x.size(2), 1);
  options.dropout = keys.number("dropout", 0.1, 0, 1);
  if (const std::string name = keys.text("activation"); !name.empty()) options.activation = name;
  options.layer_norm_eps = keys.number("eps", options.layer_norm_eps, 0, 1e9);
  options.norm_first = keys.boolean("norm_first", false);
  options.bias = keys.boolean("bias", true);
  options.batch_first = true;
  options.generator = at.generator;
  return options;
}

FileLayer transformer_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ transformer_encoder_layer = 8 }");
  require_rank(keys, at, 3, kSequences);
  const nn::TransformerOptions options = transformer_options(keys, at);
  const bool causal = keys.boolean("causal", false);
  const std::string padding = kept_name(keys, "padding", at);
  const nn::TransformerEncoderLayer module(at.x.size(2), heads, options);
  const std::size_t first = at.state;
  FileLayer out{module, [=](const Tensor& x, FilePass& pass) {
                  if (!pass.is_one_position()) return module(x, mask_of(pass, padding, causal));
                  return one_position(module, x, pass, first);
                }};
  if (causal && padding.empty()) decode_with_cache(out, module);
  return out;
}

FileLayer transformer_decoder_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t heads = keys.own_whole("heads", "{ transformer_decoder_layer = 8 }");
  require_rank(keys, at, 3, kSequences);
  const nn::TransformerOptions options = transformer_options(keys, at);
  const std::string padding = kept_name(keys, "padding", at);
  const Tensor* memory = at.pass->find(kMemory);
  if (memory == nullptr)
    keys.refuse(
        "transformer_decoder_layer reads the output of an encoder, and the network has "
        "none: write pairs = true and encoder = [ ... ]");
  if (memory->rank() != 3 || memory->size(2) != at.x.size(2))
    keys.refuse(cat("transformer_decoder_layer: the encoder gives ", shape_text(*memory),
                    ", and the input is ", shape_text(at.x),
                    ": both must have the same number of features"));
  const nn::TransformerDecoderLayer module(at.x.size(2), heads, options);
  const std::size_t first = at.state, looked_up = at.memory;
  FileLayer out{module, [=](const Tensor& x, FilePass& pass) {
                  const nn::AttentionMask hidden = mask_of(pass, padding, false);
                  if (!pass.is_one_position())
                    return module(x, pass.kept(kMemory), nn::AttentionMask{.causal = true}, hidden);
                  const nn::DecoderCache cache{
                      {pass.state[first], pass.state[first + 1]},
                      {pass.memory[looked_up], pass.memory[looked_up + 1]}};
                  const nn::DecodedPosition made = module(x, cache, pass.position, hidden);
                  pass.state[first] = made.cache.self.keys;
                  pass.state[first + 1] = made.cache.self.values;
                  return made.output;
                }};
  out.by_position = ByPosition::Bounded;
  const std::int64_t size = at.x.size(2) / heads;
  out.start = [heads, size](std::int64_t batch, std::int64_t positions) {
    return std::vector<Tensor>(2, zeros({batch, heads, positions, size}));
  };
  out.look_up = [module](const FilePass& pass) {
    const nn::KeyValueCache cache = module.start(pass.kept(kMemory), 1).memory;
    return std::vector<Tensor>{cache.keys, cache.values};
  };
  return out;
}

constexpr FileKind kSequenceKinds[] = {
    {"embedding", embedding_layer, true},
    {"positions", positions_layer},
    {"sinusoid_positions", sinusoid_positions_layer},
    {"rnn", recurrent_layer<nn::RNN>},
    {"gru", recurrent_layer<nn::GRU>},
    {"lstm", recurrent_layer<nn::LSTM>},
    {"bert_embeddings", bert_embeddings_layer, true},
    {"attention", attention_layer},
    {"self_attention", self_attention_layer},
    {"packed_attention", packed_attention_layer},
    {"transformer_encoder_layer", transformer_layer},
    {"transformer_decoder_layer", transformer_decoder_layer},
};

}  // namespace

std::span<const FileKind> sequence_kinds() { return kSequenceKinds; }

}  // namespace tenon::models
