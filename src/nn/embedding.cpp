// Embedding and EmbeddingBag as layers.
#include <tenon/error.h>
#include <tenon/layers.h>

#include "base/str.h"

namespace tenon::nn {
namespace {

// A random table with zeros in the padding row; or the given weight, like PyTorch's
// from_pretrained(t, freeze=False).
Tensor initial_table(const char* layer, const Shape& shape, const EmbeddingOptions& o) {
  for (const std::int64_t size : shape)
    if (size < 1)
      throw ValueError(
          cat(layer, ": the table is ", shape, ", must have at least one row and one column"));
  if (o.padding_index && (*o.padding_index < -shape[0] || *o.padding_index >= shape[0]))
    throw ValueError(
        cat(layer, ": the padding index ", *o.padding_index, " is outside ", shape[0], " rows"));
  if (o.weight.defined()) {
    if (o.weight.shape() != shape)
      throw ShapeError(cat(layer, ": the weight is ", o.weight.shape(), ", must be ", shape));
    return o.weight;
  }
  Tensor drawn = init::normal(shape, 0, 1, o.generator);
  if (!o.padding_index) return drawn;
  const std::int64_t padding = (*o.padding_index + shape[0]) % shape[0];
  return tenon::where(unsqueeze(eq(arange(0, shape[0]), padding), 1), 0, drawn);
}

std::string options_text(const tenon::EmbeddingOptions& o) {
  std::string text;
  if (o.padding_index) text += cat(", padding_index=", *o.padding_index);
  if (o.max_norm) text += cat(", max_norm=", *o.max_norm);
  if (o.max_norm && o.norm_type != 2) text += cat(", norm_type=", o.norm_type);
  if (o.scale_grad_by_freq) text += ", scale_grad_by_freq=true";
  return text;
}

template <class LayerOptions>
tenon::EmbeddingOptions of_rows(const LayerOptions& o) {
  return {o.padding_index, o.max_norm, o.norm_type, o.scale_grad_by_freq};
}

}  // namespace

Embedding::Embedding(std::int64_t count, std::int64_t size, const EmbeddingOptions& options)
    : options_(options),
      weight_(parameter("weight", initial_table("Embedding", {count, size}, options))) {
  options_.weight = {};
}

Embedding::Embedding(std::int64_t count, std::int64_t size, Generator* generator)
    : Embedding(count, size, EmbeddingOptions{.generator = generator}) {}

Tensor Embedding::forward(const Tensor& index) const {
  return embedding(index, weight_, of_rows(options_));
}

std::string Embedding::describe() const {
  return cat("Embedding(", weight_.size(0), ", ", weight_.size(1), options_text(of_rows(options_)),
             ")");
}

EmbeddingBag::EmbeddingBag(std::int64_t count, std::int64_t size,
                           const EmbeddingBagOptions& options)
    : options_(options),
      weight_(parameter("weight", initial_table("EmbeddingBag", {count, size},
                                                {.padding_index = options.padding_index,
                                                 .generator = options.generator,
                                                 .weight = options.weight}))) {
  options_.weight = {};
}

Tensor EmbeddingBag::forward(const Tensor& index, const Tensor& offsets,
                             const Tensor& per_sample_weights) const {
  return embedding_bag(index, weight_,
                       {.padding_index = options_.padding_index,
                        .max_norm = options_.max_norm,
                        .norm_type = options_.norm_type,
                        .scale_grad_by_freq = options_.scale_grad_by_freq,
                        .mode = options_.mode,
                        .offsets = offsets,
                        .include_last_offset = options_.include_last_offset && offsets.defined(),
                        .per_sample_weights = per_sample_weights});
}

std::string EmbeddingBag::describe() const {
  constexpr const char* kModes[] = {"sum", "mean", "max"};
  return cat("EmbeddingBag(", weight_.size(0), ", ", weight_.size(1),
             options_text(of_rows(options_)), ", mode=", kModes[static_cast<int>(options_.mode)],
             options_.include_last_offset ? ", include_last_offset=true)" : ")");
}

}  // namespace tenon::nn
