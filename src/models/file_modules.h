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

/// Rows of another module's weight [tokens, features] (tied).
class FileTiedEmbedding : public nn::Module {
 public:
  explicit FileTiedEmbedding(const Tensor& weight) : weight_(tie("weight", weight)) {}
  const Tensor& weight() const { return weight_; }
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Tensor weight_;
};

/// Attention of heads side by side: queries [N, L, C], keys and values [N, S, C] to [N, L, C];
/// `seen` (bool, broadcasts to [N, heads, L, S]) may be undefined.
class FileAttention : public nn::ModuleOf<FileAttention> {
 public:
  FileAttention(std::int64_t heads, bool causal, double dropout, Generator* generator)
      : heads_(heads), causal_(causal), dropout_(dropout), generator_(generator) {}
  Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                 const Tensor& seen) const;
  std::string describe() const override;

 private:
  std::int64_t heads_;
  bool causal_;
  double dropout_;
  Generator* generator_;
};

/// The same of queries, keys and values side by side: [N, L, 3 C] to [N, L, C].
class FilePackedAttention : public nn::Module {
 public:
  FilePackedAttention(std::int64_t heads, bool causal, double dropout, Generator* generator)
      : heads_(heads), causal_(causal), dropout_(dropout), generator_(generator) {}
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  std::int64_t heads_;
  bool causal_;
  double dropout_;
  Generator* generator_;
};

/// Adds a row of weight [places, width] to each place of x [N, T, width].
class FilePositions : public nn::Module {
 public:
  FilePositions(std::int64_t places, std::int64_t width, Generator* generator);
  Tensor forward(const Tensor& x) const override;
  /// x [N, 1, width] of one place, an int64 scalar.
  Tensor at(const Tensor& x, const Tensor& place) const { return x + embedding(place, weight_); }
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
    std::vector<std::int64_t> output_padding{};  ///< of a transposed one, which it makes it
    std::int64_t groups = 1;
    bool bias = true;
    Generator* generator = nullptr;
    std::function<Tensor(const Shape&, Generator*)> weight_init{};
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
