// Forward passes of modules that only network files use.
#include "models/file_modules.h"

#include <array>
#include <cmath>
#include <tuple>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/str.h"

namespace tenon::models {

Tensor FileTiedEmbedding::forward(const Tensor& x) const { return embedding(x, weight_); }

std::string FileTiedEmbedding::describe() const {
  return cat("Embedding(", weight_.size(0), ", ", weight_.size(1), ", tied)");
}

Tensor FileAttention::forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                              const Tensor& seen) const {
  const auto of_heads = [&](const Tensor& x) {  // [N, L, C] to [N, heads, L, C / heads]
    return transpose(reshape(x, {x.size(0), x.size(1), heads_, x.size(2) / heads_}), 1, 2);
  };
  const Tensor y = scaled_dot_product_attention(
      of_heads(queries), of_heads(keys), of_heads(values), seen,
      {.causal = causal_, .dropout_p = is_training() ? dropout_ : 0, .generator = generator_});
  return reshape(transpose(y, 1, 2), {values.size(0), queries.size(1), values.size(2)});
}

std::string FileAttention::describe() const { return cat("Attention(", heads_, " heads)"); }

Tensor FilePackedAttention::forward(const Tensor& x) const {
  const std::vector<Tensor> qkv = chunk(x, 3, 2);
  const auto of_heads = [&](const Tensor& part) {
    return transpose(reshape(part, {part.size(0), part.size(1), heads_, part.size(2) / heads_}), 1,
                     2);
  };
  const Tensor y = scaled_dot_product_attention(
      of_heads(qkv[0]), of_heads(qkv[1]), of_heads(qkv[2]), {},
      {.causal = causal_, .dropout_p = is_training() ? dropout_ : 0, .generator = generator_});
  return reshape(transpose(y, 1, 2), {x.size(0), x.size(1), x.size(2) / 3});
}

std::string FilePackedAttention::describe() const {
  return cat("PackedAttention(", heads_, " heads)");
}

FilePositions::FilePositions(std::int64_t positions, std::int64_t width,
                             const OptionalGenerator& generator)
    : weight_(parameter("weight", nn::init::normal({positions, width}, 0, 1, generator))) {}

Tensor FilePositions::forward(const Tensor& x) const {
  if (x.rank() != 3 || x.size(1) > weight_.size(0))
    throw ShapeError(cat("positions: the input is ", x.shape(), ", must have up to ",
                         weight_.size(0), " positions in its second axis"));
  return x + embedding(arange(0, x.size(1)), weight_);
}

std::string FilePositions::describe() const {
  return cat("Positions(", weight_.size(0), ", ", weight_.size(1), ")");
}

FileConvolution::FileConvolution(std::int64_t in, std::int64_t out,
                                 const std::vector<std::int64_t>& kernel, Options options)
    : options_(std::move(options)) {
  if (in % options_.groups != 0 || out % options_.groups != 0)
    throw ValueError(cat(in, " input and ", out, " output channels do not divide into ",
                         options_.groups, " groups"));
  Shape shape =
      is_transposed() ? Shape{in, out / options_.groups} : Shape{out, in / options_.groups};
  for (const std::int64_t size : kernel) shape.push_back(size);
  const OptionalGenerator& g = options_.generator;
  weight_ = parameter(
      "weight", options_.weight_init
                    ? options_.weight_init(shape, g)
                    : nn::init::kaiming_uniform(shape, std::sqrt(5.0), nn::init::FanMode::In, g));
  if (!options_.bias) return;
  const double limit = 1.0 / std::sqrt(static_cast<double>(nn::init::fans(shape).first));
  bias_ = parameter("bias", nn::init::uniform({out}, -limit, limit, g));
}

Tensor FileConvolution::forward(const Tensor& x) const {
  const auto& [stride, padding, dilation] =
      std::tie(options_.stride, options_.padding, options_.dilation);
  const std::vector<std::int64_t>& more = options_.output_padding;
  const std::int64_t groups = options_.groups;
  if (stride.size() == 1) {
    if (!is_transposed())
      return conv1d(x, weight_, bias_, {stride[0], padding[0], dilation[0], groups});
    return conv_transpose1d(x, weight_, bias_,
                            {stride[0], padding[0], more[0], dilation[0], groups});
  }
  if (stride.size() == 2) {
    const auto both = [](const std::vector<std::int64_t>& v) { return Pair(v[0], v[1]); };
    return conv_transpose2d(x, weight_, bias_,
                            {both(stride), both(padding), both(more), both(dilation), groups});
  }
  const auto all = [](const std::vector<std::int64_t>& v) { return Triple(v[0], v[1], v[2]); };
  if (!is_transposed())
    return conv3d(x, weight_, bias_, {all(stride), all(padding), all(dilation), groups});
  return conv_transpose3d(x, weight_, bias_,
                          {all(stride), all(padding), all(more), all(dilation), groups});
}

std::string FileConvolution::describe() const {
  const Shape& w = weight_.shape();
  const std::int64_t grouped = w[1] * options_.groups;
  return cat(is_transposed() ? "ConvTranspose" : "Conv", options_.stride.size(), "d(",
             is_transposed() ? w[0] : grouped, ", ", is_transposed() ? grouped : w[0],
             bias_.defined() ? ")" : ", bias=false)");
}

}  // namespace tenon::models
