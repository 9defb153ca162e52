// Attention and Transformers as layers: multi-head attention with masks, grouped queries and a
// cache of keys and values, encoder and decoder layers and stacks, positions, RMS norm. Names and
// shapes of parameters are PyTorch's, and so is what a mask means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <tenon/generator.h>
#include <tenon/module.h>
#include <tenon/nn.h>

namespace tenon::nn {

/// Which keys a query sees. Undefined masks hide nothing. For a query that sees no key, attention
/// gives zeros (before out_proj) and zero gradients, as scaled_dot_product_attention() does. A call
/// that also returns weights (HeadWeights) gives NaN for it: weights and output, as in PyTorch.
struct AttentionMask {
  Tensor mask{};  ///< [L, S] or [N · heads, L, S]: bool (true is hidden), or added to scores
  Tensor key_padding{};  ///< [N, S]: bool (true is hidden), or added to the scores
  bool causal = false;   ///< the query at place i sees keys up to place i
};

/// Keys and values that were made already, by heads: [N, kv_heads, S, size of a head] each.
struct KeyValueCache {
  Tensor keys, values;
};
/// What one place gives, and the cache behind it.
struct CachedResult {
  Tensor output;
  KeyValueCache cache;
};

struct MultiheadAttentionOptions {
  double dropout = 0;  ///< of the weights, while training
  bool bias = true;
  bool batch_first = false;    ///< [N, L, E] instead of [L, N, E]
  std::int64_t kdim = 0;       ///< width of the keys; 0: the embedding's
  std::int64_t vdim = 0;       ///< width of the values; 0: the embedding's
  std::int64_t kv_heads = 0;   ///< of keys and values, each for a group of queries; 0: all heads
  bool add_bias_kv = false;    ///< one key and value more, bias_k and bias_v, that all queries see
  bool add_zero_attn = false;  ///< one key and value of zeros more, behind all others
  Generator* generator = nullptr;  ///< of the initial values and of dropout
};
/// Whether the weights that a call returns are the mean over heads, or of each.
enum class HeadWeights { Mean, Each };
/// Output, and the weights of all keys: [N, L, S], of each head [N, heads, L, S]; behind dropout,
/// as in PyTorch. S counts the keys that add_bias_kv and add_zero_attn add.
struct WeightedResult {
  Tensor output, weights;
};

/// Attention of `heads` heads side by side (Vaswani et al., 2017): query [L, N, E], key [S, N,
/// kdim], value [S, N, vdim] to [L, N, E]; all without N, too. Parameters in_proj_weight [E + 2 ·
/// kv_heads · E / heads, E] (or q_proj_weight, k_proj_weight and v_proj_weight where widths
/// differ), in_proj_bias, out_proj. Throws ShapeError, or ValueError for sizes that do not divide.
class TENON_API MultiheadAttention : public ModuleOf<MultiheadAttention> {
 public:
  MultiheadAttention(std::int64_t width, std::int64_t heads,
                     const MultiheadAttentionOptions& options = {});
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionMask& mask = {}) const;
  /// The same with the weights, which are in memory then (PyTorch's need_weights = True):
  /// `auto [y, weights] = mha(q, k, v, mask, nn::HeadWeights::Mean)`.
  WeightedResult forward(const Tensor& query, const Tensor& key, const Tensor& value,
                         const AttentionMask& mask, HeadWeights heads) const;
  /// One place more of a sequence: x [1, N, E] ([N, 1, E] with batch_first), which stands at
  /// `place` (int64 or int32, one number, from 0) and sees all places before it. Its key and value
  /// are written there. Throws ShapeError or DTypeError for a cache unlike empty_cache()'s, and
  /// ValueError for a place outside of it whose number is in the host's memory. One that is still
  /// to be computed, on a GPU or an input of a compiled function is not looked at: outside of the
  /// cache nothing is written, and below 0 the output is NaN.
  CachedResult forward(const Tensor& x, const KeyValueCache& cache, const Tensor& place) const;
  /// Queries against keys and values that keys_of() made.
  Tensor forward(const Tensor& query, const KeyValueCache& cache,
                 const AttentionMask& mask = {}) const;
  /// Room for so many places, empty.
  KeyValueCache empty_cache(std::int64_t batch, std::int64_t places) const;
  /// Keys and values of a sequence that does not change.
  KeyValueCache keys_of(const Tensor& key, const Tensor& value) const;
  std::string describe() const override;

 private:
  std::int64_t size_of_head() const { return width_ / heads_; }
  std::vector<Tensor> project(int first, int end, const Tensor& x) const;
  Tensor by_heads(const Tensor& x, std::int64_t heads) const;
  /// Queries by heads, and keys and values.
  std::pair<Tensor, KeyValueCache> parts_of(const Tensor& query, const Tensor& key,
                                            const Tensor& value) const;
  struct Seen {  // keys and values with what the options add, and what hides them
    KeyValueCache cache;
    Tensor mask;
    bool causal;
  };
  Seen seen_by(const Tensor& queries, const KeyValueCache& cache, const AttentionMask& mask) const;
  Tensor attend(const Tensor& queries, const KeyValueCache& cache, const AttentionMask& mask) const;
  WeightedResult weigh(const Tensor& queries, const KeyValueCache& cache, const AttentionMask& mask,
                       HeadWeights heads) const;
  Tensor joined(const Tensor& y) const;
  void check_cache(const KeyValueCache& cache, std::int64_t batch) const;
  Tensor attention_mask(const AttentionMask& mask, const Shape& scores, DType dtype) const;
  std::int64_t width_, heads_, kv_heads_;
  MultiheadAttentionOptions options_;
  Tensor in_proj_weight_, q_proj_weight_, k_proj_weight_, v_proj_weight_, in_proj_bias_, bias_k_,
      bias_v_;
  std::optional<Linear> out_proj_;
};

struct TransformerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  ///< or any of nn::activation()
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  ///< layer norm before each part instead of behind its sum
  bool bias = true;
  Generator* generator = nullptr;
};

/// Self-attention and a feed-forward part: src [S, N, E] to the same shape.
class TENON_API TransformerEncoderLayer : public ModuleOf<TransformerEncoderLayer> {
 public:
  TransformerEncoderLayer(std::int64_t width, std::int64_t heads,
                          const TransformerOptions& options = {});
  Tensor forward(const Tensor& src, const AttentionMask& mask = {}) const;
  /// One place, as MultiheadAttention takes it, which sees all before it.
  CachedResult forward(const Tensor& x, const KeyValueCache& cache, const Tensor& place) const;
  KeyValueCache empty_cache(std::int64_t batch, std::int64_t places) const {
    return self_attn_.empty_cache(batch, places);
  }
  std::string describe() const override;

 private:
  template <class Self>
  Tensor run(const Tensor& src, Self&& self) const;
  Tensor feed_forward(const Tensor& x) const;
  TransformerOptions options_;
  MultiheadAttention self_attn_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_;
  AnyModule activation_;
};

/// Caches of one decoder layer: its own places, and the memory's.
struct DecoderCache {
  KeyValueCache self, memory;
};
struct DecodedPlace {
  Tensor output;
  DecoderCache cache;
};

/// Self-attention, attention to a memory [S, N, E], and a feed-forward part: tgt [T, N, E] to the
/// same shape.
class TENON_API TransformerDecoderLayer : public ModuleOf<TransformerDecoderLayer> {
 public:
  TransformerDecoderLayer(std::int64_t width, std::int64_t heads,
                          const TransformerOptions& options = {});
  Tensor forward(const Tensor& tgt, const Tensor& memory, const AttentionMask& tgt_mask = {},
                 const AttentionMask& memory_mask = {}) const;
  /// One place, as MultiheadAttention takes it.
  DecodedPlace forward(const Tensor& x, const DecoderCache& cache, const Tensor& place,
                       const AttentionMask& memory_mask = {}) const;
  DecoderCache start(const Tensor& memory, std::int64_t places) const;
  std::string describe() const override;

 private:
  template <class Self, class Cross>
  Tensor run(const Tensor& x, Self&& self, Cross&& cross) const;
  Tensor feed_forward(const Tensor& x) const;
  TransformerOptions options_;
  MultiheadAttention self_attn_, multihead_attn_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_, norm3_;
  AnyModule activation_;
};

/// Layers one after another, "layers.0", …, and with `norm` a layer norm behind them.
class TENON_API TransformerEncoder : public ModuleOf<TransformerEncoder> {
 public:
  TransformerEncoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                     const TransformerOptions& options = {}, bool norm = false);
  Tensor forward(const Tensor& src, const AttentionMask& mask = {}) const;

 private:
  ModuleList layers_;
  std::optional<LayerNorm> norm_;
};
class TENON_API TransformerDecoder : public ModuleOf<TransformerDecoder> {
 public:
  TransformerDecoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                     const TransformerOptions& options = {}, bool norm = false);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const AttentionMask& tgt_mask = {},
                 const AttentionMask& memory_mask = {}) const;
  struct Decoded {
    Tensor output;
    std::vector<DecoderCache> caches;  // of each layer
  };
  /// One place, with the caches that start() made or the place before left.
  Decoded forward(const Tensor& x, const std::vector<DecoderCache>& caches, const Tensor& place,
                  const AttentionMask& memory_mask = {}) const;
  std::vector<DecoderCache> start(const Tensor& memory, std::int64_t places) const;

 private:
  Tensor ended(const Tensor& x) const { return norm_ ? (*norm_)(x) : x; }
  ModuleList layers_;
  std::optional<LayerNorm> norm_;
};

/// Encoder and decoder of `layers` layers each, with a norm behind both: src [S, N, E] and tgt [T,
/// N, E] to [T, N, E]. Matrices begin xavier-uniform.
class TENON_API Transformer : public ModuleOf<Transformer> {
 public:
  Transformer(std::int64_t width = 512, std::int64_t heads = 8, std::int64_t encoder_layers = 6,
              std::int64_t decoder_layers = 6, const TransformerOptions& options = {});
  Tensor forward(const Tensor& src, const Tensor& tgt, const AttentionMask& src_mask = {},
                 const AttentionMask& tgt_mask = {}, const AttentionMask& memory_mask = {}) const;
  const TransformerEncoder& encoder() const { return encoder_; }
  const TransformerDecoder& decoder() const { return decoder_; }

 private:
  TransformerEncoder encoder_;
  TransformerDecoder decoder_;
};

/// x / sqrt(mean(x²) + eps) · weight over the last axes, which are `shape` (Zhang and Sennrich,
/// 2019).
struct RMSNormOptions {
  std::optional<double> eps{};  ///< none: the epsilon of x's type
  bool elementwise_affine = true;
};
class TENON_API RMSNorm : public Module {
 public:
  explicit RMSNorm(const Shape& shape, const RMSNormOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Shape shape_;
  std::optional<double> eps_;
  Tensor weight_;
};

/// [length, width]: sine in even columns and cosine in odd ones, of wavelengths from 2π to 20000π
/// (Vaswani et al., 2017). Throws ValueError for sizes below 1.
TENON_API Tensor sinusoid_positions(std::int64_t length, std::int64_t width,
                                    DType dtype = DType::Float32);

struct RotaryOptions {
  double base = 10000;
  bool interleaved = false;  ///< pairs are neighbours, as in the paper; else halves, as in LLaMA
};
/// Rotary positions (Su et al., 2021): each pair of x [.., L, size] transposed by an angle in
/// proportion to its place (int64 [L]; 0, 1, … where none are given). Throws ShapeError for an odd
/// size.
TENON_API Tensor rotary(const Tensor& x, const Tensor& places = {},
                        const RotaryOptions& options = {});

}  // namespace tenon::nn
