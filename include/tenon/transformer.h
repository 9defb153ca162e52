// Attention and Transformer layers: multi-head attention with masks, grouped queries and a
// key-value cache, encoder and decoder layers and stacks, positional encodings, RMS normalisation.
// Names and shapes of parameters and the meaning of masks are PyTorch's.
//
// Shapes: N is the batch size, L, S and T are sequence lengths, E is the embedding size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/generator.h>
#include <tenon/module.h>
#include <tenon/nn.h>

namespace tenon::nn {

/// Which keys a query attends to. An undefined mask hides no key. If all keys of a query are
/// hidden, attention gives zeros (before out_proj) and zero gradients, as
/// scaled_dot_product_attention() does. A call that also returns weights (HeadWeights) gives NaN
/// weights and output for this query, as in PyTorch.
struct AttentionMask {
  /// Hidden keys of each query, [L, S] or [N · heads, L, S]: bool (true: hidden), or floating point
  /// added to the scores.
  Tensor mask{};
  /// Hidden keys of each sample, [N, S]: bool (true: hidden), or floating point added to the
  /// scores.
  Tensor key_padding{};
  /// Query i attends to keys 0 to i only.
  bool causal = false;
};

/// Projected keys and values by heads.
struct KeyValueCache {
  Tensor keys;    ///< [N, kv_heads, S, size of a head].
  Tensor values;  ///< [N, kv_heads, S, size of a head].
};
/// Output of one decoding step.
struct CachedResult {
  Tensor output;        ///< The output at this position.
  KeyValueCache cache;  ///< The cache with this position's key and value.
};

/// Options of MultiheadAttention.
struct MultiheadAttentionOptions {
  double dropout = 0;          ///< Dropout of the attention weights in training.
  bool bias = true;            ///< Add biases to the projections.
  bool batch_first = false;    ///< Tensors are [N, L, E] instead of [L, N, E].
  std::int64_t kdim = 0;       ///< Size of the key features; 0: E.
  std::int64_t vdim = 0;       ///< Size of the value features; 0: E.
  std::int64_t kv_heads = 0;   ///< Heads of keys and values (grouped queries); 0: all heads.
  bool add_bias_kv = false;    ///< Append a learned key and value, bias_k and bias_v, to all keys.
  bool add_zero_attn = false;  ///< Append a key and value of zeros after all others.
  OptionalGenerator generator{};  ///< For the initial values and for dropout.
};
/// Which attention weights a call returns.
enum class HeadWeights {
  Mean,  ///< The mean over the heads.
  Each   ///< The weights of each head.
};
/// Output and attention weights.
struct WeightedResult {
  Tensor output;  ///< [L, N, E].
  /// [N, L, S], or [N, heads, L, S] for HeadWeights::Each; after dropout, as in PyTorch. S includes
  /// the keys that add_bias_kv and add_zero_attn append.
  Tensor weights;
};

/// Multi-head attention (Vaswani et al., 2017): query [L, N, E], key [S, N, kdim], value [S, N,
/// vdim] to [L, N, E]; N may be absent from all of them. Parameters: in_proj_weight [E + 2 ·
/// kv_heads · E / heads, E] (or q_proj_weight, k_proj_weight and v_proj_weight if the sizes of the
/// features differ), in_proj_bias, out_proj. Throws ShapeError, or ValueError if a number of heads
/// does not divide what it must.
class TENON_API MultiheadAttention : public ModuleOf<MultiheadAttention> {
 public:
  /// Attention of embedding size `width` with `heads` heads.
  MultiheadAttention(std::int64_t width, std::int64_t heads,
                     const MultiheadAttentionOptions& options = {});
  /// The output for each query.
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionMask& mask = {}) const;
  /// Output and attention weights, which are then stored in memory (PyTorch's `need_weights=True`):
  /// `auto [y, weights] = mha(q, k, v, mask, nn::HeadWeights::Mean)`.
  WeightedResult forward(const Tensor& query, const Tensor& key, const Tensor& value,
                         const AttentionMask& mask, HeadWeights heads) const;
  /// One decoding step: x [1, N, E] ([N, 1, E] with batch_first) at `position` (int64 or int32, one
  /// number, from 0) attends to all positions up to its own. Its key and value are written to the
  /// cache at that position. Throws ShapeError or DTypeError if the cache differs from
  /// empty_cache()'s, and ValueError for a position outside the cache if its value is already known
  /// in host memory. A position that is still to be computed, is on a GPU or is an input of a
  /// compiled function is not checked: outside the cache nothing is written, and below 0 the output
  /// is also NaN.
  CachedResult forward(const Tensor& x, const KeyValueCache& cache, const Tensor& position) const;
  /// Attention to the keys and values that keys_of() computed.
  Tensor forward(const Tensor& query, const KeyValueCache& cache,
                 const AttentionMask& mask = {}) const;
  /// An empty cache for sequences of up to `max_length` positions.
  KeyValueCache empty_cache(std::int64_t batch, std::int64_t max_length) const;
  /// Projected keys and values of a sequence that does not change, for example an encoder's output.
  KeyValueCache keys_of(const Tensor& key, const Tensor& value) const;
  std::string describe() const override;

 private:
  std::int64_t size_of_head() const { return width_ / heads_; }
  std::vector<Tensor> project(int first, int end, const Tensor& x) const;
  Tensor by_heads(const Tensor& x, std::int64_t heads) const;
  /// The projected queries by heads, and the keys and values.
  std::pair<Tensor, KeyValueCache> parts_of(const Tensor& query, const Tensor& key,
                                            const Tensor& value) const;
  struct Seen {  // keys and values, with those that the options append, and their mask
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

/// Options of Transformer layers.
struct TransformerOptions {
  std::int64_t dim_feedforward = 2048;  ///< Hidden size of the feed-forward block.
  double dropout = 0.1;                 ///< Dropout in training.
  std::string activation = "relu";      ///< A name that nn::activation() knows.
  double layer_norm_eps = 1e-5;         ///< eps of the layer norms.
  bool batch_first = false;             ///< Tensors are [N, S, E] instead of [S, N, E].
  bool norm_first = false;  ///< Layer norm before each block instead of after its residual sum.
  bool bias = true;         ///< Add biases to the linear layers and layer norms.
  OptionalGenerator generator{};  ///< For the initial values and for dropout.
};

/// Self-attention and a feed-forward block (Vaswani et al., 2017): src [S, N, E] to the same shape.
class TENON_API TransformerEncoderLayer : public ModuleOf<TransformerEncoderLayer> {
 public:
  /// A layer of embedding size `width` with `heads` heads.
  TransformerEncoderLayer(std::int64_t width, std::int64_t heads,
                          const TransformerOptions& options = {});
  /// The output for a sequence.
  Tensor forward(const Tensor& src, const AttentionMask& mask = {}) const;
  /// One decoding step, as in MultiheadAttention.
  CachedResult forward(const Tensor& x, const KeyValueCache& cache, const Tensor& position) const;
  /// An empty cache for sequences of up to `max_length` positions.
  KeyValueCache empty_cache(std::int64_t batch, std::int64_t max_length) const {
    return self_attn_.empty_cache(batch, max_length);
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

/// Caches of one decoder layer.
struct DecoderCache {
  KeyValueCache self;    ///< Keys and values of the positions decoded so far.
  KeyValueCache memory;  ///< Keys and values of the encoder's output.
};
/// Output of one decoding step of a decoder layer.
struct DecodedPosition {
  Tensor output;       ///< The output at this position.
  DecoderCache cache;  ///< The caches for the next position.
};

/// Self-attention, attention to a memory [S, N, E] (the encoder's output) and a feed-forward block:
/// tgt [T, N, E] to the same shape.
class TENON_API TransformerDecoderLayer : public ModuleOf<TransformerDecoderLayer> {
 public:
  /// A layer of embedding size `width` with `heads` heads.
  TransformerDecoderLayer(std::int64_t width, std::int64_t heads,
                          const TransformerOptions& options = {});
  /// The output for a sequence.
  Tensor forward(const Tensor& tgt, const Tensor& memory, const AttentionMask& tgt_mask = {},
                 const AttentionMask& memory_mask = {}) const;
  /// One decoding step, as in MultiheadAttention.
  DecodedPosition forward(const Tensor& x, const DecoderCache& cache, const Tensor& position,
                          const AttentionMask& memory_mask = {}) const;
  /// Caches for decoding up to `max_length` positions with this memory.
  DecoderCache start(const Tensor& memory, std::int64_t max_length) const;
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

/// A stack of encoder layers, named "layers.0", …; with `norm`, a layer norm follows the last one.
class TENON_API TransformerEncoder : public ModuleOf<TransformerEncoder> {
 public:
  /// `layers` layers of embedding size `width` with `heads` heads.
  TransformerEncoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                     const TransformerOptions& options = {}, bool norm = false);
  /// The output for a sequence.
  Tensor forward(const Tensor& src, const AttentionMask& mask = {}) const;

 private:
  ModuleList layers_;
  std::optional<LayerNorm> norm_;
};
/// A stack of decoder layers, named "layers.0", …; with `norm`, a layer norm follows the last one.
class TENON_API TransformerDecoder : public ModuleOf<TransformerDecoder> {
 public:
  /// `layers` layers of embedding size `width` with `heads` heads.
  TransformerDecoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                     const TransformerOptions& options = {}, bool norm = false);
  /// The output for a sequence.
  Tensor forward(const Tensor& tgt, const Tensor& memory, const AttentionMask& tgt_mask = {},
                 const AttentionMask& memory_mask = {}) const;
  /// Output of one decoding step.
  struct Decoded {
    Tensor output;                     ///< The output at this position.
    std::vector<DecoderCache> caches;  ///< The caches of each layer for the next position.
  };
  /// One decoding step, with the caches from start() or from the previous position.
  Decoded forward(const Tensor& x, const std::vector<DecoderCache>& caches, const Tensor& position,
                  const AttentionMask& memory_mask = {}) const;
  /// Caches of each layer for decoding up to `max_length` positions with this memory.
  std::vector<DecoderCache> start(const Tensor& memory, std::int64_t max_length) const;

 private:
  Tensor ended(const Tensor& x) const { return norm_ ? (*norm_)(x) : x; }
  ModuleList layers_;
  std::optional<LayerNorm> norm_;
};

/// Encoder and decoder, each followed by a layer norm (Vaswani et al., 2017): src [S, N, E] and tgt
/// [T, N, E] to [T, N, E]. Weight matrices are initialized with init::xavier_uniform().
class TENON_API Transformer : public ModuleOf<Transformer> {
 public:
  /// A network of embedding size `width` with `heads` heads.
  Transformer(std::int64_t width = 512, std::int64_t heads = 8, std::int64_t encoder_layers = 6,
              std::int64_t decoder_layers = 6, const TransformerOptions& options = {});
  /// The decoder's output.
  Tensor forward(const Tensor& src, const Tensor& tgt, const AttentionMask& src_mask = {},
                 const AttentionMask& tgt_mask = {}, const AttentionMask& memory_mask = {}) const;
  /// The encoder.
  const TransformerEncoder& encoder() const { return encoder_; }
  /// The decoder.
  const TransformerDecoder& decoder() const { return decoder_; }

 private:
  TransformerEncoder encoder_;
  TransformerDecoder decoder_;
};

/// Options of RMSNorm.
struct RMSNormOptions {
  std::optional<double> eps{};  ///< Added to the mean square; none: machine epsilon of x's dtype.
  bool elementwise_affine = true;  ///< Learn a weight.
};
/// Root mean square normalisation, x / sqrt(mean(x²) + eps) · weight over the last axes, whose
/// sizes are `shape` (Zhang and Sennrich, 2019).
class TENON_API RMSNorm : public Module {
 public:
  /// Normalises over the last `shape.rank()` axes.
  explicit RMSNorm(const Shape& shape, const RMSNormOptions& options = {});
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Shape shape_;
  std::optional<double> eps_;
  Tensor weight_;
};

/// Sinusoidal positional encoding [length, width]: sine in even columns, cosine in odd columns,
/// with wavelengths from 2π to 20000π (Vaswani et al., 2017). Throws ValueError for sizes below 1.
TENON_API Tensor sinusoid_positions(std::int64_t length, std::int64_t width,
                                    DType dtype = DType::Float32);

/// Options of rotary().
struct RotaryOptions {
  double base = 10000;       ///< Base of the wavelengths.
  bool interleaved = false;  ///< Pair neighbours, as in the paper; else halves, as in LLaMA.
  /// The angle per position of each pair, size / 2 numbers; empty: base^(-2k / size).
  std::vector<double> frequencies{};
  double scale = 1;  ///< Factor of the result, as YaRN needs it.
};
/// Rotary positional encoding (Su et al., 2021): rotates each pair of x [.., L, size] by an angle
/// proportional to its position. `positions` is int64 [L]; the default is 0, 1, … Throws
/// ShapeError if `size` is odd, and ValueError for another number of frequencies.
TENON_API Tensor rotary(const Tensor& x, const Tensor& positions = {},
                        const RotaryOptions& options = {});

// ---- Rotary encoding of sequences longer than those in training. The functions give the options
// of rotary() for a head of this size. Names and formulas are those of Hugging Face's `rope_type`.
// Throw ValueError for an odd size or an option out of range.
/// Positions divided by `factor` (Chen et al., "Extending context window of large language models
/// via positional interpolation", 2023).
TENON_API RotaryOptions rotary_linear(std::int64_t size, double factor, double base = 10000);
/// A base that grows with the length of the sequence once it exceeds the length in training
/// (NTK-aware scaling). Make the options anew for each length.
TENON_API RotaryOptions rotary_dynamic(std::int64_t size, double factor,
                                       std::int64_t trained_length, std::int64_t length,
                                       double base = 10000);
/// Options of rotary_yarn().
struct YarnOptions {
  double factor = 1;                ///< The new length divided by the trained one, at least 1.
  std::int64_t trained_length = 0;  ///< Length of the sequences in training.
  double beta_fast = 32;  ///< Rotations in the trained length above which pairs keep their rate.
  double beta_slow = 1;   ///< Rotations below which pairs are slowed down by the whole factor.
  std::optional<double>
      attention_factor{};  ///< RotaryOptions::scale; unset: 0.1 · log(factor) + 1.
  bool truncate = true;    ///< Round the limits to whole pairs.
};
/// Slow pairs are interpolated, fast ones are not (Peng et al., "YaRN: efficient context window
/// extension of large language models", 2024).
TENON_API RotaryOptions rotary_yarn(std::int64_t size, const YarnOptions& options,
                                    double base = 10000);
/// Options of rotary_llama3(), with the values of Llama 3.1.
struct Llama3RotaryOptions {
  double factor = 8;            ///< Slow pairs are this many times slower, at least 1.
  double low_freq_factor = 1;   ///< Rotations in the trained length below which pairs are slow.
  double high_freq_factor = 4;  ///< Rotations above which pairs keep their rate.
  std::int64_t trained_length = 8192;  ///< Length of the sequences in training.
};
/// As YaRN without its factor, with a smooth change between the two limits (Llama 3.1).
TENON_API RotaryOptions rotary_llama3(std::int64_t size, const Llama3RotaryOptions& options = {},
                                      double base = 500000);

}  // namespace tenon::nn
