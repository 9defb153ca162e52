// Transformer layers and stacks (Vaswani et al., 2017), with PyTorch's order of parts. A layer's
// run() applies the parts. forward() of whole sequences and forward() of one position with a cache
// pass it the attention to use.
#include <tenon/error.h>
#include <tenon/transformer.h>

#include "base/make_error.h"
#include "base/str.h"

namespace tenon::nn {
namespace {

MultiheadAttentionOptions attention_options(const TransformerOptions& o) {
  return {
      .dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first, .generator = o.generator};
}

Linear feed(std::int64_t in, std::int64_t out, const TransformerOptions& o) {
  return Linear(in, out, {.bias = o.bias, .generator = o.generator});
}

LayerNorm norm_of(std::int64_t width, const TransformerOptions& o) {
  return LayerNorm({width}, {.eps = o.layer_norm_eps, .bias = o.bias});
}

std::string describe_layer(const char* kind, const TransformerOptions& o) {
  std::string text = cat(kind, "(dim_feedforward=", o.dim_feedforward, ", dropout=", o.dropout,
                         ", activation=", o.activation);
  if (o.norm_first) text += ", norm_first=true";
  if (o.batch_first) text += ", batch_first=true";
  return text + ")";
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t width, std::int64_t heads,
                                                 const TransformerOptions& o)
    : options_(o),
      self_attn_(child("self_attn", MultiheadAttention(width, heads, attention_options(o)))),
      linear1_(child("linear1", feed(width, o.dim_feedforward, o))),
      linear2_(child("linear2", feed(o.dim_feedforward, width, o))),
      norm1_(child("norm1", norm_of(width, o))),
      norm2_(child("norm2", norm_of(width, o))),
      activation_(activation(o.activation)) {}

Tensor TransformerEncoderLayer::feed_forward(const Tensor& x) const {
  const auto drop = [&](const Tensor& t) {
    return dropout(t, options_.dropout, is_training(), options_.generator);
  };
  return drop(linear2_(drop(activation_.forward(linear1_(x)))));
}

template <class Self>
Tensor TransformerEncoderLayer::run(const Tensor& src, Self&& self) const {
  const auto attend = [&](const Tensor& x) {
    return dropout(self(x), options_.dropout, is_training(), options_.generator);
  };
  if (options_.norm_first) {
    const Tensor x = src + attend(norm1_(src));
    return x + feed_forward(norm2_(x));
  }
  const Tensor x = norm1_(src + attend(src));
  return norm2_(x + feed_forward(x));
}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const AttentionMask& mask) const {
  return run(src, [&](const Tensor& x) { return self_attn_(x, x, x, mask); });
}

CachedResult TransformerEncoderLayer::forward(const Tensor& x, const KeyValueCache& cache,
                                              const Tensor& position) const {
  CachedResult out;
  out.output = run(x, [&](const Tensor& at) {
    const CachedResult made = self_attn_(at, cache, position);
    out.cache = made.cache;
    return made.output;
  });
  return out;
}

std::string TransformerEncoderLayer::describe() const {
  return describe_layer("TransformerEncoderLayer", options_);
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t width, std::int64_t heads,
                                                 const TransformerOptions& o)
    : options_(o),
      self_attn_(child("self_attn", MultiheadAttention(width, heads, attention_options(o)))),
      multihead_attn_(
          child("multihead_attn", MultiheadAttention(width, heads, attention_options(o)))),
      linear1_(child("linear1", feed(width, o.dim_feedforward, o))),
      linear2_(child("linear2", feed(o.dim_feedforward, width, o))),
      norm1_(child("norm1", norm_of(width, o))),
      norm2_(child("norm2", norm_of(width, o))),
      norm3_(child("norm3", norm_of(width, o))),
      activation_(activation(o.activation)) {}

Tensor TransformerDecoderLayer::feed_forward(const Tensor& x) const {
  const auto drop = [&](const Tensor& t) {
    return dropout(t, options_.dropout, is_training(), options_.generator);
  };
  return drop(linear2_(drop(activation_.forward(linear1_(x)))));
}

// Applies the parts of a layer in order. `self` and `cross` compute the two kinds of attention.
template <class Self, class Cross>
Tensor TransformerDecoderLayer::run(const Tensor& tgt, Self&& self, Cross&& cross) const {
  const auto drop = [&](const Tensor& t) {
    return dropout(t, options_.dropout, is_training(), options_.generator);
  };
  if (options_.norm_first) {
    const Tensor x = tgt + drop(self(norm1_(tgt)));
    const Tensor y = x + drop(cross(norm2_(x)));
    return y + feed_forward(norm3_(y));
  }
  const Tensor x = norm1_(tgt + drop(self(tgt)));
  const Tensor y = norm2_(x + drop(cross(x)));
  return norm3_(y + feed_forward(y));
}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const AttentionMask& tgt_mask,
                                        const AttentionMask& memory_mask) const {
  return run(
      tgt, [&](const Tensor& x) { return self_attn_(x, x, x, tgt_mask); },
      [&](const Tensor& x) { return multihead_attn_(x, memory, memory, memory_mask); });
}

DecodedPosition TransformerDecoderLayer::forward(const Tensor& x, const DecoderCache& cache,
                                                 const Tensor& position,
                                                 const AttentionMask& memory_mask) const {
  DecodedPosition out{{}, cache};
  out.output = run(
      x,
      [&](const Tensor& at) {
        CachedResult made = self_attn_(at, cache.self, position);
        out.cache.self = made.cache;
        return made.output;
      },
      [&](const Tensor& at) { return multihead_attn_(at, cache.memory, memory_mask); });
  return out;
}

DecoderCache TransformerDecoderLayer::start(const Tensor& memory, std::int64_t positions) const {
  return {self_attn_.empty_cache(memory.size(options_.batch_first ? 0 : 1), positions),
          multihead_attn_.keys_of(memory, memory)};
}

std::string TransformerDecoderLayer::describe() const {
  return describe_layer("TransformerDecoderLayer", options_);
}

TransformerEncoder::TransformerEncoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                                       const TransformerOptions& options, bool norm) {
  for (std::int64_t k = 0; k < layers; ++k)
    layers_.append(TransformerEncoderLayer(width, heads, options));
  child("layers", layers_);
  if (norm) norm_ = child("norm", norm_of(width, options));
}

Tensor TransformerEncoder::forward(const Tensor& src, const AttentionMask& mask) const {
  Tensor x = src;
  for (std::int64_t k = 0; k < layers_.size(); ++k)
    x = (*layers_[k].as<TransformerEncoderLayer>())(x, mask);
  return norm_ ? (*norm_)(x) : x;
}

TransformerDecoder::TransformerDecoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                                       const TransformerOptions& options, bool norm) {
  for (std::int64_t k = 0; k < layers; ++k)
    layers_.append(TransformerDecoderLayer(width, heads, options));
  child("layers", layers_);
  if (norm) norm_ = child("norm", norm_of(width, options));
}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory,
                                   const AttentionMask& tgt_mask,
                                   const AttentionMask& memory_mask) const {
  Tensor x = tgt;
  for (std::int64_t k = 0; k < layers_.size(); ++k)
    x = (*layers_[k].as<TransformerDecoderLayer>())(x, memory, tgt_mask, memory_mask);
  return ended(x);
}

TransformerDecoder::Decoded TransformerDecoder::forward(const Tensor& x,
                                                        const std::vector<DecoderCache>& caches,
                                                        const Tensor& position,
                                                        const AttentionMask& memory_mask) const {
  if (static_cast<std::int64_t>(caches.size()) != layers_.size())
    throw make_error<ValueError>("TransformerDecoder: ", caches.size(), " caches were given for ",
                                 layers_.size(), " layers: get the caches from start()");
  Decoded out{x, {}};
  for (std::int64_t k = 0; k < layers_.size(); ++k) {
    DecodedPosition made = (*layers_[k].as<TransformerDecoderLayer>())(
        out.output, caches[static_cast<std::size_t>(k)], position, memory_mask);
    out.output = made.output;
    out.caches.push_back(made.cache);
  }
  out.output = ended(out.output);
  return out;
}

std::vector<DecoderCache> TransformerDecoder::start(const Tensor& memory,
                                                    std::int64_t positions) const {
  std::vector<DecoderCache> out;
  for (std::int64_t k = 0; k < layers_.size(); ++k)
    out.push_back(layers_[k].as<TransformerDecoderLayer>()->start(memory, positions));
  return out;
}

Transformer::Transformer(std::int64_t width, std::int64_t heads, std::int64_t encoder_layers,
                         std::int64_t decoder_layers, const TransformerOptions& options)
    : encoder_(child("encoder", TransformerEncoder(encoder_layers, width, heads, options, true))),
      decoder_(child("decoder", TransformerDecoder(decoder_layers, width, heads, options, true))) {
  for (const NamedTensor& p : named_parameters())
    if (p.tensor.rank() > 1)
      set_value(p.tensor, init::xavier_uniform(p.tensor.shape(), 1, options.generator));
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const AttentionMask& src_mask,
                            const AttentionMask& tgt_mask, const AttentionMask& memory_mask) const {
  return decoder_(tgt, encoder_(src, src_mask), tgt_mask, memory_mask);
}

}  // namespace tenon::nn
