// Embedding and EmbeddingBag as layers.
#include <tenon/error.h>
#include <tenon/layers.h>

#include "base/make_error.h"
#include "base/str.h"

namespace tenon::nn {
namespace {

// A random table with zeros in the padding row; or the given weight, like PyTorch's
// from_pretrained(t, freeze=False).
Tensor initial_table(const char* layer, const Shape& shape,
                     const std::optional<std::int64_t>& padding_index, const TableOptions& table) {
  for (const std::int64_t size : shape)
    if (size < 1)
      throw make_error<ValueError>(layer, ": the table is ", shape,
                                   ", must have at least one row and one column");
  if (padding_index && (*padding_index < -shape[0] || *padding_index >= shape[0]))
    throw make_error<ValueError>(layer, ": the padding index ", *padding_index, " is outside ",
                                 shape[0], " rows");
  if (table.weight.defined()) {
    if (table.weight.shape() != shape)
      throw make_error<ShapeError>(layer, ": the weight is ", table.weight.shape(), ", must be ",
                                   shape);
    return table.weight;
  }
  Tensor drawn = init::normal(shape, 0, 1, table.generator);
  if (!padding_index) return drawn;
  const std::int64_t padding = (*padding_index + shape[0]) % shape[0];
  return tenon::where(unsqueeze(eq(arange(0, shape[0]), padding), 1), 0, drawn);
}

template <class Options>
std::string options_text(const Options& o) {
  std::string text;
  if (o.padding_index) text += cat(", padding_index=", *o.padding_index);
  if (o.max_norm) text += cat(", max_norm=", *o.max_norm);
  if (o.max_norm && o.norm_type != 2) text += cat(", norm_type=", o.norm_type);
  if (o.scale_grad_by_freq) text += ", scale_grad_by_freq=true";
  if (o.sparse) text += ", sparse=true";
  return text;
}

}  // namespace

Embedding::Embedding(std::int64_t count, std::int64_t size, const EmbeddingOptions& options,
                     const TableOptions& table)
    : options_(options),
      weight_(parameter("weight",
                        initial_table("Embedding", {count, size}, options.padding_index, table))) {}

Tensor Embedding::forward(const Tensor& index) const { return embedding(index, weight_, options_); }

std::string Embedding::describe() const {
  return cat("Embedding(", weight_.size(0), ", ", weight_.size(1), options_text(options_), ")");
}

EmbeddingBag::EmbeddingBag(std::int64_t count, std::int64_t size,
                           const EmbeddingBagOptions& options, const TableOptions& table)
    : options_(options),
      weight_(parameter(
          "weight", initial_table("EmbeddingBag", {count, size}, options.padding_index, table))) {}

Tensor EmbeddingBag::forward(const Tensor& index, const Tensor& offsets,
                             const Tensor& per_sample_weights) const {
  EmbeddingBagOptions options = options_;
  options.include_last_offset = options_.include_last_offset && offsets.defined();
  return embedding_bag(index, weight_, offsets, options, per_sample_weights);
}

std::string EmbeddingBag::describe() const {
  constexpr const char* kModes[] = {"sum", "mean", "max"};
  return cat("EmbeddingBag(", weight_.size(0), ", ", weight_.size(1), options_text(options_),
             ", mode=", kModes[static_cast<int>(options_.mode)],
             options_.include_last_offset ? ", include_last_offset=true)" : ")");
}

}  // namespace tenon::nn
