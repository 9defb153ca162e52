// Modules for network files in addition to those of nn/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tenon/functional.h>
#include <tenon/nn.h>

namespace tenon::models {

/// A function without parameters.
class FileFunction : public nn::Module {
 public:
  FileFunction(std::string text, std::function<Tensor(const Tensor&)> function)
      : text_(std::move(text)), function_(std::move(function)) {}
  Tensor forward(const Tensor& x) const override { return function_(x); }
  std::string describe() const override { return text_; }

 private:
  std::string text_;
  std::function<Tensor(const Tensor&)> function_;
};

/// An embedding whose weight [tokens, features] is another module's (tied).
class FileTiedEmbedding : public nn::Module {
 public:
  explicit FileTiedEmbedding(const Tensor& weight) : weight_(tie("weight", weight)) {}
  const Tensor& weight() const { return weight_; }
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Tensor weight_;
};

/// Multi-head attention without projections: queries [N, L, C], keys and values [N, S, C] to
/// [N, L, C]. The mask `seen` (bool, broadcasts to [N, heads, L, S]) may be undefined.
class FileAttention : public nn::ModuleOf<FileAttention> {
 public:
  FileAttention(std::int64_t heads, bool causal, double dropout, const OptionalGenerator& generator)
      : heads_(heads), causal_(causal), dropout_(dropout), generator_(generator) {}
  Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                 const Tensor& seen) const;
  std::string describe() const override;

 private:
  std::int64_t heads_;
  bool causal_;
  double dropout_;
  OptionalGenerator generator_;
};

/// The same for concatenated queries, keys and values: [N, L, 3 C] to [N, L, C].
class FilePackedAttention : public nn::Module {
 public:
  FilePackedAttention(std::int64_t heads, bool causal, double dropout,
                      const OptionalGenerator& generator)
      : heads_(heads), causal_(causal), dropout_(dropout), generator_(generator) {}
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  std::int64_t heads_;
  bool causal_;
  double dropout_;
  OptionalGenerator generator_;
};

/// Learned position embeddings: adds row t of weight [positions, width] to position t of
/// x [N, T, width].
class FilePositions : public nn::Module {
 public:
  FilePositions(std::int64_t positions, std::int64_t width, const OptionalGenerator& generator);
  Tensor forward(const Tensor& x) const override;
  /// The same for one position, an int64 scalar, with x [N, 1, width].
  Tensor at(const Tensor& x, const Tensor& position) const {
    return x + embedding(position, weight_);
  }
  std::string describe() const override;

 private:
  Tensor weight_;
};

/// A convolution over one axis or three, weight [out, in / groups, kernel…], or a transposed one
/// over one to three, weight [in, out / groups, kernel…]; bias [out]. Drawn as Conv2d's.
class FileConvolution : public nn::Module {
 public:
  struct Options {
    std::vector<std::int64_t> stride, padding, dilation;
    std::vector<std::int64_t> output_padding{};  ///< non-empty: a transposed convolution
    std::int64_t groups = 1;
    bool bias = true;
    OptionalGenerator generator{};
    nn::Initializer weight_init{};
  };
  FileConvolution(std::int64_t in, std::int64_t out, const std::vector<std::int64_t>& kernel,
                  Options options);
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  bool is_transposed() const { return !options_.output_padding.empty(); }
  Options options_;
  Tensor weight_, bias_;
};

}  // namespace tenon::models
